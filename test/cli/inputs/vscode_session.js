// The extension with an editor of straw and the real `msc lsp`.
'use strict';
const assert = require('assert');
const Module = require('module');

const providers = {}, diagnostics = new Map(), listeners = {};
const plain = name => class { constructor(...values) { Object.assign(this, { kind: name, values }); } };
const register = name => (selector, provider) => ((providers[name] = provider), { dispose() {} });
const document = {
  languageId: 'mir', version: 1, uri: { toString: () => 'file:///tmp/straw.mir' },
  text: 'network n(%x: f32[16, 32]) {\n  %y = ReLU(%x)\n  return out: %y\n}\n',
  getText() { return this.text; },
};
const vscode = {
  workspace: {
    getConfiguration: () => ({ get: key => (key === 'path' ? 'msc' : ['--devices', '8']) }), textDocuments: [document],
    onDidOpenTextDocument: f => (listeners.open = f), onDidChangeTextDocument: f => (listeners.change = f),
    onDidCloseTextDocument: f => (listeners.close = f),
  },
  window: {
    createOutputChannel: () => ({ append: text => process.stderr.write(text), appendLine: text => console.error(text) }),
    showErrorMessage: text => { throw new Error(text); },
  },
  languages: {
    createDiagnosticCollection: () => ({ set: (uri, list) => diagnostics.set(uri, list), dispose() {} }),
    registerHoverProvider: register('hover'), registerDefinitionProvider: register('definition'),
    registerCompletionItemProvider: register('completion'), registerDocumentSymbolProvider: register('symbols'),
    registerDocumentFormattingEditProvider: register('layout'),
  },
  commands: { registerCommand: () => ({}) },
  Uri: { parse: text => text }, TextEdit: { replace: (range, text) => ({ range, text }) },
};
for (const name of ['Range', 'Location', 'Diagnostic', 'DiagnosticRelatedInformation', 'CompletionItem', 'MarkdownString', 'DocumentSymbol', 'Hover'])
  vscode[name] = plain(name);
const load = Module._load;
Module._load = (name, ...rest) => (name === 'vscode' ? vscode : load(name, ...rest));

const until = async what => {
  for (let i = 0; i < 500 && !what(); ++i) await new Promise(resolve => setTimeout(resolve, 20));
  assert(what());
};

(async () => {
  const extension = require(process.argv[2]);
  extension.activate({ subscriptions: [] });
  await until(() => diagnostics.has('file:///tmp/straw.mir'));
  assert.deepStrictEqual(diagnostics.get('file:///tmp/straw.mir'), []);
  const hover = await providers.hover.provideHover(document, { line: 1, character: 3 });
  assert(/%y: f32\[16, 32\]/.test(hover.values[0].values[0]));
  const place = await providers.definition.provideDefinition(document, { line: 2, character: 15 });
  assert.deepStrictEqual(place.values[1].values, [1, 2, 1, 4]);
  const words = await providers.completion.provideCompletionItems(document, { line: 1, character: 7 });
  assert(words.some(word => word.values[0] === 'MatMul'));
  const names = await providers.symbols.provideDocumentSymbols(document);
  assert.deepStrictEqual(names.map(s => s.values[0]), ['n']);
  document.text = document.text.replace('ReLU(%x)', 'RleU( %x)');
  document.version = 2;
  diagnostics.clear();
  listeners.change({ document });
  await until(() => diagnostics.has('file:///tmp/straw.mir'));
  assert.strictEqual(diagnostics.get('file:///tmp/straw.mir')[0].code, 'MSC1101');
  const edits = await providers.layout.provideDocumentFormattingEdits(document);
  assert(edits[0].text.includes('RleU(%x)'));
  await extension.deactivate();
})().catch(error => {
  console.error(error);
  process.exit(1);
});

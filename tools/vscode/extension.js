// The client of `msc lsp` for VS Code, without a build step and without other packages: it starts the program, speaks the
// Language Server Protocol with it, and hands its answers to the editor.
'use strict';
const vscode = require('vscode');
const child = require('child_process');

const selector = { language: 'mir' };
let session;

/// Sends requests and notices, and reads what comes back.
class Session {
  constructor(output) {
    const settings = vscode.workspace.getConfiguration('msc');
    this.output = output;
    this.next = 1;
    this.waiting = new Map();
    this.buffer = Buffer.alloc(0);
    this.diagnostics = vscode.languages.createDiagnosticCollection('msc');
    const folder = vscode.workspace.workspaceFolders && vscode.workspace.workspaceFolders[0];
    this.program = child.spawn(settings.get('path'), ['lsp', ...settings.get('arguments')], {
      cwd: folder && folder.uri.scheme === 'file' ? folder.uri.fsPath : undefined,
    });
    this.program.on('error', error => this.end(`msc: ${error.message}; set msc.path`));
    this.program.on('exit', code => this.end(code ? `msc lsp has ended with ${code}; see the output of msc` : ''));
    this.program.stdin.on('error', () => {});
    this.program.stderr.on('data', text => output.append(text.toString()));
    this.program.stdout.on('data', bytes => this.read(bytes));
    this.ready = this.ask('initialize', {
      processId: process.pid,
      rootUri: folder ? folder.uri.toString() : null,
      capabilities: { general: { positionEncodings: ['utf-16'] } },
    }).then(() => this.tell('initialized', {}));
    vscode.workspace.textDocuments.forEach(document => this.open(document));
  }

  send(message) {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message });
    this.program.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  }

  tell(method, params) {
    this.send({ method, params });
  }

  ask(method, params) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve, reject });
      this.send({ id, method, params });
    });
  }

  /// A request about a place of a document.
  at(method, document, position) {
    const params = { textDocument: { uri: document.uri.toString() } };
    if (position) params.position = { line: position.line, character: position.character };
    return this.ready.then(() => this.ask('textDocument/' + method, params)).catch(error => {
      this.output.appendLine(`${method}: ${error.message}`);
      return null;
    });
  }

  open(document) {
    if (document.languageId !== 'mir') return;
    this.ready.then(() =>
      this.tell('textDocument/didOpen', {
        textDocument: { uri: document.uri.toString(), languageId: 'mir', version: document.version, text: document.getText() },
      }));
  }

  change(document) {
    if (document.languageId !== 'mir') return;
    this.ready.then(() =>
      this.tell('textDocument/didChange', {
        textDocument: { uri: document.uri.toString(), version: document.version },
        contentChanges: [{ text: document.getText() }],
      }));
  }

  close(document) {
    if (document.languageId !== 'mir') return;
    this.ready.then(() => this.tell('textDocument/didClose', { textDocument: { uri: document.uri.toString() } }));
  }

  read(bytes) {
    this.buffer = Buffer.concat([this.buffer, bytes]);
    for (;;) {
      const end = this.buffer.indexOf('\r\n\r\n');
      if (end < 0) return;
      const length = Number(/content-length: *(\d+)/i.exec(this.buffer.toString('ascii', 0, end))[1]);
      if (this.buffer.length < end + 4 + length) return;
      const message = JSON.parse(this.buffer.toString('utf8', end + 4, end + 4 + length));
      this.buffer = this.buffer.subarray(end + 4 + length);
      this.receive(message);
    }
  }

  receive(message) {
    if (message.method === 'textDocument/publishDiagnostics') this.publish(message.params);
    else if (message.method === 'window/showMessage') vscode.window.showErrorMessage(message.params.message);
    const waiting = this.waiting.get(message.id);
    if (!waiting || message.method) return;
    this.waiting.delete(message.id);
    if (message.error) waiting.reject(new Error(message.error.message));
    else waiting.resolve(message.result);
  }

  publish({ uri, diagnostics }) {
    const all = diagnostics.map(found => {
      const diagnostic = new vscode.Diagnostic(range(found.range), found.message, found.severity - 1);
      diagnostic.source = found.source;
      diagnostic.code = found.code;
      diagnostic.relatedInformation = (found.relatedInformation || []).map(
        other => new vscode.DiagnosticRelatedInformation(location(other.location), other.message));
      return diagnostic;
    });
    this.diagnostics.set(vscode.Uri.parse(uri), all);
  }

  end(why) {
    if (this.ended) return;
    this.ended = true;
    this.diagnostics.dispose();
    this.waiting.forEach(waiting => waiting.reject(new Error('msc lsp has ended')));
    this.waiting.clear();
    if (why) vscode.window.showErrorMessage(why);
  }

  stop() {
    this.ended = true;
    this.diagnostics.dispose();
    this.program.stdin.end();
    return new Promise(resolve => {
      this.program.once('exit', resolve);
      setTimeout(resolve, 2000);
    });
  }
}

const range = r => new vscode.Range(r.start.line, r.start.character, r.end.line, r.end.character);
const location = l => new vscode.Location(vscode.Uri.parse(l.uri), range(l.range));

function completionItem(item) {
  const result = new vscode.CompletionItem(item.label, item.kind - 1);
  result.detail = item.detail;
  if (item.documentation) result.documentation = new vscode.MarkdownString(item.documentation.value);
  result.range = range(item.textEdit.range);
  result.insertText = item.textEdit.newText;
  result.filterText = item.label;
  return result;
}

function symbol(node) {
  const result = new vscode.DocumentSymbol(node.name, '', node.kind - 1, range(node.range), range(node.selectionRange));
  result.children = (node.children || []).map(symbol);
  return result;
}

const hovers = {
  provideHover: async (document, position) => {
    const found = await session.at('hover', document, position);
    return found && new vscode.Hover(new vscode.MarkdownString(found.contents.value), range(found.range));
  },
};
const definitions = {
  provideDefinition: async (document, position) => {
    const found = await session.at('definition', document, position);
    return found && location(found);
  },
};
const completions = {
  provideCompletionItems: async (document, position) => {
    const found = await session.at('completion', document, position);
    return found && found.items.map(completionItem);
  },
};
const symbols = {
  provideDocumentSymbols: async document => ((await session.at('documentSymbol', document)) || []).map(symbol),
};
const layout = {
  provideDocumentFormattingEdits: async document =>
    ((await session.at('formatting', document)) || []).map(edit => vscode.TextEdit.replace(range(edit.range), edit.newText)),
};

exports.activate = context => {
  const output = vscode.window.createOutputChannel('msc');
  session = new Session(output);
  context.subscriptions.push(
    output,
    vscode.workspace.onDidOpenTextDocument(document => session.open(document)),
    vscode.workspace.onDidChangeTextDocument(event => session.change(event.document)),
    vscode.workspace.onDidCloseTextDocument(document => session.close(document)),
    vscode.languages.registerHoverProvider(selector, hovers),
    vscode.languages.registerDefinitionProvider(selector, definitions),
    vscode.languages.registerCompletionItemProvider(selector, completions, '%', '(', '{', ' '),
    vscode.languages.registerDocumentSymbolProvider(selector, symbols),
    vscode.languages.registerDocumentFormattingEditProvider(selector, layout),
    vscode.commands.registerCommand('msc.restart', async () => {
      await session.stop();
      session = new Session(output);
    }));
};

exports.deactivate = () => session && session.stop();

// check_page_scripts.js FOLDER REPORT...: what the page computes of reports. The boxes of all ranks cut every tensor
// without gaps and are as large as the report says; every operator stands in the tree of cells once, every collective
// in the rows.
const assert = require("assert"), fs = require("fs"), path = require("path"), vm = require("vm");

const [folder, ...files] = process.argv.slice(2);
for (const name of ["text", "sharding", "cells", "rows"])
  vm.runInThisContext(fs.readFileSync(path.join(folder, name + ".js"), "utf8"), {filename: name + ".js"});

const volume = (box) => box.reduce((product, {begin, end}) => product * (end - begin), 1);

function checkValue({name, shape, local_shape, sharding: text}, devices) {
  const sharding = parseSharding(text);
  assert.strictEqual(sharding.axes.reduce((product, size) => product * size, 1), devices, name);
  assert.deepStrictEqual(capacityOf(sharding, shape), local_shape, name);
  const boxes = Array.from({length: devices}, (_, rank) => localBox(sharding, shape, rank));
  assert.deepStrictEqual(localShape({sharding: text, shape}, devices - 1), boxes.at(-1).map(({begin, end}) => end - begin), name);
  assert.deepStrictEqual(
      shape.map((_, dim) => Math.max(...boxes.map((box) => box[dim].end - box[dim].begin))), local_shape, name);
  const pieces = new Map(boxes.map((box, rank) => [pieceNumber(sharding, rank), volume(box)]));
  assert.strictEqual(pieces.size, pieceCount(sharding), name);
  assert.strictEqual([...pieces.values()].reduce((a, b) => a + b, 0), shape.reduce((a, b) => a * b, 1), name);
  for (let rank = 0; rank < devices; ++rank) {
    const alike = boxes.filter(
        (_, other) => pieceNumber(sharding, other) === pieceNumber(sharding, rank) &&
            termNumber(sharding, other) === termNumber(sharding, rank));
    assert.strictEqual(alike.length, copyCount(sharding, devices), name);
    for (const box of alike) assert.deepStrictEqual(box, boxes[rank], name);
  }
}

function checkTree({operators, collectives}) {
  const needed = (index) => collectives.filter((collective) => collective.for === operators[index].name);
  collectives.forEach((collective, index) => (collective.index = index));
  const nodes = treeOf(operators, needed), all = [];
  walk(nodes, (node) => all.push(node));
  assert.deepStrictEqual(
      all.filter(({kind}) => kind === "operator").map(({index}) => index), operators.map((_, index) => index));
  assert.strictEqual(new Set(all.map(({key}) => key)).size, all.length);
  operators.forEach((_, index) => assert.strictEqual(pathTo(nodes, index).at(-1).index, index));
  const rows = rowsOf(nodes, operators, new Set(all.map(({key}) => key)), needed, () => true);
  assert.strictEqual(rows.filter(({kind}) => kind === "operator").length, operators.length);
  assert.strictEqual(rows.filter(({kind}) => kind === "collective").length, collectives.length);
  return {
    cells: all.filter(({kind}) => kind === "cell").length,
    folded: all.filter(({kind}) => kind === "alike").length,
    first: rowsOf(nodes, operators, openAtFirst(nodes, false), needed, () => true).length
  };
}

for (const file of files) {
  const report = JSON.parse(fs.readFileSync(file, "utf8"));
  let values = 0;
  for (const {operands, results} of report.operators)
    for (const value of [...operands, ...results]) {
      checkValue(value, report.devices);
      ++values;
    }
  const {cells, folded, first} = checkTree(report);
  console.log(`${report.network}${refusalText(report.memory.limit)}: ${report.operators.length} operators, ${values} values, ${cells} cells, ${
      folded} folded, ${first} rows at first`);
}

// Uneven sizes, joined axes, terms: against pieces written by hand.
const joined = parseSharding("(2, 3, 2) [-, 2.0] partial(max: 1)");
assert.deepStrictEqual(joined, {axes: [2, 3, 2], dims: [[], [2, 0]], partial: [{kind: "max", axis: 1}]});
assert.deepStrictEqual(
    [0, 1, 6, 7].map((rank) => localBox(joined, [5, 7], rank)[1]),
    [{begin: 0, end: 1}, {begin: 3, end: 5}, {begin: 1, end: 3}, {begin: 5, end: 7}]);
assert.deepStrictEqual([0, 2, 4, 11].map((rank) => termNumber(joined, rank)), [0, 1, 2, 2]);
assert.deepStrictEqual(parseSharding("() []"), {axes: [], dims: [], partial: []});
assert.deepStrictEqual(
    [bytesText(1536), bytesText(28), timeText(12345), timeText(4.8), tupleText([[2, 4], [1]])],
    ["1.5 KiB", "28 B", "12.3 ms", "4.8 µs", "((2, 4), (1))"]);

// What stands in a row of the list.

/** Who decided, as one word: "user", "propagated", "search", ... */
function originClass(origin) { return /^[a-z]*/.exec(origin)[0]; }

function localShapesText(operator) {
  const shapes = (values) => values.map((value) => shapeText(localShape(value, 0))).join(", ");
  return shapes(operator.operands) + " → " + shapes(operator.results);
}

function operatorRow(row, graph) {
  const operator = graph.model.report.operators[row.node.index];
  const chip = (value, side, position) =>
      el("button", {
        type: "button",
        tabindex: -1,
        class: "chip",
        title: `${value.name} ${shapeText(value.shape)}, ${value.sharding}: show where its pieces are`,
        onclick: (event) => {
          event.stopPropagation();
          graph.onTensor(row.node.index, side, position);
        },
      },
         value.name.split(".").filter((part) => !/^\d+$/.test(part)).at(-1) ?? value.name);
  return [
    el("div", {class: "line"}, el("b", {class: "name", title: operator.name}, row.node.label || operator.name),
       el("span", {class: "op"}, operator.op),
       el("code", {class: "strategy", title: "in_strategy: pieces per dimension per operand"},
          operator.in_strategy === null ? "" : tupleText(operator.in_strategy)),
       el("span", {class: "chips"}, operator.results.slice(0, 2).map((value, i) => chip(value, "results", i)))),
    el("div", {class: "line minor"},
       el("span", {class: "origin " + originClass(operator.origin), title: "decided by"}, operator.origin),
       el("code", {class: "shapes", title: "local shapes of rank 0: operands → results"}, localShapesText(operator)),
       el("span", {class: "place"}, operator.location)),
  ];
}

function cellRow(row, graph) {
  const {node} = row;
  const operators = node.last - node.first + 1;
  const collectives = [];
  for (let index = node.first; index <= node.last; ++index)
    collectives.push(...graph.model.collectivesOf(index).filter(graph.model.isShown));
  const what = node.kind === "alike" ? `${node.children.length} cells like ${node.model.label}, ${
                                           countText(operators / node.children.length, "operator")} each` :
                                       countText(operators, "operator");
  return el(
      "div", {class: "line"},
      el("button", {
        type: "button",
        class: "twisty",
        tabindex: -1,
        "aria-label": row.isOpen ? "Fold" : "Expand",
        onclick: (event) => {
          event.stopPropagation();
          graph.onSelect(row);
          graph.toggle(row);
        },
      },
         row.isOpen ? "▾" : "▸"),
      el("b", {class: "name", title: node.path}, node.label), el("span", {class: "what"}, what),
      el("span", {class: "figures"},
         collectives.length === 0 ?
             "no collectives" :
             `${countText(collectives.length, "collective")} · ${bytesText(sumOf(collectives, (c) => c.bytes))} · ${
                 timeText(sumOf(collectives, (c) => c.predicted_us))}`));
}

/** "2 groups of 4". */
function groupsText(groups) {
  const sizes = new Set(groups.map((group) => group.length));
  if (groups.length === 1) return "all of " + countText(groups[0].length, "rank");
  return countText(groups.length, "group") + " of " + [...sizes].join(" or ");
}

function collectiveRow(row) {
  const {collective} = row;
  return el(
      "div", {class: "line " + collective.phase, title: collective.reason},
      el("span", {class: "kind"}, collective.kind),
      el("span", {class: "phase"}, (collective.phase === "forward" ? "↓ " : "↑ ") + collective.phase),
      el("span", {class: "amount"}, bytesText(collective.bytes)),
      el("span", {class: "amount"}, timeText(collective.predicted_us)),
      el("span", {class: "reason"}, collective.reason));
}

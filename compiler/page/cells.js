// Operators as a tree of cells, by the prefixes of their names. Cells that follow each other and differ in their
// numbers only are one row, as in the tables of `msc explain`.

/**
 * {kind: "operator", index} or {kind: "cell", label, path, children} or {kind: "alike", children}; all have `key`,
 * `first`, `last`.
 */
function treeOf(operators, collectivesOfOperator) {
  const parts = operators.map((operator) => operator.name.split("."));
  const leaf = (index, depth) => ({
    kind: "operator",
    index,
    label: parts[index].slice(depth).join("."),
    key: "o" + index,
    first: index,
    last: index
  });

  // Children of the operators [first, last], whose first `depth` parts agree.
  function children(first, last, depth) {
    const nodes = [];
    for (let at = first; at <= last;) {
      let end = at;
      const isCell = parts[at].length > depth + 1;
      while (isCell && end < last && parts[end + 1].length > depth + 1 && parts[end + 1][depth] === parts[at][depth])
        ++end;
      if (end === at) nodes.push(leaf(at, depth));
      else nodes.push(...cell(at, end, depth));
      at = end + 1;
    }
    return nodes;
  }

  // One cell; or what is in it, if that is a single node, or numbered cells only.
  function cell(first, last, depth) {
    const inner = children(first, last, depth + 1);
    const name = parts[first][depth];
    const isList = inner.every((node) => /^\d+(\.|$)/.test(node.label));
    if (isList || inner.length === 1) return inner.map((node) => ({...node, label: name + "." + node.label}));
    const path = parts[first].slice(0, depth + 1).join(".");
    return [{kind: "cell", label: name, path, key: "c" + first + "-" + depth, first, last, children: inner}];
  }

  // What has to agree for two cells to be alike: all but names of tensors and the numbers of cells.
  function looksOf(node) {
    if (node.kind !== "operator")
      return "{" + node.children.map((child) => child.label + ":" + looksOf(child)).join(";") + "}";
    const operator = operators[node.index];
    const values = [...operator.operands, ...operator.results].map((value) => [value.shape, value.sharding]);
    const moved = collectivesOfOperator(node.index).map((c) => [c.kind, c.phase, c.bytes, c.groups.length, c.tensors]);
    return JSON.stringify(
        [operator.op, operator.in_strategy, operator.out_strategy, operator.origin.split("'")[0], values, moved]);
  }

  function foldAlike(nodes) {
    const folded = [];
    for (let at = 0; at < nodes.length;) {
      const node = nodes[at++];
      if (node.kind === "cell") node.children = foldAlike(node.children);
      folded.push(node);
      if (node.kind !== "cell" || !/\d$/.test(node.label)) continue;
      const stem = node.label.replace(/\d+$/, ""), looks = looksOf(node);
      const alike = [];
      while (at < nodes.length && nodes[at].kind === "cell" && nodes[at].label.replace(/\d+$/, "") === stem &&
             looksOf(nodes[at]) === looks)
        alike.push(nodes[at++]);
      for (const other of alike) other.children = foldAlike(other.children);
      if (alike.length === 1) folded.push(alike[0]);
      if (alike.length > 1)
        folded.push({
          kind: "alike",
          key: "a" + alike[0].key,
          model: node,
          children: alike,
          first: alike[0].first,
          last: alike.at(-1).last,
          label: alike[0].label + " … " + alike.at(-1).label
        });
    }
    return folded;
  }
  return foldAlike(children(0, operators.length - 1, 0));
}

/** Calls `visit` for every node, parents first. */
function walk(nodes, visit) {
  for (const node of nodes) {
    visit(node);
    if (node.children) walk(node.children, visit);
  }
}

/** The nodes from the outermost to the operator itself. */
function pathTo(nodes, index) {
  const path = [];
  for (let level = nodes; level; level = path.at(-1).children) {
    const node = level.find(({first, last}) => first <= index && index <= last);
    if (!node) break;
    path.push(node);
  }
  return path;
}

/** What is open at first: everything in a small network; in a large one no numbered cell but the first of its kind. */
function openAtFirst(nodes, isSmall) {
  const open = new Set();
  const stems = new Set();
  for (const node of nodes) {
    const stem = /(^|\.)\d+$/.test(node.label) ? node.label.replace(/\d+$/, "") : null;
    const isFirst = stem === null || !stems.has(stem);
    stems.add(stem);
    if (node.kind !== "cell" || !(isSmall || isFirst)) continue;
    open.add(node.key);
    openAtFirst(node.children, isSmall).forEach((key) => open.add(key));
  }
  return open;
}

/** Is the collective of the backward pass, or of the operator's own computation? Otherwise it brings operands. */
function isBehind({phase, reason}, {op, name}) {
  return phase !== "forward" || (reason.startsWith(`${op} '${name}' `) && !reason.includes(" wants "));
}

/** The rows to show: nodes of open cells, and collectives before or behind the operator that needs them. */
function rowsOf(nodes, operators, open, collectivesOfOperator, isShown) {
  const rows = [];
  function add(node, level) {
    if (node.kind !== "operator") {
      rows.push({kind: node.kind, key: node.key, node, level, isOpen: open.has(node.key)});
      if (open.has(node.key)) node.children.forEach((child) => add(child, level + 1));
      return;
    }
    const collectives = collectivesOfOperator(node.index).filter(isShown);
    const push = (collective) => rows.push({kind: "collective", key: "k" + collective.index, collective, level});
    const isBefore = (collective) => !isBehind(collective, operators[node.index]);
    collectives.filter(isBefore).forEach(push);
    rows.push({kind: "operator", key: node.key, node, level});
    collectives.filter((collective) => !isBefore(collective)).forEach(push);
  }
  nodes.forEach((node) => add(node, 0));
  return rows;
}

// The list of operators with the edges of their data on its left. Only the rows in sight are elements, so that networks
// of thousands of operators scroll as quickly as small ones.

const rowHeights = {
  operator: 44,
  cell: 32,
  alike: 32,
  collective: 26
};
const laneWidth = 9, mostLanes = 9, overscan = 300;

class Graph {
  /**
   * `model`: {report, nodes, open, collectivesOf, isShown, producerOf}; `onSelect(row)`; `onTensor(index, side,
   * position)`; `onEnter(row)` on what does not open.
   */
  constructor(element, model, {onSelect, onTensor, onEnter}) {
    Object.assign(this, {
      element,
      model,
      onSelect,
      onTensor,
      onEnter,
      rows: [],
      selectedKey: null,
      highlight: new Set(),
      drawn: new Map()
    });
    this.canvas = el("div", {class: "canvas"});
    this.edges = svg("svg", {class: "edges", "aria-hidden": "true"});
    this.canvas.append(this.edges);
    element.append(this.canvas);
    element.addEventListener("scroll", () => this.requestDraw(), {passive: true});
    new ResizeObserver(() => this.requestDraw()).observe(element);
    this.update();
  }

  /** After a change of what is open or shown. */
  update() {
    const {model} = this;
    this.rows = rowsOf(model.nodes, model.report.operators, model.open, model.collectivesOf, model.isShown);
    this.tops = [0];
    for (const row of this.rows) this.tops.push(this.tops.at(-1) + rowHeights[row.kind]);
    this.rowOfKey = new Map(this.rows.map((row, i) => [row.key, i]));
    this.findEdges();
    this.forget();
    this.canvas.style.height = this.tops.at(-1) + "px";
    this.canvas.style.setProperty("--gutter", this.gutter() + "px");
    this.draw();
  }

  // An edge bundle per row that makes values: from it to all rows that read them, in one lane.
  findEdges() {
    const rowOfOperator = new Map();
    this.rows.forEach((row, i) => {
      if (row.kind === "operator" || ((row.kind === "cell" || row.kind === "alike") && !row.isOpen))
        for (let index = row.node.first; index <= row.node.last; ++index) rowOfOperator.set(index, i);
    });
    const readers = new Map();
    this.model.report.operators.forEach((operator, index) => {
      for (const value of operator.operands) {
        const from = rowOfOperator.get(this.model.producerOf.get(value.name)), to = rowOfOperator.get(index);
        if (from === undefined || from >= to) continue;
        if (!readers.has(from)) readers.set(from, new Set());
        readers.get(from).add(to);
      }
    });
    const nodeRows = this.rows.flatMap((row, i) => (row.kind !== "collective" && !row.isOpen ? [i] : []));
    const orderOf = new Map(nodeRows.map((row, i) => [row, i]));
    const freeFrom = [];
    this.bundles = [...readers].sort(([a], [b]) => a - b).map(([from, set]) => {
      const to = [...set].sort((a, b) => a - b);
      const isNext = to.length === 1 && orderOf.get(to[0]) === orderOf.get(from) + 1;
      let lane = isNext ? 0 : 1 + freeFrom.findIndex((row) => row <= from);
      if (!isNext && lane === 0) lane = 1 + Math.min(freeFrom.length, mostLanes - 1);
      if (!isNext) freeFrom[lane - 1] = to.at(-1);
      return {from, to, lane};
    });
    this.laneCount = Math.max(0, ...this.bundles.map(({lane}) => lane));
  }

  /** The next draw makes the rows anew. */
  forget() {
    this.drawn.forEach((element) => element.remove());
    this.drawn = new Map();
  }

  gutter() { return 22 + this.laneCount * laneWidth; }

  requestDraw() {
    if (this.isRequested) return;
    this.isRequested = true;
    requestAnimationFrame(() => {
      this.isRequested = false;
      this.draw();
    });
  }

  rowAt(y) {
    let low = 0, high = this.rows.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  draw() {
    if (this.rows.length === 0)
      return this.canvas.replaceChildren(el("p", {class: "note"}, "The network has no operators."));
    const top = this.element.scrollTop, height = this.element.clientHeight || 600;
    const first = this.rowAt(Math.max(0, top - overscan)), last = this.rowAt(top + height + overscan);
    const before = this.drawn;
    this.drawn = new Map();
    for (let at = first; at <= last; ++at)
      this.drawn.set(this.rows[at].key, before.get(this.rows[at].key) ?? this.rowElement(this.rows[at], at));
    this.drawEdges(this.tops[first], this.tops[last + 1], first, last);
    for (const [key, element] of before)
      if (this.drawn.get(key) !== element) element.remove();
    if (!this.edges.isConnected) this.canvas.replaceChildren(this.edges);
    for (const element of this.drawn.values())
      if (!element.isConnected) this.canvas.append(element);
    this.element.setAttribute(
        "aria-activedescendant", this.rowOfKey.has(this.selectedKey) ? "row-" + this.selectedKey : "");
  }

  middle(row) {
    return this.tops[row] + (this.rows[row].kind === "operator" ? 14 : rowHeights[this.rows[row].kind] / 2);
  }

  drawEdges(top, bottom, first, last) {
    const x = this.gutter() - 10;
    const paths = [];
    for (const {from, to, lane} of this.bundles) {
      if (from > last || to.at(-1) < first) continue;
      const isLit = (row) => this.rows[row].key === this.selectedKey;
      const laneX = x - lane * laneWidth;
      for (const reader of to) {
        if (reader < first) continue;
        const y0 = Math.max(this.middle(from), top - 40) - top, y1 = Math.min(this.middle(reader), bottom + 40) - top;
        const bend = Math.min(14, (y1 - y0) / 2);
        const start = this.middle(from) - top === y0 ?
            `M${x} ${y0}C${x} ${y0 + bend} ${laneX} ${y0} ${laneX} ${y0 + bend}` :
            `M${laneX} ${y0}`;
        const end =
            this.middle(reader) - top === y1 ? `V${y1 - bend}C${laneX} ${y1} ${x} ${y1 - bend} ${x} ${y1}` : `V${y1}`;
        paths.push(svg("path", {
          d: lane === 0 ? `M${x} ${y0}V${y1}` : start + end,
          class: isLit(from) || isLit(reader) ? "lit" : undefined
        }));
      }
    }
    paths.sort((a, b) => a.hasAttribute("class") - b.hasAttribute("class"));
    const dots = [];
    for (let row = first; row <= last; ++row)
      if (this.rows[row].kind !== "collective" && !this.rows[row].isOpen)
        dots.push(svg("circle", {
          cx: x,
          cy: this.middle(row) - top,
          r: this.rows[row].kind === "operator" ? 4 : 5,
          class: this.rows[row].kind
        }));
    this.edges.style.top = top + "px";
    fill(this.edges, {width: this.gutter(), height: bottom - top});
    this.edges.replaceChildren(...paths, ...dots);
  }

  rowElement(row, at) {
    const content = {operator: operatorRow, cell: cellRow, alike: cellRow, collective: collectiveRow}[row.kind](
        row, this);
    const element =
        el("div", {
          class: "row " + row.kind + (this.highlight.has(row.key) ? " found" : ""),
          id: "row-" + row.key,
          role: "treeitem",
          "--level": row.level,
          "aria-level": row.level + 1,
          "aria-selected": row.key === this.selectedKey ? "true" : "false",
          "aria-expanded": row.isOpen === undefined ? undefined : String(row.isOpen),
          onclick: () => this.onSelect(row),
          ondblclick: () => this.toggle(row),
        },
           content);
    element.style.top = this.tops[at] + "px";
    return element;
  }

  toggle(row) {
    if (row.isOpen === undefined) return;
    if (!this.model.open.delete(row.key)) this.model.open.add(row.key);
    this.update();
  }

  select(key) {
    for (const changed of [this.selectedKey, key]) {
      this.drawn.get(changed)?.remove();
      this.drawn.delete(changed);
    }
    this.selectedKey = key;
    const row = this.rowOfKey.get(key);
    if (row === undefined) return this.draw();
    this.selectedOperator = this.operatorOf(this.rows[row]);
    const {element} = this, top = this.tops[row], bottom = this.tops[row + 1];
    if (top < element.scrollTop + 30) element.scrollTop = top - 90;
    else if (bottom > element.scrollTop + element.clientHeight - 30)
      element.scrollTop = bottom - element.clientHeight + 90;
    this.draw();
  }

  /** Opens the cells around an operator. */
  reveal(index) {
    for (const node of pathTo(this.model.nodes, index))
      if (node.children) this.model.open.add(node.key);
    this.update();
  }

  /** The (first) operator that a row is about. */
  operatorOf({node, collective}) { return node ? node.first : this.model.indexOf.get(collective.for); }

  /** Of what is selected, or of the cell that hides it; -1 if there is none. */
  selectedRow() {
    const at = this.selectedOperator;
    return this.rowOfKey.get(this.selectedKey) ??
        this.rows.findIndex(({node, isOpen}) => node && !isOpen && node.first <= at && at <= node.last);
  }

  /** The arrow keys of a tree, as ARIA describes them. True if the key was one of them. */
  press(key) {
    const at = this.selectedRow(), row = this.rows[at], page = Math.max(1, Math.floor(this.element.clientHeight / 40));
    const go = (to) => this.onSelect(this.rows[Math.max(0, Math.min(this.rows.length - 1, to))]);
    const actions = {
      ArrowDown: () => go(at + 1),
      ArrowUp: () => go(at - 1),
      PageDown: () => go(at + page),
      PageUp: () => go(at - page),
      Home: () => go(0),
      End: () => go(this.rows.length - 1),
      ArrowRight: () => (row?.isOpen === false ? this.toggle(row) : go(at + 1)),
      ArrowLeft: () => (row?.isOpen ? this.toggle(row) : this.goToParent(at)),
      Enter: () => row && (row.isOpen === undefined ? this.onEnter(row) : this.toggle(row)),
      " ": () => row && this.toggle(row),
    };
    if (!actions[key] || this.rows.length === 0) return false;
    actions[key]();
    return true;
  }

  goToParent(at) {
    for (let parent = at - 1; parent >= 0; --parent)
      if (this.rows[parent].level < this.rows[at].level) return this.onSelect(this.rows[parent]);
  }
}

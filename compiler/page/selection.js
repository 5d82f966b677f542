// The panel on the right: what is selected, and where the pieces of its tensors are.

function table(heads, rows) {
  return el(
      "table", {}, el("thead", {}, el("tr", {}, heads.map((head) => el("th", {scope: "col"}, head)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((cell) => el("td", {}, cell))))));
}

/** A name that may go on in the next line behind its dots. */
function breakable(name) { return name.split(/(?<=\.)/).flatMap((part) => [part, el("wbr")]); }

function factList(facts) {
  return el(
      "dl", {},
      facts.filter(([, value]) => value !== null && value !== "")
          .map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]));
}

class SelectionPanel {
  /** `onOperator(index)` selects another operator. */
  constructor(element, model, onOperator) { Object.assign(this, {element, model, onOperator, tensor: null}); }

  width() { return Math.max(300, this.element.clientWidth - 36); }

  show(row, tensor = null) {
    const content = !row          ? [el("p", {class: "note"}, "Nothing is selected.")] :
        row.kind === "operator"   ? this.operator(row.node.index, tensor) :
        row.kind === "collective" ? this.collective(row.collective) :
                                    this.cell(row.node);
    this.element.replaceChildren(...content.filter(Boolean));
    this.element.scrollTop = 0;
  }

  operatorLink(index, text) {
    return el("button", {type: "button", class: "link", onclick: () => this.onOperator(index)}, text);
  }

  operator(index, tensor) {
    const {report} = this.model;
    const operator = report.operators[index];
    const shown = tensor ?? this.firstCut(operator);
    return [
      el("h2", {}, operator.name, " ", el("span", {class: "op"}, operator.op)),
      factList([
        ["in_strategy", operator.in_strategy === null ? "" : el("code", {}, tupleText(operator.in_strategy))],
        ["out_strategy", operator.out_strategy === null ? "" : el("code", {}, tupleText(operator.out_strategy))],
        ["decided by", this.originLink(operator.origin)],
        ["place", operator.location],
        ["scope", el("span", {class: "scope"}, operator.scope)],
      ]),
      this.surprises(operator),
      this.pictures(index, shown),
      shown ? this.tensorPart(index, shown) : null,
      this.alternatives(operator),
      this.collectiveTable(this.causedBy(operator)),
    ];
  }

  // What it costs that nobody asked for, and a repair.
  surprises({name}) {
    const found = (this.model.report.surprises ?? []).filter((surprise) => surprise.for === name);
    if (found.length === 0) return null;
    return el(
        "section", {class: "surprises"}, el("h3", {}, "Nobody asked for this"),
        found.map(({text, help}) => [el("p", {}, text), el("p", {class: "note"}, help)]));
  }

  // "propagated from 'matmul'" leads there.
  originLink(origin) {
    const [, before, name, after] = /^(.*?)'(.*)'(.*)$/.exec(origin) ?? [];
    const index = this.model.indexOf.get(name);
    return index === undefined ? origin : [before, this.operatorLink(index, name), after];
  }

  firstCut(operator) {
    for (const side of ["operands", "results"])
      for (const [position, value] of operator[side].entries())
        if (pieceCount(parseSharding(value.sharding)) > 1) return {side, position};
    if (operator.results.length > 0) return {side: "results", position: 0};
    return operator.operands.length > 0 ? {side: "operands", position: 0} : null;
  }

  pictures(index, shown) {
    const {report} = this.model, operator = report.operators[index];
    const count = operator.operands.length + operator.results.length;
    const size = count <= 3 ? 132 : count <= 4 ? 104 : 84;
    const picture = (side) => (value, position) => el(
        "button", {
          type: "button",
          class: "tensor",
          "aria-pressed": String(shown.side === side && shown.position === position),
          onclick: () => {
            this.show({kind: "operator", node: {index}}, {side, position});
            this.element.querySelector(".tensor[aria-pressed=true]").focus();
          },
        },
        el("b", {}, breakable(value.name)), tensorPicture(value, report.devices, size),
        el("span", {}, shapeText(value.shape)), el("span", {class: "local"}, this.localText(value)));
    return el(
        "div", {class: "pictures"}, operator.operands.map(picture("operands")), el("span", {class: "arrow"}, "→"),
        operator.results.map(picture("results")));
  }

  // The shape of rank 0, and that of the largest piece where it is another one.
  localText(value) {
    const first = shapeText(localShape(value, 0)), largest = shapeText(value.local_shape);
    return "rank 0: " + first + (first === largest ? "" : ", at most " + largest);
  }

  tensorPart(index, {side, position}) {
    const {report, producerOf} = this.model;
    const value = report.operators[index][side][position];
    const producer = side === "operands" ? producerOf.get(value.name) : undefined;
    const made =
        producer === undefined ? null : report.operators[producer].results.find(({name}) => name === value.name);
    const source = side === "results" ? null :
        producer === undefined        ? "a parameter, an input or a constant" :
                                        [
                                   "from ", this.operatorLink(producer, report.operators[producer].name),
                                   made.sharding === value.sharding ?
                                              ", which leaves it so" :
                                              [", which leaves it as ", el("code", {}, made.sharding)]
                                 ];
    return el(
        "section", {class: "devices"}, el("h3", {}, value.name, " ", el("code", {}, value.sharding)),
        el("p", {}, shardingSentence(value, report.devices), source ? [" · ", source] : null),
        deviceGrid(value, report.devices, this.width()));
  }

  // Those that it needs, and those that complete its results on the way to others; as msc explain --op.
  causedBy({name, op}) {
    return this.model.report.collectives.filter(
        (collective) => collective.for === name || collective.reason.includes(`${op} '${name}' `) ||
            collective.reason.includes(`' (${name}) `));
  }

  collectiveTable(collectives) {
    if (collectives.length === 0) return el("section", {}, el("p", {class: "note"}, "It causes no collectives."));
    return el(
        "section", {}, el("h3", {}, "Collectives that it causes"),
        table(
            ["Phase", "Collective", "Bytes", "Time", "Reason"],
            collectives.map(
                (collective) => [
                    [collective.phase, el("small", {}, groupsText(collective.groups))],
                    el("span", {class: collective.phase}, el("span", {class: "kind"}, collective.kind)),
                    bytesText(collective.bytes), timeText(collective.predicted_us), collective.reason])));
  }

  alternatives(operator) {
    const {alternatives, selected} = this.model.report;
    if (!alternatives || selected !== operator.name) return null;
    const most = Math.max(...alternatives.map(({step_us}) => step_us));
    const reference = alternatives.find(({chosen}) => chosen)?.step_us;
    const more = ({step_us, exact, chosen}) => {
      if (chosen) return " · chosen";
      return reference === undefined || (!exact && step_us < reference) ?
          "" :
          ` · ${step_us < reference ? "−" : "+"}${timeText(Math.abs(step_us - reference))}`;
    };
    return el(
        "section", {}, el("h3", {}, "Its strategies, what a step then takes, and what a rank needs"),
        el("p", {class: "note"}, `In the model of the search; ${this.model.othersStay ? "all other operators stay as they are" : "all operators that nobody configured follow or choose anew"}.`),
        alternatives.map(
            (alternative) =>
                bar(tupleText(alternative.in_strategy), alternative.step_us / most,
                    (alternative.exact ? "" : "at least ") + timeText(alternative.step_us) + more(alternative) + (alternative.peak_bytes ? ` · ${bytesText(alternative.peak_bytes)}` : ""), alternative.chosen ? "chosen" : "compute")));
  }

  collective(collective) {
    const {report} = this.model, index = this.model.indexOf.get(collective.for);
    const cause = this.model.indexOf.get(collective.cause), next = collective.next_best;
    return [
      el("h2", {}, el("span", {class: "kind"}, collective.kind), " ", el("span", {class: "op"}, collective.phase)),
      el("p", {}, collective.reason),
      factList([
        ["for", index === undefined ? collective.for : this.operatorLink(index, collective.for)],
        ["caused by", cause === undefined ? collective.cause : this.operatorLink(cause, collective.cause)],
        [
          "its next best", next ? [
            el("code", {}, tupleText(next.in_strategy)),
            ` ${next.more_us < 0 ? "−" : "+"}${timeText(Math.abs(next.more_us))}: a step takes ${timeText(next.step_us)}, ${this.model.othersStay ? "the others as they are" : "all that nobody configured chosen anew"}${next.peak_bytes ? `; a rank needs ${bytesText(next.peak_bytes)}` : ""}${next.instead_of_users ? "; instead of what you gave" : ""}`
          ] :
                                  ""
        ],
        ["place", collective.location],
        ["bytes", `${bytesText(collective.bytes)} received per rank, at most`],
        ["time", `${timeText(collective.predicted_us)} predicted on ${report.machine}`],
        [
          "tensors", collective.tensors > 1 ? `${collective.tensors} at once; operator and reason are of the first` : ""
        ],
        ["groups", groupsText(collective.groups)],
        ["name", el("span", {class: "scope"}, collective.name)],
      ]),
      el("section", {class: "devices"}, el("h3", {}, "Groups"),
         groupGrid(collective.groups, report.devices, [], this.width())),
    ];
  }

  cell(node) {
    const {report} = this.model, collectives = [];
    for (let index = node.first; index <= node.last; ++index) collectives.push(...this.model.collectivesOf(index));
    const kinds = totalsBy(collectives, ({kind, phase}) => phase + " " + kind);
    const operators = totalsBy(
        report.operators.slice(node.first, node.last + 1).map(({op}) => ({op, bytes: 0, predicted_us: 0})),
        ({op}) => op);
    return [
      el("h2", {}, node.label, " ", el("span", {class: "op"}, node.kind === "alike" ? "alike cells" : "cell")),
      node.kind === "alike" ?
          el("p", {},
             `${node.children.length} cells with the strategies, shapes and collectives of ${node.model.label}.`) :
          null,
      factList([
        ["operators", [...operators].map(([op, {count}]) => (count > 1 ? count + " " : "") + op).join(", ")],
        [
          "collectives",
          `${collectives.length}, ${bytesText(sumOf(collectives, ({bytes}) => bytes))} received per rank, ${
              timeText(sumOf(collectives, (c) => c.predicted_us))}`
        ],
      ]),
      collectives.length === 0 ?
          null :
          table(
              ["Collective", "Count", "Bytes", "Time"],
              [...kinds].map(
                  ([kind, total]) => [kind, String(total.count), bytesText(total.bytes), timeText(total.us)])),
    ];
  }
}

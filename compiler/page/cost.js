// Bars of time and memory.

/** A bar with its name and figure; `share` of the longest one, 0 to 1. */
function bar(name, share, figure, kind, onclick) {
  const content = [
    el("span", {class: "bar-name"}, name),
    el("span", {class: "track"}, el("span", {class: "fill " + kind, "--share": Math.max(share, 0).toFixed(4)})),
    el("span", {class: "figure"}, figure)
  ];
  return onclick ? el("button", {type: "button", class: "bar", onclick}, content) : el("div", {class: "bar"}, content);
}

/** Bars of [name, value, figure, kind, onclick?], all to one scale. */
function bars(title, entries, note = null) {
  if (entries.length === 0) return null;
  const most = Math.max(...entries.map(([, value]) => value), Number.MIN_VALUE);
  return el(
      "section", {}, el("h3", {}, title), note ? el("p", {class: "note"}, note) : null,
      entries.map(([name, value, figure, kind, onclick]) => bar(name, value / most, figure, kind, onclick)));
}

/** One bar of parts of a whole, with a legend. */
function stack(title, parts, wholeText) {
  const whole = sumOf(parts, ([, value]) => value);
  const piece = ([name, value, figure, kind]) =>
      el("span", {class: "fill " + kind, "--share": (value / whole).toFixed(4), title: name + " " + figure});
  const shareText = (value) => whole > 0 ? ` (${((100 * value) / whole).toFixed(1)} %)` : "";
  const legend = ([name, value, figure, kind]) =>
      el("span", {}, el("i", {class: "fill " + kind}), `${name} ${figure}${shareText(value)}`);
  return el(
      "section", {}, el("h3", {}, title, " ", el("span", {class: "op"}, wholeText)),
      el("div", {class: "stack"}, parts.filter(([, value]) => value > 0).map(piece)),
      el("p", {class: "legend"}, parts.map(legend)));
}

const passNames = {
  reuse: "statistics kept",
  partial_sums: "sums completed once",
  moves: "moves",
  comm_fusion: "fused collectives",
  overlap: "overlap"
};

function searchText(search) {
  if (!search || search.optimal === null || search.optimal === undefined) return "";
  const gap = search.gap === null || search.gap === undefined ?
      "" :
      `, at most ${(100 * search.gap).toFixed(1)} % above the least`;
  if (search.taken === "fastest plan")
    return `fastest plan of ${search.candidates}` + (gap && gap + " in the model");
  return search.optimal ? "proven optimal in the model" : "not proven optimal" + gap;
}

function timeParts(report) {
  const {cost, savings} = report;
  const hidden = (savings ?? []).find(({pass}) => pass === "overlap")?.us ?? 0;
  return [
    stack(
        "A step",
        [
          ["compute", cost.compute_us, timeText(cost.compute_us), "compute"],
          ["communication", cost.communication_us, timeText(cost.communication_us), "communication"]
        ],
        timeText(cost.step_us)),
    el("p", {class: "note"},
       `Predicted on ${report.machine}, all phases.` +
           (hidden > 0 ? ` Computation hides ${timeText(hidden)} of the communication.` : "")),
  ];
}

function communicationParts(report, onCollective) {
  const {collectives} = report;
  if (collectives.length === 0) return [el("p", {class: "note"}, "No collectives: nothing is communicated.")];
  const entries = (totals) => [...totals].map(
      ([name, {count, bytes, us}]) => [name, us, `${timeText(us)} · ${bytesText(bytes)} · ${count}`, "communication"]);
  const isSplit = (totals) => totals.size > 1 || collectives.length > 1;
  const phases = totalsBy(collectives, ({phase}) => phase), kinds = totalsBy(collectives, ({kind}) => kind);
  const largest = [...collectives].sort((a, b) => b.predicted_us - a.predicted_us || a.index - b.index).slice(0, 8);
  return [
    bars("Communication by phase", entries(phases), "Time, bytes received per rank (at most), number of collectives."),
    isSplit(kinds) ? bars("Communication by collective", entries(kinds)) : null,
    bars(
        "Longest collectives",
        largest.map(
            (c) =>
                [`${c.kind} for ${c.for}, ${c.phase}`, c.predicted_us,
                 `${timeText(c.predicted_us)} · ${bytesText(c.bytes)}`, "communication", () => onCollective(c)])),
  ];
}

function savingParts(report) {
  const saved = (report.savings ?? []).filter(({bytes, us}) => bytes !== 0 || us !== 0);
  if (saved.length === 0) return [];
  return [bars(
      "Saved by the communication passes",
      saved.map(
          ({pass, bytes, us}) =>
              [passNames[pass] ?? pass, Math.max(us, 0), timeText(us) + (bytes !== 0 ? " · " + bytesText(bytes) : ""),
               "saved"]))];
}

const surpriseNames = {
  replication: "computed several times",
  gather: "gathers a whole parameter",
  imbalance: "uneven pieces"
};

function surpriseParts(report, onOperator) {
  const found = [...(report.surprises ?? [])].sort((a, b) => b.us - a.us).slice(0, 8);
  return [bars(
      "Nobody asked for this",
      found.map(
          (surprise) =>
              [surprise.for, surprise.us, `${surpriseNames[surprise.kind] ?? surprise.kind} · ${timeText(surprise.us)}`,
               "surprise", () => onOperator(surprise.for)]),
      "What a step takes for it; the operators say more, and name a repair.")];
}

/** Elements on one rank of the largest tensors, each once. */
function largestTensors(report) {
  const elements = new Map();
  report.operators.forEach((operator, index) => {
    for (const side of ["operands", "results"])
      operator[side].forEach(({name, local_shape}, position) => {
        const count = local_shape.reduce((product, size) => product * size, 1);
        if (!(elements.get(name)?.count >= count)) elements.set(name, {count, index, side, position});
      });
  });
  return [...elements].sort(([, a], [, b]) => b.count - a.count).slice(0, 8);
}

function memoryParts(report, onTensor) {
  const {parameter_bytes, peak_bytes} = report.memory, other = Math.max(0, peak_bytes - parameter_bytes);
  return [
    stack(
        "Memory of a rank",
        [
          ["parameters and states", parameter_bytes, bytesText(parameter_bytes), "parameters"],
          ["values and gradients at their peak", other, bytesText(other), "values"]
        ],
        bytesText(peak_bytes)),
    bars(
        "Largest tensors of the forward phase on a rank",
        largestTensors(report).map(
            ([
              name, {count, index, side, position}
            ]) => [name, count, countText(count, "element"), "values", () => onTensor(index, side, position)])),
  ];
}

function compileParts(report) {
  const timing = Object.entries(report.timing ?? {}).sort(([, a], [, b]) => b - a).slice(0, 6);
  return timing.length === 0 ?
      [] :
      [bars("Compiling took", timing.map(([phase, seconds]) => [phase, seconds, timeText(seconds * 1e6), "saved"]))];
}

function costPanel(report, {onCollective, onTensor, onOperator}) {
  const search = searchText(report.search);
  return [
    ...timeParts(report), search ? el("p", {class: "note"}, "Strategies: " + search + ".") : null,
    ...surpriseParts(report, onOperator), ...memoryParts(report, onTensor), ...communicationParts(report, onCollective), ...savingParts(report),
    ...compileParts(report)
  ].filter(Boolean);
}

// Reads the report, joins the parts, and listens.

const report = JSON.parse(document.getElementById("report").textContent);
const byId = (id) => document.getElementById(id);

function modelOf(report) {
  report.collectives.forEach((collective, index) => (collective.index = index));
  const indexOf = new Map(report.operators.map(({name}, index) => [name, index]));
  const ofOperator = report.operators.map(() => []);
  for (const collective of report.collectives)
    ofOperator[indexOf.get(collective.for) ?? report.operators.length - 1]?.push(collective);
  const producerOf = new Map();
  report.operators.forEach(({results}, index) => results.forEach(({name}) => producerOf.set(name, index)));
  const collectivesOf = (index) => ofOperator[index];
  const nodes = treeOf(report.operators, collectivesOf);
  const phases = new Set(["forward", "backward", "update"]);
  return {
    report,
    nodes,
    indexOf,
    /** Only auto_parallel decides others anew. */
    othersStay: report.parallel_mode !== "auto_parallel",
    producerOf,
    collectivesOf,
    phases,
    isShown: ({phase}) => phases.has(phase),
    open: openAtFirst(nodes, report.operators.length <= 60)
  };
}

function writeHeader() {
  const {devices, mesh, machine} = report;
  const axes = mesh ? " (" + Object.entries(mesh).map(([name, size]) => `${name} ${size}`).join(", ") + ")" : "";
  const refusal = refusalText(report.memory.limit);
  byId("title").textContent = report.network + refusal;
  document.title = `${report.network} on ${countText(devices, "device")}` + refusal;
  const mode = report.parallel_mode +
      (report.parallel_mode === "auto_parallel" && report.search_mode ? ", " + report.search_mode : "");
  const search = searchText(report.search);
  byId("facts").textContent = [
    `${countText(devices, "device")}${axes}`, mode + (search ? ` (${search})` : ""), machine,
    "step " + timeText(report.cost.step_us), bytesText(report.memory.peak_bytes) + " per rank",
    countText(report.operators.length, "operator"), countText(report.collectives.length, "collective")
  ].join(" · ");
  byId("facts").title = byId("facts").textContent;
}

const model = modelOf(report);
const panel = new SelectionPanel(byId("selection"), model, (index) => selectOperator(index));
const graph = new Graph(byId("graph"), model, {onSelect: select, onTensor: selectTensor, onEnter: enter});

// Enter leads from the list to the tensors of an operator, Escape back.
function enter(row) {
  select(row);
  byId("selection").querySelector("button")?.focus();
}

function select(row, tensor = null) {
  if (!row) return;
  graph.select(row.key);
  panel.show(row, tensor);
  openTab("selection");
}

function selectKey(key, tensor) { select(graph.rows[graph.rowOfKey.get(key)], tensor); }

function selectOperator(index, tensor) {
  graph.reveal(index);
  selectKey("o" + index, tensor);
}

function selectTensor(index, side, position) { selectOperator(index, {side, position}); }

function selectCollective(collective) {
  model.phases.add(collective.phase);
  writePhases();
  graph.reveal(model.indexOf.get(collective.for) ?? report.operators.length - 1);
  selectKey("k" + collective.index);
}

// The tabs stand side by side on wide screens; then both panels are in sight.
function openTab(name) {
  for (const tab of ["selection", "cost"]) {
    byId("tab-" + tab).setAttribute("aria-selected", String(tab === name));
    byId("tab-" + tab).tabIndex = tab === name ? 0 : -1;
    byId(tab).classList.toggle("hidden", tab !== name);
  }
}

for (const tab of ["selection", "cost"]) {
  byId("tab-" + tab).addEventListener("click", () => openTab(tab));
  byId("tab-" + tab).addEventListener("keydown", ({key}) => {
    if (key !== "ArrowLeft" && key !== "ArrowRight") return;
    const other = tab === "cost" ? "selection" : "cost";
    openTab(other);
    byId("tab-" + other).focus();
  });
}

function writePhases() {
  byId("phases").replaceChildren("Collectives: ", ...["forward", "backward", "update"].map((phase) => {
    const count = report.collectives.filter((collective) => collective.phase === phase).length;
    return el(
        "label", {}, el("input", {
          type: "checkbox",
          checked: model.phases.has(phase),
          disabled: count === 0,
          onchange: ({target}) => {
            if (target.checked) model.phases.add(phase);
            else model.phases.delete(phase);
            graph.update();
          },
        }),
        `${phase} ${count}`);
  }));
}

byId("unfold").addEventListener("click", () => {
  walk(model.nodes, (node) => node.children && model.open.add(node.key));
  graph.update();
});
byId("fold").addEventListener("click", () => {
  model.open.clear();
  graph.update();
});

byId("graph").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target !== byId("graph")) return;
  if (graph.press(event.key)) event.preventDefault();
});

// Search: by the name of an operator, a cell, an operator's kind or a tensor.
const found = {
  query: "",
  indices: [],
  at: -1
};

function search(query) {
  const wanted = query.trim().toLowerCase();
  found.query = wanted;
  const has = (text) => text.toLowerCase().includes(wanted);
  found.indices = wanted === "" ?
      [] :
      report.operators.flatMap(
          ({name, op, operands, results}, index) =>
              has(name) || has(op) || operands.some(({name}) => has(name)) || results.some(({name}) => has(name)) ?
              [index] :
              []);
  found.indices.sort((a, b) => has(report.operators[b].name) - has(report.operators[a].name) || a - b);
  graph.highlight = new Set(found.indices.map((index) => "o" + index));
  found.at = -1;
  graph.forget();
  if (found.indices.length > 0) goToMatch(0);
  else graph.draw();
  writeMatches();
}

function goToMatch(at) {
  const count = found.indices.length;
  if (count === 0) return;
  found.at = (at + count) % count;
  const index = found.indices[found.at];
  const operator = report.operators[index], has = ({name}) => name.toLowerCase().includes(found.query);
  const side = operator.name.toLowerCase().includes(found.query) ?
      null :
      ["operands", "results"].find((side) => operator[side].some(has));
  selectOperator(index, side ? {side, position: operator[side].findIndex(has)} : null);
  writeMatches();
}

function writeMatches() {
  const count = found.indices.length;
  byId("matches").textContent = found.query === "" ? "" : count === 0 ? "no match" : `${found.at + 1} of ${count}`;
}

byId("query").addEventListener("input", ({target}) => search(target.value));
byId("query").addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    event.target.value = "";
    search("");
    byId("graph").focus();
  }
});
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  goToMatch(found.at + 1);
});

// The theme: that of the system until the switch is used.
const themes = ["auto", "light", "dark"];
let theme = "auto";

function setTheme(name) {
  theme = themes.includes(name) ? name : "auto";
  document.documentElement.dataset.theme = theme;
  byId("theme").textContent = {auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark"}[theme];
  byId("theme").setAttribute("aria-label", `Theme: ${theme}. Change it`);
}

byId("theme").addEventListener("click", () => setTheme(themes[(themes.indexOf(theme) + 1) % themes.length]));

document.addEventListener("keydown", (event) => {
  if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") {
    event.preventDefault();
    byId("query").focus();
    byId("query").select();
  } else if (event.key === "Escape") {
    byId("graph").focus();
  } else if (event.key === "t") {
    setTheme(themes[(themes.indexOf(theme) + 1) % themes.length]);
  }
});

// net.html#op=NAME&tab=cost&theme=dark opens the page there.
const asked = new URLSearchParams(location.hash.slice(1));
writeHeader();
writePhases();
setTheme(asked.get("theme"));
byId("cost").replaceChildren(...costPanel(report, {
  onCollective: selectCollective,
  onTensor: selectTensor,
  onOperator: (name) => selectOperator(model.indexOf.get(name) ?? 0)
}));
if (report.operators.length > 0) selectOperator(model.indexOf.get(asked.get("op") ?? report.selected) ?? 0);
else panel.show(null);
openTab(asked.get("tab") === "cost" ? "cost" : "selection");

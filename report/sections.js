// The parts below the charts: events, traffic, memory, stragglers, configuration, machine, sample.

const FEW_RANKS = 8;
const MEMORY_PAINTS = 6;

/** The same for each run that has something to say; with several runs, under the run's name. */
function perRun(runs, build) {
  const blocks = runs.map((run, i) => [run, i, build(run)]).filter(([, , block]) => block !== null);
  if (blocks.length === 0) return null;
  return make("div", {class: runs.length > 1 ? "runs" : ""}, blocks.map(([run, i, block]) =>
    card({}, runs.length > 1 ? make("h3", {}, runName(run, i)) : null, block)));
}

function sectionOf(id, title, content) {
  return content === null ? null : section(id, title, content);
}

function eventsSection(runs) {
  return sectionOf("events", "Events", perRun(runs, (run) => run.events.length === 0 ? null
    : make("ul", {class: "events"}, run.events.map((event) => make("li", {},
      make("span", {class: "when"}, whereOf(event)),
      make("span", {}, event.kind ? make("span", {class: "kind"}, event.kind) : null, " ", event.text))))));
}

function whereOf({step, rank}) {
  const places = [isNumber(step) ? "step " + formatNumber(step) : "", isNumber(rank) ? "rank " + rank : ""];
  return places.filter(Boolean).join(", ") || "run";
}

function trafficSection(runs) {
  return sectionOf("traffic", "Bytes moved", perRun(runs, (run) => {
    if (run.traffic.length === 0) return null;
    const total = sum(run.traffic.map((row) => row.bytes));
    const steps = run.steps.step.length > 0 ? last(run.steps.step) - run.steps.step[0] + 1 : null;
    const rows = [...run.traffic].sort((a, b) => b.bytes - a.bytes).map((row) =>
      [String(row.operation), row.axis ?? MISSING, formatNumber(row.calls),
      barAnd(ratio(row.bytes, total), formatBytes(row.bytes)), formatBytes(ratio(row.bytes, steps))]);
    return make("div", {}, make("p", {class: "sentence"}, `${formatBytes(total)} by operation and mesh axis, each rank.`),
      table("Bytes by operation and mesh axis",
        [{name: "operation"}, {name: "axis"}, {name: "calls", number: true}, {name: "bytes", number: true},
        {name: "per step", number: true}], rows));
  }));
}

function memorySection(runs) {
  const top = most(runs.flatMap((run) => [...memoryTotals(run.memory), ...kindTotals(run.memory)]));
  return sectionOf("memory", "Memory", perRun(runs, (run) => run.memory.ranks === 0 ? null : memoryBlock(run.memory, top)));
}

function kindTotals({bytes, ranks}) {
  return [...Array(ranks).keys()].map((rank) => sum(bytes.map((ofKind) => ofKind[rank])));
}

function memoryBlock(memory, top) {
  const {kinds, bytes, resident, ranks} = memory;
  const totals = memoryTotals(memory);
  const all = [...Array(ranks).keys()];
  const row = (rank) => make("li", {}, make("span", {class: "rank"}, "rank " + rank),
    make("span", {class: "stack", "aria-hidden": "true"}, kinds.map((kind, i) => {
      const part = make("span", {class: "memory-" + (i % MEMORY_PAINTS), title: `${kind} ${formatBytes(bytes[i][rank])}`});
      part.style.width = 100 * (ratio(bytes[i][rank], top) ?? 0) + "%";
      return part;
    })), make("span", {class: "number"}, formatBytes(totals[rank])));
  const list = (ofRanks) => make("ul", {class: "stacks"}, ofRanks.map(row));
  const columns = [{name: "rank", number: true}, ...kinds.map((name) => ({name, number: true})),
    ...(resident.length > 0 ? [{name: "resident", number: true}] : [])];
  return make("div", {},
    make("ul", {class: "legend still"}, kinds.map((kind, i) => legendItem("area memory-" + (i % MEMORY_PAINTS), kind))),
    list(all.slice(0, FEW_RANKS)),
    ranks > FEW_RANKS ? folded(`${ranks - FEW_RANKS} more ranks`, () => list(all.slice(FEW_RANKS))) : null,
    folded("As a table", () => table("Memory by kind and rank", columns,
      all.map((rank) => [String(rank), ...bytes.map((ofKind) => formatBytes(ofKind[rank])),
        ...(resident.length > 0 ? [formatBytes(resident[rank])] : [])]))),
    make("p", {class: "note"}, resident.length > 0
      ? "Bars: the most that each kind held. Figures: the most that the rank’s process held."
      : "The most that each kind held."));
}

function stragglersSection(runs) {
  return sectionOf("stragglers", "Stragglers",
    perRun(runs, (run) => run.stragglers.length < 2 ? null : stragglersBlock(run)));
}

function stragglersBlock(run) {
  const counted = sum(run.stragglers.map((row) => row.times_last));
  const sorted = [...run.stragglers].sort((a, b) => b.times_last - a.times_last);
  const mean = (row) => ratio(row.late_ms, row.times_last);
  const lines = (rows) => table("How often each rank was last",
    [{name: "rank"}, {name: "last in", number: true}, {name: "by, on average", number: true},
    {name: "at most", number: true}], rows.map((row) => ["rank " + row.rank,
    barAnd(ratio(row.times_last, counted), formatNumber(row.times_last)), formatMs(mean(row)), formatMs(row.most_late_ms)]));
  const first = sorted[0];
  return make("div", {},
    make("p", {class: "sentence"}, counted > 0
      ? `Rank ${first.rank} was last most often: in ${formatNumber(first.times_last)} of ${countOf(counted, "step")}, ` +
      `by ${formatMs(mean(first))} on average and ${formatMs(first.most_late_ms)} at most.` : "No rank was late."),
    lines(sorted.slice(0, FEW_RANKS)),
    sorted.length > FEW_RANKS
      ? folded(`${sorted.length - FEW_RANKS} more ranks`, () => lines(sorted.slice(FEW_RANKS))) : null);
}

/** Of one run: a small table for each group of settings, and one for the machine. */
function settingsOf(run) {
  const groups = new Map();
  for (const [key, value] of run.configuration) {
    const dot = key.indexOf(".");
    const group = dot > 0 ? key.slice(0, dot) : "general";
    groups.set(group, [...(groups.get(group) ?? []), [dot > 0 ? key.slice(dot + 1) : key, value]]);
  }
  const columns = [{name: "setting"}, {name: "value", number: true}];
  const block = (id, title, rows) => make("div", {id}, make("h3", {}, title),
    table(title, columns, rows.map(([key, value]) => [key, formatSetting(key, value)]), {class: "settings"}));
  const blocks = [...groups].map(([group, rows]) => block(null, group, rows));
  if (run.machine.length > 0) blocks.push(block("machine", "machine", run.machine));
  if (blocks.length === 0) return null;
  return section("configuration", "Configuration and machine", card({class: "settings-grid"}, blocks));
}

/** Of several runs: one table; where runs differ, the row is marked. */
function settingsSideBySide(id, title, runs) {
  const maps = runs.map((run) => new Map(run[id]));
  const keys = [...new Set(maps.flatMap((map) => [...map.keys()]))].filter(Boolean);
  if (keys.length === 0) return null;
  const rows = keys.map((key) => {
    const differ = new Set(maps.map((map) => JSON.stringify(map.get(key)))).size > 1;
    const values = maps.map((map) => formatSetting(key, map.get(key)));
    return [key, ...values.map((value) => (differ ? make("strong", {class: "differs"}, value) : value))];
  });
  const columns = [{name: "setting"}, ...runs.map((run, i) => ({name: runName(run, i)}))];
  return section(id, title, card({}, table(title, columns, rows, {class: "settings"}),
    make("p", {class: "note"}, "Bold: not the same in all runs.")));
}

function settingsSections(runs) {
  if (runs.length === 1) return [settingsOf(runs[0])];
  return [settingsSideBySide("configuration", "Configuration", runs), settingsSideBySide("machine", "Machine", runs)];
}

/** Two short parts beside each other, where the page is wide enough. */
function pair(left, right) {
  return left && right ? make("div", {class: "pair"}, left, right) : left ?? right;
}

function sampleSection(runs) {
  return sectionOf("sample", "What it writes", perRun(runs, (run) => run.sample.text === "" ? null
    : make("blockquote", {class: "sample"}, run.sample.prompt ? make("b", {}, run.sample.prompt) : null, run.sample.text)));
}

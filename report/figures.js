// The main figures: as tiles for one run, as a table for several.

const FIGURES = [
  {id: "loss", name: "Loss, last step", value: (run) => last(run.steps.loss), format: formatNumber, better: "less"},
  {id: "evaluation", name: "Evaluation loss, last", value: (run) => last(run.evaluation.loss), format: formatNumber,
    better: "less"},
  {id: "tokens_per_s", name: "Tokens per second, median", value: (run) => median(run.steps.tokens_per_s),
    format: formatNumber, better: "more"},
  {id: "step_ms", name: "Step time, median", value: (run) => median(run.steps.step_ms), format: formatMs, better: "less"},
  {id: "hidden", name: "Communication hidden", format: formatShare, better: "more",
    value: (run) => ratio(sum(run.steps.hidden_ms), sum(run.steps.communication_ms))},
  {id: "exposed", name: "Exposed, of step time", format: formatShare, better: "less",
    value: (run) => (run.steps.exposed_ms === null ? null : ratio(sum(run.steps.exposed_ms), sum(run.steps.step_ms)))},
  {id: "memory", name: "Memory, largest rank", value: (run) => most(memoryTotals(run.memory)), format: formatBytes,
    better: "less"},
  {id: "duration", name: "Duration", value: (run) => run.duration_s, format: formatDuration, better: null},
];

/** What each rank held at its peak: measured as a whole where it was, otherwise added up. */
function memoryTotals({bytes, resident, ranks}) {
  return [...Array(ranks).keys()].map((rank) => resident[rank] ?? sum(bytes.map((ofKind) => ofKind[rank])));
}

function figureTiles(run) {
  const known = FIGURES.map((figure) => [figure, figure.value(run)]).filter(([, value]) => isNumber(value));
  if (known.length === 0) return null;
  return make("dl", {class: "tiles"}, known.map(([figure, value]) =>
    make("div", {"data-figure": figure.id}, make("dt", {}, figure.name), make("dd", {}, figure.format(value)))));
}

/** The best of each row is marked, when there is a better and a worse. */
function comparison(runs) {
  const rows = FIGURES.map((figure) => [figure, runs.map(figure.value)]).filter(([, values]) => values.some(isNumber));
  const cells = rows.map(([figure, values]) => {
    const known = values.filter(isNumber);
    const extreme = figure.better === "more" ? Math.max : Math.min;
    const best = figure.better === null || new Set(known).size < 2 ? null : extreme(...known);
    return [figure.name, ...values.map((value) => value !== null && value === best
      ? make("strong", {class: "best"}, figure.format(value)) : figure.format(value))];
  });
  const about = [["Ranks", ...runs.map((run) => formatNumber(run.ranks))],
    ["Steps", ...runs.map((run) => formatNumber(last(run.steps.step)))]];
  return section("comparison", "Side by side",
    card({}, table("Main figures by run", [{name: ""}, ...runs.map((run, i) => ({name: runName(run, i), number: true}))],
    [...about, ...cells], {class: "comparison"}),
    make("p", {class: "note"}, "Bold: the better one.")));
}

function runName(run, i) {
  const swatch = make("span", {class: "swatch area", "aria-hidden": "true"});
  swatch.style.color = `var(${runPaint(i)})`;
  return make("span", {class: "run-name"}, swatch, run.name);
}

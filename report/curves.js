// Which charts there are. One run: its curves in the accent, time as a stack. Several: one curve for each run, in its colour.

const RUN_PAINTS = ["--run-1", "--run-2", "--run-3", "--run-4", "--run-5", "--run-6"];
const RUN_DASHES = [undefined, [7, 3], [2, 3], [9, 3, 2, 3], [4, 4], [12, 4]];
const SPLIT_NAMES = {forward_ms: ["Forward", "--forward"], backward_ms: ["Backward", "--backward"],
  exposed_ms: ["Exposed synchronization", "--exposed"], optimizer_ms: ["Optimizer", "--optimizer"]};

const runPaint = (i) => RUN_PAINTS[i % RUN_PAINTS.length];

function oneColumn(runs, column) {
  return runs.map((run, i) => ({name: runs.length > 1 ? run.name : column.name, step: run.steps.step,
    values: run.steps[column.field],
    paint: runPaint(i), dash: RUN_DASHES[i % RUN_DASHES.length]}));
}

function lossCurves(runs) {
  const training = oneColumn(runs, {name: "Training", field: "loss"});
  const evaluation = runs.map((run, i) => ({name: runs.length > 1 ? run.name + ", evaluation" : "Evaluation",
    step: run.evaluation.step,
    values: run.evaluation.loss, paint: runs.length > 1 ? runPaint(i) : "--ink", dash: [1, 3], dots: true}));
  return [...training, ...evaluation];
}

function timeChart(runs) {
  if (runs.length > 1) {
    return {id: "time", title: "Step time", unit: "ms", wide: true, fromZero: true, format: formatMs,
      curves: oneColumn(runs, {name: "Step", field: "step_ms"})};
  }
  const {steps} = runs[0];
  return {id: "time", title: "Where a step’s time goes", unit: "ms, mean of ranks", wide: true, fromZero: true, stacked: true,
    format: formatMs,
    curves: SPLIT.map((field) => ({name: SPLIT_NAMES[field][0], step: steps.step, values: steps[field],
      paint: SPLIT_NAMES[field][1]}))};
}

function chartSections(runs) {
  const events = [...new Set(runs.flatMap((run) => run.events.map((event) => event.step)))].filter(isNumber);
  const cards = (specs) => make("div", {class: "charts"}, specs.map((spec) => chartCard({...spec, events})));
  const learning = cards([
    {id: "loss", title: "Loss", unit: "nats per token", wide: true, format: formatNumber, curves: lossCurves(runs)},
    {id: "gradient_norm", title: "Gradient norm", unit: "before clipping", format: formatNumber,
      curves: oneColumn(runs, {name: "Gradient norm", field: "gradient_norm"})},
    {id: "learning_rate", title: "Learning rate", unit: "", fromZero: true, format: formatNumber,
      curves: oneColumn(runs, {name: "Learning rate", field: "learning_rate"})}]);
  const speed = cards([
    timeChart(runs),
    {id: "throughput", title: "Throughput", unit: "tokens/s, all ranks", fromZero: true,
      format: (value) => formatNumber(value) + SPACE + "tokens/s",
      curves: oneColumn(runs, {name: "Throughput", field: "tokens_per_s"})},
    {id: "hidden", title: "Communication hidden", unit: "% of its time", top: 100,
      format: (value) => formatShare(value / 100),
      curves: runs.map((run, i) => ({...oneColumn(runs, {name: "Hidden", field: "hidden_ms"})[i],
        values: hiddenPercent(run.steps)}))}]);
  const split = splitCard(runs);
  if (split !== null) speed.prepend(split);
  if (charts.length === 0) return [section("learning", "Steps", make("p", {class: "empty"}, "No step was recorded."))];
  const hint = make("div", {class: "hint"},
    make("p", {class: "muted"}, chooseHint(), make("span", {class: "by-mouse"}, "Drag to zoom.")), zoomButton());
  return [learning, speed].map((grid, i) => [grid, i]).filter(([grid]) => grid.childElementCount > 0)
    .map(([grid, i], place) => section(["learning", "speed"][i], ["Learning", "Speed"][i], place === 0 ? hint : null, grid));
}

function hiddenPercent({hidden_ms: hidden, communication_ms: communication}) {
  if (hidden === null || communication === null) return null;
  return hidden.map((value, i) => (communication[i] > 0 && value !== null ? 100 * value / communication[i] : null));
}

/** A click on a chart changes what may be out of sight: a link leads there. */
function chooseHint() {
  if (choice.steps.length === 0) return null;
  const link = make("a", {href: "#timeline"});
  const update = () => { link.textContent = `timeline of step ${formatNumber(choice.step)}`; };
  choice.listeners.push(update);
  update();
  return make("span", {}, "Choose a step in any chart: ", link, ". ");
}

// Puts the page together.

function header(runs) {
  const one = runs.length === 1 ? runs[0] : null;
  return make("header", {}, make("div", {class: "title"},
    make("p", {class: "brand"}, "Tutti · training report"),
    make("h1", {}, one ? one.name : runs.length > 1 ? `${runs.length} runs` : "No run"),
    ...runs.map((run, i) => make("p", {class: "about"}, one ? null : [make("strong", {}, runName(run, i)), " · "],
      aboutRun(run)))), themeSwitch());
}

function aboutRun(run) {
  const mesh = run.mesh.filter((axis) => axis.axis).map((axis) => `${axis.axis}=${axis.size}`).join(", ");
  const ranks = run.ranks === null ? "" : countOf(run.ranks, "rank") + (mesh ? ` (${mesh})` : "");
  const steps = run.steps.step.length === 0 ? "no steps" : countOf(last(run.steps.step), "step");
  const when = new Date(run.started);
  const started = Number.isNaN(when.getTime()) ? ""
    : "started " + when.toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"});
  return [ranks, steps + (run.duration_s === null ? "" : " in " + formatDuration(run.duration_s)), run.status, started]
    .filter(Boolean).join(" · ");
}

function start() {
  const {runs, problems} = readRuns(document.getElementById("data").textContent);
  choice.start(runs);
  document.title = (runs.length > 0 ? runs.map((run) => run.name).join(", ") : "No run") + " · Tutti";
  const parts = runs.length === 0 ? [] : [
    runs.length > 1 ? comparison(runs) : figureTiles(runs[0]),
    eventsSection(runs), ...chartSections(runs), timelineSection(runs),
    ...(runs.length > 1 ? [trafficSection(runs), stragglersSection(runs)]
      : [pair(trafficSection(runs), stragglersSection(runs))]),
    memorySection(runs), ...settingsSections(runs), sampleSection(runs)];
  document.getElementById("page").replaceChildren(header(runs),
    ...problems.map((problem) => make("p", {class: "problem", role: "alert"}, problem)),
    make("main", {}, ...parts.filter((part) => part !== null)));
  startCharts();
  document.documentElement.dataset.ready = "";
}

start();

// Where the time of a step goes, runs below each other: a stack over steps has no room for more than one run.

function splitCard(runs) {
  const parts = runs.map((run) => SPLIT.map((field) => median(run.steps[field])));
  const top = most(parts.map(sum));
  if (runs.length < 2 || top === null || top === 0) return null;
  const rows = runs.map((run, i) => make("li", {}, make("span", {class: "rank"}, runName(run, i)),
    make("span", {class: "stack", "aria-hidden": "true"}, SPLIT.map((field, part) => {
      const piece = make("span", {class: "paint-" + field.replace("_ms", ""),
        title: `${SPLIT_NAMES[field][0]} ${formatMs(parts[i][part])}`});
      piece.style.width = 100 * (ratio(parts[i][part], top) ?? 0) + "%";
      return piece;
    })), make("span", {class: "number"}, formatMs(sum(parts[i])))));
  return card({class: "chart-card wide", id: "split"},
    make("h3", {}, "Where a step’s time goes ", make("span", {class: "unit"}, "ms, median of steps")),
    make("ul", {class: "legend still"},
      SPLIT.map((field) => legendItem("area paint-" + field.replace("_ms", ""), SPLIT_NAMES[field][0]))),
    make("ul", {class: "stacks named"}, rows),
    folded("As a table", () => table("Where a step’s time goes",
      [{name: "run"}, ...SPLIT.map((field) => ({name: SPLIT_NAMES[field][0], number: true}))],
      runs.map((run, i) => [run.name, ...parts[i].map(formatMs)]))));
}

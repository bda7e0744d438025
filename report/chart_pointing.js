// Pointing at a chart: tooltip, zoom, click and keys; every chart follows the one that is pointed at.

const zoom = {range: null, button: null};

/** The nearest place that has a value: curves of several runs, and evaluations, do not share all steps. */
function nearestValue(values, at) {
  for (let far = 0; far < values.length; ++far) {
    if (isNumber(values[at - far])) return at - far;
    if (isNumber(values[at + far])) return at + far;
    if (values[at] === null) return at; // recorded, and not a number: no neighbour speaks for it
  }
  return at;
}

function showTip(chart) {
  const {plot, tip} = chart;
  const {left, idx} = plot.cursor;
  tip.hidden = !chart.active || idx === null || idx === undefined || left < 0;
  if (tip.hidden) return;
  const lines = chart.curves.map((curve, i) => {
    if (chart.hidden.has(i)) return null;
    const at = nearestValue(chart.data[i + 1], idx);
    const swatch = make("span", {class: "swatch area", "aria-hidden": "true"});
    swatch.style.color = `var(${curve.paint})`;
    const where = at === idx ? "" : ` at step ${formatNumber(chart.data[0][at])}`;
    return make("div", {}, swatch, chart.curves.length > 1 ? curve.name + where + " " : "",
      make("b", {}, isNumber(chart.data[i + 1][at]) ? chart.format(chart.data[i + 1][at]) : "not a number"));
  });
  const where = make("div", {class: "muted"}, "step " + formatNumber(chart.data[0][idx]));
  tip.replaceChildren(where, ...lines.filter(Boolean));
  // Beside the pointer, on the side that has room; measured where it does not wrap.
  tip.style.left = "0";
  const room = plot.over.clientWidth, width = tip.offsetWidth;
  tip.style.left = Math.max(0, left + 14 + width <= room ? left + 14 : left - 14 - width) + "px";
}

function listen(chart) {
  const {plot, frame} = chart;
  let pressed = null;
  plot.over.addEventListener("mouseenter", () => { chart.active = true; });
  plot.over.addEventListener("mouseleave", () => { chart.active = false; chart.tip.hidden = true; });
  plot.over.addEventListener("mousedown", (event) => { pressed = event.clientX; });
  plot.over.addEventListener("click", (event) => {
    const dragged = pressed !== null && Math.abs(event.clientX - pressed) > 4;
    if (!dragged) choice.chooseStep(plot.posToVal(event.clientX - plot.over.getBoundingClientRect().left, "x"));
  });
  frame.addEventListener("keydown", (event) => pressKey(chart, event));
  frame.addEventListener("blur", () => { chart.active = false; chart.tip.hidden = true; });
}

function pressKey(chart, event) {
  const steps = chart.data[0];
  if (event.key === "Enter" && isNumber(chart.plot.cursor.idx)) {
    choice.chooseStep(steps[chart.plot.cursor.idx]);
    event.preventDefault();
    return;
  }
  const from = chart.plot.cursor.idx ?? Math.max(0, nearest(steps, choice.step ?? 0));
  const to = movedBy(event.key, from, steps.length, event.shiftKey);
  if (to === null) return;
  event.preventDefault();
  chart.active = true;
  chart.plot.setCursor({left: chart.plot.valToPos(steps[to], "x"), top: chart.plot.over.clientHeight / 2});
}

function zoomToSelection(chart) {
  const {plot} = chart;
  if (plot.select.width > 4) {
    setZoom([plot.posToVal(plot.select.left, "x"), plot.posToVal(plot.select.left + plot.select.width, "x")]);
  }
  plot.setSelect({left: 0, top: 0, width: 0, height: 0}, false);
}

/** null: the whole run. */
function setZoom(range) {
  zoom.range = range;
  if (zoom.button) zoom.button.hidden = range === null;
  for (const {plot, data} of charts) {
    plot.setScale("x", range ? {min: range[0], max: range[1]} : {min: data[0][0], max: data[0][data[0].length - 1]});
  }
}

function zoomButton() {
  zoom.button = make("button", {type: "button", class: "quiet", hidden: true, onclick: () => setZoom(null)},
    "Show all steps");
  return zoom.button;
}

function chartTable(chart) {
  const [steps, ...columns] = chart.data;
  const stride = Math.ceil(steps.length / TABLE_ROWS);
  const rows = steps.map((step, row) => row).filter((row) => row % stride === 0 || row === steps.length - 1);
  return make("div", {},
    stride > 1 ? make("p", {class: "note"}, `One step in ${stride}, and the last.`) : null,
    table(`${chart.title} by step`, ["step", ...chart.curves.map((curve) => curve.name)].map((name) => ({name, number: true})),
      rows.map((row) => [formatNumber(steps[row]),
        ...columns.map((column) => isNumber(column[row]) ? chart.format(column[row]) : MISSING)])));
}

/** Follows the width of the page, the theme and the chosen step. */
function startCharts() {
  charts.forEach(drawChart);
  const observer = new ResizeObserver(() => {
    for (const chart of charts) {
      const size = sizeOf(chart);
      if (size.width !== chart.plot.width || size.height !== chart.plot.height) chart.plot.setSize(size);
    }
  });
  charts.forEach((chart) => observer.observe(chart.frame));
  const redraw = () => charts.forEach((chart) => chart.plot.redraw(false));
  onThemeChange(redraw);
  choice.listeners.push(redraw);
}

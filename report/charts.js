// A chart over steps: uPlot draws it; legend, tooltip, keys, the chosen step and the table are ours.
// spec: {id, title, unit, curves, fromZero, top, stacked, format}; a curve is {name, step, values, paint, dash, dots}.

const charts = [];
const TABLE_ROWS = 100;

function chartCard(spec) {
  const curves = spec.curves.filter((curve) => curve.values !== null && curve.values !== undefined && curve.step.length > 0);
  if (curves.length === 0) return null;
  const frame = make("div", {class: "chart", tabindex: 0, role: "group", "aria-roledescription": "chart",
    "data-chart": spec.id,
    "aria-label": `${spec.title} over steps. Arrow keys move from step to step, Enter chooses the step for the timeline.`});
  const tip = make("div", {class: "tip", role: "status", hidden: true});
  const note = make("p", {class: "note"});
  const chart = {...spec, curves, frame, tip, note, hidden: new Set(), active: false};
  charts.push(chart);
  frame.append(tip);
  return card({class: "chart-card " + (spec.wide ? "wide" : "")},
    make("h3", {}, spec.title, " ", make("span", {class: "unit"}, spec.unit)),
    curves.length > 1 ? chartLegend(chart) : null, frame, note,
    folded("As a table", () => chartTable(chart)));
}

function chartLegend(chart) {
  return make("ul", {class: "legend"}, chart.curves.map((curve, i) => {
    const look = chart.stacked ? "area" : curve.dots ? "dotted" : curve.dash ? "dashed" : "line";
    const swatch = make("span", {class: "swatch " + look, "aria-hidden": "true"});
    swatch.style.color = `var(${curve.paint})`;
    const button = make("button", {type: "button", "aria-pressed": "true", onclick: () => {
      if (chart.hidden.has(i)) chart.hidden.delete(i);
      else chart.hidden.add(i);
      button.setAttribute("aria-pressed", String(!chart.hidden.has(i)));
      if (chart.stacked) chart.plot.setData(plotted(chart), false);
      else chart.plot.setSeries(i + 1, {show: !chart.hidden.has(i)});
      rescale(chart);
    }}, swatch, curve.name);
    return make("li", {}, button);
  }));
}

/** One list of steps for all curves; what a curve has no value for is undefined, and is drawn across. */
function aligned(chart) {
  return uPlot.join(chart.curves.map((curve) => [curve.step, curve.values]));
}

/** What is drawn: curves as they are, or each on top of those before it; a hidden one has no height, and carries the next. */
function plotted(chart) {
  if (!chart.stacked) return chart.data;
  const [steps, ...columns] = chart.data;
  const below = steps.map(() => 0);
  return [steps, ...columns.map((column, i) => column.map((value, row) => {
    below[row] += isNumber(value) && !chart.hidden.has(i) ? value : 0;
    return isNumber(value) ? below[row] : null;
  }))];
}

/** Puts the drawing into its frame, which has to be on the page: its width counts. */
function drawChart(chart) {
  chart.data = aligned(chart);
  const options = {
    ...sizeOf(chart), legend: {show: false}, padding: [8, 20, 0, 0],
    cursor: {y: false, drag: {x: true, y: false, setScale: false}, sync: {key: "steps", setSeries: false},
      points: {size: 7, fill: (plot, i) => color(chart.curves[i - 1].paint)},
      dataIdx: (plot, i, at) => nearestValue(chart.data[i] ?? [], at)},
    select: {show: true, left: 0, top: 0, width: 0, height: 0},
    scales: {x: {time: false, range: (plot, low, high) => (low === high ? [low - 1, high + 1] : [low, high])},
      y: {range: (plot, low, high) => rangeOf(chart, low, high)}},
    axes: [xAxis(), yAxis(chart)],
    series: [{}, ...chart.curves.map((curve) => curveOptions(chart, curve))],
    bands: chart.stacked ? chart.curves.slice(1).map((_, i) => ({series: [i + 2, i + 1]})) : [],
    hooks: {setCursor: [() => showTip(chart)], setSelect: [() => zoomToSelection(chart)], draw: [() => drawMarks(chart)]},
  };
  chart.plot = new uPlot(options, plotted(chart), chart.frame);
  chart.tip.remove();
  chart.plot.over.append(chart.tip);
  listen(chart);
  sayClipped(chart);
}

function sizeOf(chart) {
  const width = Math.max(200, chart.frame.clientWidth);
  return {width, height: chart.wide && width > 560 ? 300 : 200};
}

function curveOptions(chart, curve) {
  const paint = () => color(curve.paint);
  const common = {stroke: chart.stacked ? () => color("--card") : paint, spanGaps: false};
  const few = curve.step.length < 3; // too few for a line or an area to be seen
  const points = {show: Boolean(curve.dots) || few, size: few ? 8 : 6, stroke: paint, fill: paint};
  // Lines between areas: with more steps than pixels they would cover what they part.
  if (chart.stacked) return {...common, width: curve.step.length < 500 ? 1 : 0, fill: paint, points};
  return {...common, width: 1.75, dash: curve.dash, points};
}

function xAxis() {
  const steps = [1, 2, 5].flatMap((digit) => [...Array(12).keys()].map((power) => digit * 10 ** power)).sort((a, b) => a - b);
  return {stroke: () => color("--muted"), font: "11px system-ui, sans-serif", size: 28, gap: 6, incrs: steps, space: 56,
    values: (plot, values) => values.map((step) => (step < 1e6 ? formatNumber(step, 6) : formatTick(step))),
      grid: {show: false}, ticks: {show: false}};
}

function yAxis(chart) {
  return {stroke: () => color("--muted"), font: "11px system-ui, sans-serif", gap: 8, space: 36,
    size: (plot, values) => 14 + 6.6 * Math.max(2, ...(values ?? []).map((value) => value.length)),
    values: (plot, values) => values.map(chart.tick ?? formatTick), grid: {stroke: () => color("--line"), width: 1},
      ticks: {show: false}};
}

/** A pause for a checkpoint must not flatten all other steps: far outliers leave the chart, and a note says so. */
function limitOf(chart) {
  const columns = plotted(chart).slice(1).filter((_, i) => !chart.hidden.has(i));
  const top = most(columns.map(most));
  const usual = most(columns.map((column) => quantile(column, 0.98)));
  return chart.fromZero && usual > 0 && top > 2.5 * usual ? 1.5 * usual : null;
}

function rangeOf(chart, low, high) {
  if (!isNumber(low) || !isNumber(high)) return [0, 1];
  if (isNumber(chart.top)) return [0, chart.top];
  if (chart.fromZero) {
    const top = Math.min(high, limitOf(chart) ?? high) * 1.06;
    return [0, top > 0 ? top : 1];
  }
  const margin = high > low ? 0.06 * (high - low) : Math.abs(high) * 0.1 || 1;
  return [low - margin, high + margin];
}

function sayClipped(chart) {
  const limit = limitOf(chart);
  const columns = plotted(chart).slice(1).filter((_, i) => !chart.hidden.has(i));
  const tops = limit === null ? []
    : chart.data[0].map((_, row) => most(columns.map((column) => column[row]))).filter((top) => top > limit);
  chart.note.textContent = tops.length === 0 ? ""
    : `${countOf(tops.length, "step")} above the top of this chart, up to ${chart.format(most(tops))}.`;
}

function rescale(chart) {
  sayClipped(chart);
  const {min, max} = chart.plot.scales.x;
  chart.plot.setScale("x", {min, max});
}

function drawMarks(chart) {
  const {ctx, bbox} = chart.plot;
  const vertical = (step, paint, dash) => {
    const {min, max} = chart.plot.scales.x;
    if (step === null || step < min || step > max) return;
    const at = Math.round(chart.plot.valToPos(step, "x", true));
    ctx.save();
    ctx.strokeStyle = color(paint);
    ctx.globalAlpha = 0.7;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
    ctx.restore();
  };
  for (const step of chart.events ?? []) vertical(step, "--exposed", [2, 4]);
  vertical(choice.step, "--ink", []);
}

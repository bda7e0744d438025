// One step of every rank, drawn to scale: phases as a bar, and below it each bucket from ready over in flight to reduced.

const PHASE_PAINT = {forward: "forward", backward: "backward", optimizer: "optimizer", wait: "wait"};
const tips = new WeakMap();

/** How tall things are: buckets have a lane each while there is room; then they share lanes, and show only while in flight. */
function measuresOf(timeline) {
  const buckets = sum(timeline.ranks.map((rank) => rank.buckets.length));
  if (timeline.ranks.length > 16) return {phase: 6, lane: 4, gap: 1, between: 5, lanes: 2};
  if (buckets > 200) return {phase: 14, lane: 6, gap: 2, between: 12, lanes: 4};
  if (buckets > 64) return {phase: 14, lane: 4, gap: 2, between: 12, lanes: Infinity};
  return {phase: 18, lane: 7, gap: 3, between: 16, lanes: Infinity};
}

/** A lane for each bucket: its own, or the one that is free first where there are not enough. */
function lanesOf(buckets, limit) {
  if (limit === Infinity) return buckets.map((_, i) => i);
  const freeAt = Array(limit).fill(-Infinity);
  return buckets.map((bucket) => {
    const free = freeAt.findIndex((at) => at <= bucket.begin_ms);
    const lane = free >= 0 ? free : freeAt.indexOf(Math.min(...freeAt));
    freeAt[lane] = bucket.end_ms;
    return lane;
  });
}

function drawTimeline(timeline, run, width, end) {
  const size = measuresOf(timeline);
  const narrow = width < 560;
  const left = narrow ? 26 : 60, top = 26, right = 10;
  const x = (ms) => left + (ms / (end || 1)) * (width - left - right);
  const rows = makeSvg("g");
  let y = top;
  for (const rank of timeline.ranks) {
    const row = drawRank(rank, {run, size, x, y});
    const label = narrow || size.phase < 10 ? String(rank.rank) : "rank " + rank.rank;
    row.group.prepend(makeSvg("text", {class: "rank-label", x: left - 8, y: y + size.phase / 2 + 4, "text-anchor": "end"},
      label));
    rows.append(row.group);
    y += row.height + size.between;
  }
  const height = y - size.between + 6;
  return makeSvg("svg", {class: "timeline", width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "data-step": timeline.step,
    "aria-label": `Timeline of step ${timeline.step}: ${overlapSentence(timeline)} ${lateSentence(timeline)}`},
    drawAxis(end, x, height, narrow), rows);
}

function drawAxis(end, x, height, narrow) {
  const rough = (end || 1) / (narrow ? 4 : 9);
  const power = 10 ** Math.floor(Math.log10(rough));
  const stride = [1, 2, 5, 10].map((digit) => digit * power).find((one) => one >= rough) ?? power * 10;
  const group = makeSvg("g", {class: "axis"});
  for (let tick = 0; tick * stride <= end * 1.0001; ++tick) {
    const at = x(tick * stride), value = formatTick(Number((tick * stride).toPrecision(6)));
    group.append(makeSvg("line", {x1: at, x2: at, y1: 18, y2: height}),
      makeSvg("text", {x: at, y: 11, "text-anchor": tick === 0 ? "start" : "middle"}, tick === 0 ? value + " ms" : value));
  }
  return group;
}

function drawRank(rank, {run, size, x, y}) {
  const lanes = lanesOf(rank.buckets, size.lanes);
  const count = Math.max(0, ...lanes.map((lane) => lane + 1));
  const lanesTop = y + size.phase + size.gap + 1;
  const height = size.phase + (count > 0 ? size.gap + 1 + count * (size.lane + size.gap) : 0);
  const group = makeSvg("g", {"data-rank": rank.rank});
  const cover = spans(rank.phases.filter(COMPUTING));
  for (const phase of rank.phases) group.append(...drawPhase(phase, rank, {size, x, y, height}));
  rank.buckets.forEach((bucket, i) => {
    group.append(drawBucket(bucket, {cover, rank, run, x, y: lanesTop + lanes[i] * (size.lane + size.gap), size}));
  });
  return {group, height};
}

function drawPhase(phase, rank, {size, x, y, height}) {
  const from = x(phase.begin_ms), length = Math.max(0.5, x(phase.end_ms) - from);
  const paint = PHASE_PAINT[phase.name] ?? "other";
  const parts = [];
  // The shade of backward lies under the buckets: what is on it is hidden.
  if (phase.name === "backward") parts.push(makeSvg("rect", {class: "shade", x: from, y, width: length, height}));
  const box = makeSvg("rect", {class: "phase paint-" + paint, "data-phase": phase.name, x: from, y, width: length,
    height: size.phase, rx: Math.min(2, length / 2)});
  tips.set(box, [`rank ${rank.rank}`, `${phase.name} ${formatMs(phase.end_ms - phase.begin_ms)}`,
    `from ${formatMs(phase.begin_ms)} to ${formatMs(phase.end_ms)}`]);
  parts.push(box);
  if (size.phase >= 14 && length > 7 * phase.name.length + 10) {
    parts.push(makeSvg("text", {class: "phase-label on-" + paint, x: from + 6, y: y + size.phase / 2 + 4}, phase.name));
  }
  return parts;
}

function drawBucket(bucket, {cover, rank, run, x, y, size: {lane, lanes}}) {
  const {inside, outside} = splitBy([bucket.begin_ms, bucket.end_ms], cover);
  const group = makeSvg("g", {class: "bucket", "data-bucket": bucket.bucket});
  const piece = (style) => ([begin, end]) =>
    makeSvg("rect", {class: style, x: x(begin), y, width: Math.max(0.75, x(end) - x(begin)), height: lane});
  const middle = y + lane / 2, ready = x(bucket.ready_ms), begin = x(bucket.begin_ms), done = x(bucket.end_ms);
  const own = lanes === Infinity;
  const from = own ? ready : begin;
  group.append(
    makeSvg("rect", {class: "catch", x: from - 3, y: y - 1, width: Math.max(8, done - from + 6), height: lane + 2}),
    ...(own ? [makeSvg("line", {class: "queued", x1: ready, x2: begin, y1: middle, y2: middle}),
      makeSvg("circle", {class: "ready", cx: ready, cy: middle, r: Math.min(2.5, lane / 2)})] : []),
    ...inside.map(piece("hidden-part")), ...outside.map(piece("exposed-part")),
    makeSvg("line", {class: "reduced", x1: done, x2: done, y1: y - 1, y2: y + lane + 1}));
  const bytes = run.bucketBytes[bucket.bucket];
  const flight = bucket.end_ms - bucket.begin_ms;
  tips.set(group, [`rank ${rank.rank}, bucket ${bucket.bucket}${isNumber(bytes) ? ", " + formatBytes(bytes) : ""}`,
    `ready at ${formatMs(bucket.ready_ms)}`,
    `in flight ${formatMs(flight)}, ${formatShare(ratio(lengthOf(inside), flight))} of it hidden`,
    `reduced at ${formatMs(bucket.end_ms)}`]);
  return group;
}

// What was recorded, made safe to draw: any field may be missing, short, or of another type. README.md defines the fields.

const FORMAT = 1;
const STEP_COLUMNS = ["loss", "gradient_norm", "learning_rate", "tokens_per_s", "step_ms", "forward_ms", "backward_ms",
  "exposed_ms", "optimizer_ms", "communication_ms", "hidden_ms"];
const SPLIT = ["forward_ms", "backward_ms", "exposed_ms", "optimizer_ms"];

const asList = (value) => (Array.isArray(value) ? value : []);
const asObject = (value) => (value !== null && typeof value === "object" && !Array.isArray(value) ? value : {});
const asNumber = (value) => (isNumber(value) ? value : null);
const asText = (value) => (typeof value === "string" ? value : isNumber(value) ? String(value) : "");

/** {runs, problems}: a run that cannot be read is a sentence among the problems. */
function readRuns(text) {
  let recorded;
  try {
    recorded = JSON.parse(text);
  } catch (error) {
    return {runs: [], problems: ["The data of this page cannot be read: " + error.message]};
  }
  const runs = [], problems = [];
  for (const one of asList(recorded)) {
    const run = asObject(one);
    const name = asText(run.name) || "run " + (runs.length + problems.length + 1);
    if (run.format === FORMAT) runs.push(readRun(run, name));
    else problems.push(`“${name}” was recorded in format ${asText(run.format) || "unknown"}; this page reads ${FORMAT}.`);
  }
  tellApart(runs);
  return {runs, problems};
}

function readRun(run, name) {
  const steps = readColumns(asObject(run.steps), STEP_COLUMNS);
  if (steps.step_ms === null && SPLIT.some((column) => steps[column] !== null)) {
    steps.step_ms = steps.step.map((_, i) => sum(SPLIT.map((column) => steps[column]?.[i])));
  }
  return {
    name, steps,
    started: asText(run.started), status: asText(run.status), duration_s: asNumber(run.duration_s),
    ranks: asNumber(run.ranks),
    mesh: asList(run.mesh).map(asObject).map((axis) => ({axis: asText(axis.axis), size: asNumber(axis.size)})),
    evaluation: readColumns(asObject(run.evaluation), ["loss"]),
    bucketBytes: asList(run.bucket_bytes).map(asNumber),
    timelines: asList(run.timelines).map(asObject).filter((one) => isNumber(one.step)).map(readTimeline)
      .sort((a, b) => a.step - b.step),
    traffic: readRows(run.traffic, "operation", ["axis", "calls", "bytes"]),
    memory: readMemory(asObject(run.memory)),
    stragglers: readRows(run.stragglers, "rank", ["times_last", "late_ms", "most_late_ms"]),
    events: asList(run.events).map(asObject).map((event) => ({step: asNumber(event.step), rank: asNumber(event.rank),
      kind: asText(event.kind), text: asText(event.text)})),
    configuration: flatten(asObject(run.configuration)), machine: flatten(asObject(run.machine)),
    sample: {prompt: asText(asObject(run.sample).prompt), text: asText(asObject(run.sample).text)},
  };
}

/** Two runs of one name would be one curve to the reader. */
function tellApart(runs) {
  const seen = new Map();
  for (const run of runs) {
    const count = (seen.get(run.name) ?? 0) + 1;
    seen.set(run.name, count);
    if (count > 1) run.name += ` (${count})`;
  }
}

/** Columns of one length with rising steps; a column without any number is null. */
function readColumns(source, names) {
  const recorded = asList(source.step);
  const order = [...recorded.keys()].filter((i) => isNumber(recorded[i])).sort((a, b) => recorded[a] - recorded[b])
    .filter((row, i, all) => i === 0 || recorded[row] !== recorded[all[i - 1]]);
  const columns = {step: order.map((row) => recorded[row])};
  for (const name of names) {
    const values = asList(source[name]);
    const column = order.map((row) => asNumber(values[row]));
    columns[name] = column.some((value) => value !== null) ? column : null;
  }
  return columns;
}

/** Columns to rows, as many as the first column has; numbers stay numbers, all else is text. */
function readRows(source, first, others) {
  const columns = asObject(source);
  return asList(columns[first]).map((key, i) => {
    const row = {[first]: isNumber(key) ? key : asText(key)};
    for (const name of others) {
      const value = asList(columns[name])[i];
      row[name] = isNumber(value) ? value : typeof value === "string" ? value : null;
    }
    return row;
  });
}

function readMemory(memory) {
  const kinds = asList(memory.kind).map(asText);
  const bytes = kinds.map((_, kind) => asList(asList(memory.bytes)[kind]).map(asNumber));
  const resident = asList(memory.resident_bytes).map(asNumber);
  const ranks = Math.max(0, resident.length, ...bytes.map((ofKind) => ofKind.length));
  return {kinds, bytes, resident, ranks};
}

function readTimeline(timeline) {
  return {step: timeline.step, ranks: asList(timeline.ranks).map(asObject).map((one, i) => ({
    rank: asNumber(one.rank) ?? i,
    phases: readRows(one.phases, "name", ["begin_ms", "end_ms"])
      .map((phase) => ({...phase, name: asText(phase.name)}))
      .filter((phase) => phase.end_ms >= phase.begin_ms && isNumber(phase.begin_ms)),
    buckets: readRows(one.buckets, "bucket", ["ready_ms", "begin_ms", "end_ms"])
      .filter((bucket) => isNumber(bucket.begin_ms) && bucket.end_ms >= bucket.begin_ms)
      .map((bucket) => ({...bucket, ready_ms: Math.min(isNumber(bucket.ready_ms) ? bucket.ready_ms : bucket.begin_ms,
        bucket.begin_ms)})),
  }))};
}

/** {"a": {"b": 1}} to [["a.b", 1]]; lists stay values. */
function flatten(value, path = "") {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    return Object.entries(value).flatMap(([key, inner]) => flatten(inner, path ? path + "." + key : key));
  }
  return [[path, value]];
}

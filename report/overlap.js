// What a recorded step says about overlap and lateness, as numbers and as sentences.

const COMPUTING = (phase) => phase.name !== "wait";
const spans = (phases) => union(phases.map((phase) => [phase.begin_ms, phase.end_ms]));

/** Of one rank: time with something in flight, and how much of it the rank computed meanwhile. */
function overlapOf({phases, buckets}) {
  const flight = union(buckets.map((bucket) => [bucket.begin_ms, bucket.end_ms]));
  return {
    communication_ms: lengthOf(flight),
    hidden_ms: lengthWithin(flight, spans(phases.filter(COMPUTING))),
    backward_ms: lengthWithin(flight, spans(phases.filter((phase) => phase.name === "backward"))),
  };
}

function overlapSentence(timeline) {
  const ranks = timeline.ranks.map(overlapOf);
  const mean = (field) => ranks.length > 0 ? sum(ranks.map((one) => one[field])) / ranks.length : 0;
  const whole = mean("communication_ms");
  if (whole === 0) return "No communication was recorded in this step.";
  const behind = mean("hidden_ms") - mean("backward_ms") > 0.005 * whole ? "computation" : "backward";
  const each = ranks.length > 1 ? ", mean of ranks" : "";
  return `${formatShare(mean("hidden_ms") / whole)} of ${formatMs(whole)} of communication hidden behind ${behind}${each}.`;
}

/** Who had its gradients ready last, when that is worth a word: 5 % of the step behind the median. */
function lateSentence(timeline) {
  const ready = timeline.ranks.map(({rank, buckets}) => ({rank, at: most(buckets.map((bucket) => bucket.ready_ms))}))
    .filter(({at}) => at !== null);
  if (ready.length < 2) return "";
  const latest = ready.reduce((a, b) => (b.at > a.at ? b : a));
  const behind = latest.at - median(ready.map(({at}) => at));
  return behind > 0.05 * endOf(timeline)
    ? `Rank ${latest.rank} was last: its gradients were ready ${formatMs(behind)} after the median rank’s.` : "";
}

function endOf(timeline) {
  return Math.max(0, ...timeline.ranks.map(({phases, buckets}) =>
    Math.max(0, most(phases.map((phase) => phase.end_ms)) ?? 0, most(buckets.map((bucket) => bucket.end_ms)) ?? 0)));
}

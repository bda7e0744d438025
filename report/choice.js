// The step that the reader looks at, shared by the charts and the timeline: one of those with a recorded timeline.

const choice = {
  steps: [], // every step that some run has a timeline of, rising
  index: 0,
  listeners: [],

  get step() {
    return this.steps[this.index] ?? null;
  },

  start(runs) {
    this.steps = [...new Set(runs.flatMap((run) => run.timelines.map((timeline) => timeline.step)))].sort((a, b) => a - b);
    // The first steps allocate and warm up: begin in the middle, where the run is itself.
    this.index = Math.floor(this.steps.length / 2);
  },

  chooseIndex(index) {
    const bounded = Math.min(this.steps.length - 1, Math.max(0, index));
    if (bounded === this.index || bounded < 0) return;
    this.index = bounded;
    for (const listener of this.listeners) listener();
  },

  /** The nearest step that has a timeline. */
  chooseStep(step) {
    this.chooseIndex(nearest(this.steps, step));
  },
};

/** The place of the value nearest to `wanted` in a rising list. */
function nearest(rising, wanted) {
  let low = 0, high = rising.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] < wanted) low = middle + 1;
    else high = middle;
  }
  return low > 0 && wanted - rising[low - 1] <= rising[low] - wanted ? low - 1 : low;
}

/** What a key does to a place in a list; null for keys that move nothing. */
function movedBy(key, index, count, shift) {
  const far = shift ? 10 : 1;
  const moves = {ArrowLeft: index - far, ArrowRight: index + far, PageDown: index + 10, PageUp: index - 10, Home: 0,
    End: count - 1};
  return key in moves ? Math.min(count - 1, Math.max(0, moves[key])) : null;
}

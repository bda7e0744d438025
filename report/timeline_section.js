// The timeline's part of the page: the slider, the sentences, one drawing for each run, all to the same scale.

function timelineSection(runs) {
  if (choice.steps.length === 0) return null;
  const nameOf = (run) => (runs.length > 1 ? runName(run, runs.indexOf(run)) : null);
  const views = runs.filter((run) => run.timelines.length > 0).map((run) => timelineView(run, nameOf(run)));
  const draw = () => {
    const shown = views.map((view) => view.pick());
    const end = Math.max(...shown.map(endOf));
    views.forEach((view) => view.draw(end));
  };
  const frame = make("div", {class: "timelines", tabindex: 0, role: "group",
    "aria-label": "Timeline. Left and right arrow keys choose the step.",
    onkeydown: (event) => {
      const to = movedBy(event.key, choice.index, choice.steps.length, event.shiftKey);
      if (to === null || event.key.startsWith("Page") || event.target.closest(".scroll, summary")) return;
      event.preventDefault();
      choice.chooseIndex(to);
    }}, views.map((view) => view.element));
  const tip = timelineTip(frame);
  choice.listeners.push(draw);
  let width = 0;
  new ResizeObserver(() => {
    if (frame.clientWidth !== width) {
      width = frame.clientWidth;
      draw();
    }
  }).observe(frame);
  return section("timeline", "Timeline of a step", card({}, stepControls(), timelineLegend(), frame, tip,
    make("p", {class: "note"}, "Times from the beginning of the step. ",
      "What is on the shade of backward costs nothing: the rank computes meanwhile.")));
}

function stepControls() {
  const slider = make("input", {type: "range", id: "step", min: 0, max: choice.steps.length - 1, step: 1,
    "aria-label": "Step",
    oninput: () => choice.chooseIndex(Number(slider.value))});
  const shown = make("output", {for: "step"});
  const move = (by, name, sign) => make("button", {type: "button", class: "quiet", "aria-label": name,
    onclick: () => choice.chooseIndex(choice.index + by)}, sign);
  const before = move(-1, "Step before", "‹"), after = move(1, "Next step", "›");
  const update = () => {
    slider.value = choice.index;
    slider.setAttribute("aria-valuetext", "step " + choice.step);
    shown.textContent = "Step " + formatNumber(choice.step);
    before.disabled = choice.index === 0;
    after.disabled = choice.index === choice.steps.length - 1;
  };
  choice.listeners.push(update);
  update();
  return make("div", {class: "controls"},
    make("div", {class: "chosen"}, shown, make("span", {class: "muted"}, countOf(choice.steps.length, "step") + " recorded")),
    make("div", {class: "slide"}, before, slider, after));
}

function timelineLegend() {
  const items = [["area paint-forward", "forward"], ["area paint-backward", "backward"], ["area paint-optimizer", "optimizer"],
    ["area paint-wait", "waiting"], ["ready", "bucket ready"], ["area paint-hidden", "in flight, hidden"],
    ["area paint-exposed", "in flight, exposed"], ["reduced", "reduced"]];
  return make("ul", {class: "legend still"}, items.map(([swatch, text]) => legendItem(swatch, text)));
}

/** One run's timeline of the chosen step, or of the one nearest to it that this run recorded. */
function timelineView(run, name) {
  const steps = run.timelines.map((timeline) => timeline.step);
  const heading = make("p", {class: "sentence", "aria-live": "polite"});
  const drawing = make("div", {class: "drawing", role: "region", "aria-label": "Ranks of " + run.name});
  const element = make("div", {class: "timeline-view", "data-run": run.name});
  let current = null;
  const fresh = () => folded("As a table", () => bucketTable(current, run));
  let details = fresh();
  element.append(name ? make("h3", {}, name) : "", heading, drawing, details);
  return {
    element,
    pick() {
      current = run.timelines[nearest(steps, choice.step)];
      return current;
    },
    draw(end) {
      const other = current.step === choice.step ? ""
        : `Step ${formatNumber(current.step)}, the nearest that this run recorded. `;
      heading.replaceChildren(other, make("strong", {}, overlapSentence(current)), " ", lateSentence(current));
      drawing.replaceChildren(drawTimeline(current, run, Math.max(240, drawing.clientWidth), end));
      // Many ranks scroll in a frame, which keys have to reach.
      if (drawing.scrollHeight > drawing.clientHeight) drawing.setAttribute("tabindex", 0);
      else drawing.removeAttribute("tabindex");
      const open = details.open;
      const replacement = fresh();
      details.replaceWith(replacement);
      details = replacement;
      details.open = open;
    },
  };
}

function bucketTable(timeline, run) {
  const columns = ["rank", "bucket", "size", "ready", "in flight from", "reduced", "hidden"].map((name) =>
    ({name, number: true}));
  return table(`Buckets of step ${timeline.step}`, columns, timeline.ranks.flatMap((rank) => {
    const cover = spans(rank.phases.filter(COMPUTING));
    return rank.buckets.map((bucket) => [String(rank.rank), String(bucket.bucket),
      formatBytes(run.bucketBytes[bucket.bucket]), formatMs(bucket.ready_ms),
      formatMs(bucket.begin_ms), formatMs(bucket.end_ms),
      formatShare(ratio(lengthWithin([[bucket.begin_ms, bucket.end_ms]], cover), bucket.end_ms - bucket.begin_ms))]);
  }));
}

/** What is under the pointer, in words. */
function timelineTip(frame) {
  const tip = make("div", {class: "tip fixed", hidden: true});
  const show = (event) => {
    const part = event.target.closest?.(".bucket, .phase");
    const lines = part && tips.get(part);
    tip.hidden = !lines;
    if (!lines) return;
    tip.replaceChildren(...lines.map((line, i) => make("div", {class: i === 0 ? "muted" : null}, line)));
    const {clientWidth: wide, clientHeight: high} = document.documentElement;
    const width = tip.offsetWidth, height = tip.offsetHeight;
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, wide - width - 4)) + "px";
    tip.style.top = Math.max(4, event.clientY + 18 + height > high ? event.clientY - height - 12 : event.clientY + 18) + "px";
  };
  frame.addEventListener("pointermove", show);
  frame.addEventListener("pointerdown", show);
  frame.addEventListener("pointerleave", () => { tip.hidden = true; });
  addEventListener("scroll", () => { tip.hidden = true; }, {passive: true});
  return tip;
}

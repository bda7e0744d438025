#!/usr/bin/env python3
"""The page of one run and of several, in a real browser: charts, figures, tables, and what a reader can do with them."""

import math
import re
import statistics
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_case import CHARTS, ONE, TWO, PageTest, main, setUpModule  # noqa: E402, F401
from sample import Shape, make_run  # noqa: E402


def whole(value):
    return f"{math.floor(value + 0.5):,}"


class OneRun(PageTest):
    def test_every_chart_is_drawn_in_its_colours(self):
        self.open(ONE)
        self.assertEqual(self.charts(), list(CHARTS))
        for chart in CHARTS:
            for paint in ("--forward", "--backward", "--exposed", "--optimizer") if chart == "time" else ("--run-1",):
                self.assertGreater(self.painted(chart, paint), 150, (chart, paint))

    def test_without_values_there_is_no_chart(self):
        run = make_run()
        run["steps"]["gradient_norm"] = [None] * 200
        del run["steps"]["learning_rate"]
        self.open(run)
        self.assertEqual(self.charts(), ["loss", "time", "throughput", "hidden"])

    def test_main_figures(self):
        self.open(ONE)
        steps = ONE["steps"]
        figures = dict(zip(self.each("[data-figure]", "one.dataset.figure"), self.texts("[data-figure] dd"), strict=True))
        self.assertEqual(float(figures["loss"]), float(f"{steps['loss'][-1]:.4g}"))
        self.assertEqual(float(figures["evaluation"]), float(f"{ONE['evaluation']['loss'][-1]:.4g}"))
        self.assertEqual(figures["tokens_per_s"], whole(statistics.median(steps["tokens_per_s"])))
        self.assertEqual(figures["step_ms"], f"{statistics.median(steps['step_ms']):.1f} ms")
        self.assertEqual(figures["hidden"], f"{100 * sum(steps['hidden_ms']) / sum(steps['communication_ms']):.0f} %")
        self.assertEqual(figures["exposed"], f"{100 * sum(steps['exposed_ms']) / sum(steps['step_ms']):.0f} %")
        self.assertEqual(figures["memory"], f"{max(ONE['memory']['resident_bytes']) / 2**20:.0f} MiB")

    def test_a_chart_as_a_table_has_every_value(self):
        run = make_run(Shape(steps=37))
        self.open(run)
        self.unfold("[data-chart=time] ~ details")
        rows = [[float(cell.split()[0]) for cell in row] for row in self.cells("[data-chart=time] ~ details tbody tr")]
        self.assertEqual(len(rows), 37)
        columns = [run["steps"][name] for name in ("step", "forward_ms", "backward_ms", "exposed_ms", "optimizer_ms")]
        for row, wanted in zip(rows, zip(*columns, strict=True), strict=True):
            for value, recorded in zip(row, wanted, strict=True):
                self.assertAlmostEqual(value, recorded, delta=0.051)

    def test_a_tooltip_tells_the_values_under_the_pointer(self):
        self.open(ONE)
        x, y = self.place_of_step("loss", 60)
        self.browser.mouse("mouseMoved", x - 30, y)
        self.browser.mouse("mouseMoved", x, y)
        self.browser.settle()
        tip = self.text("[data-chart='loss'] .tip")
        self.assertIn("step 60", tip)
        self.assertIn(f"{ONE['steps']['loss'][59]:.4g}", tip)
        self.assertIn(f"{ONE['evaluation']['loss'][2]:.4g}", tip)
        self.assertEqual(sum(self.each(".tip", "!one.hidden")), 1)

    def test_a_click_on_a_chart_chooses_the_step(self):
        self.open(ONE)
        for chart, step in (("loss", 60), ("throughput", 140), ("time", 30)):
            self.browser.click(*self.place_of_step(chart, step + 2))  # timelines are there for every tenth
            self.assertEqual(self.shown_step(), step)

    def test_the_chosen_step_and_events_are_marked_in_charts(self):
        self.open(ONE)
        before = self.drawing("loss")
        self.choose(3)
        self.assertNotEqual(self.drawing("loss"), before)
        self.choose(10)
        self.assertEqual(self.drawing("loss"), before)
        self.open(ONE | {"events": []})
        self.assertNotEqual(self.drawing("loss"), before)

    def test_keys_on_a_chart(self):
        self.open(ONE)
        self.focus("[data-chart=loss]")
        for key in ("Home", "ArrowRight", "ArrowRight", "Enter"):
            self.browser.press(key)
        self.assertIn("step 3", self.text("[data-chart='loss'] .tip"))
        self.assertEqual(self.shown_step(), 1)
        self.browser.press("End")
        self.browser.press("Enter")
        self.assertEqual(self.shown_step(), 200)

    def test_dragging_zooms_every_chart_and_a_button_undoes_it(self):
        self.open(ONE)
        before = self.drawing("throughput")
        x, y = self.place_of_step("loss", 80)
        self.browser.mouse("mouseMoved", x, y)
        self.browser.mouse("mousePressed", x, y)
        for by in (20, 60, 90):
            self.browser.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + by, y=y, button="left", buttons=1)
        self.browser.mouse("mouseReleased", x + 90, y)
        self.browser.settle()
        self.assertNotEqual(self.drawing("throughput"), before)
        self.assertEqual(self.shown_step(), 100)
        self.assertFalse(self.evaluate("document.querySelector('.hint button').hidden"))
        self.click(".hint button")
        self.assertEqual(self.drawing("throughput"), before)

    def test_a_legend_hides_a_curve(self):
        self.open(ONE)
        self.assertGreater(self.painted("time", "--exposed"), 150)
        self.assertEqual(self.texts("#speed .wide .legend button")[2], "Exposed synchronization")
        self.click("#speed .wide .legend li:nth-child(3) button")
        self.assertLess(self.painted("time", "--exposed"), 20)
        self.assertGreater(self.painted("time", "--optimizer"), 150)

    def test_far_outliers_do_not_flatten_the_rest(self):
        run = make_run()
        run["steps"]["backward_ms"][76] = run["steps"]["backward_ms"][77] = 5000.0
        self.open(run)
        self.assertRegex(" ".join(self.texts(".chart-card .note")), r"2 steps above the top of this chart, up to 5,0\d\d ms")
        self.assertGreater(self.painted("time", "--forward"), 10_000)

    def test_parts_below_the_charts(self):
        self.open(ONE)
        self.assertIn("late rank Its gradients come 7 ms after", re.sub(r"\s+", " ", self.text("#events")))
        self.assertRegex(self.text("#events"), r"step 120, rank 2")
        traffic = self.text("#traffic")
        for words in ("all_reduce", "broadcast", "world", "1,400"):
            self.assertIn(words, traffic)
        rank, times, late, most = max(zip(*ONE["stragglers"].values(), strict=True), key=lambda row: row[1])
        self.assertIn(f"Rank {rank} was last most often: in {times} of 200 steps, by {late / times:.2f} ms on average "
                      f"and {most:.2f} ms at most.", self.text("#stragglers"))
        self.assertIn("9,432,321", self.text("#configuration"))
        self.assertIn("node-17", self.text("#machine"))
        self.assertIn("in the order that all ranks share", self.text("#sample"))

    def test_memory_is_drawn_to_scale(self):
        self.open(ONE)
        widths = self.each(".stacks .stack", "[...one.children].map((part) => part.offsetWidth)")
        self.assertEqual(len(widths), 4)
        for rank, row in enumerate(widths):
            scale = row[3] / ONE["memory"]["bytes"][3][rank]
            for kind, width in enumerate(row):
                self.assertAlmostEqual(width, ONE["memory"]["bytes"][kind][rank] * scale, delta=2.0)


class SeveralRuns(PageTest):
    def test_curves_lie_over_each_other(self):
        self.open(ONE, TWO)
        for chart in CHARTS:
            self.assertGreater(self.painted(chart, "--run-2"), 100, chart)
            if chart != "learning_rate":  # it is the same for both
                self.assertGreater(self.painted(chart, "--run-1"), 100, chart)

    def test_a_table_compares(self):
        self.open(ONE, TWO)
        rows = {row[0]: row[1:] for row in self.cells("#comparison tr")}
        self.assertEqual(rows[""], [ONE["name"], TWO["name"]])
        self.assertEqual(rows["Ranks"], ["4", "2"])
        self.assertEqual(rows["Tokens per second, median"],
                         [whole(statistics.median(run["steps"]["tokens_per_s"])) for run in (ONE, TWO)])
        best = self.texts("#comparison .best")
        self.assertIn(rows["Tokens per second, median"][0], best)
        self.assertNotIn(rows["Tokens per second, median"][1], best)

    def test_their_split_of_a_step_is_drawn_to_one_scale(self):
        self.open(ONE, TWO)
        widths = self.each("#split .stack", "[...one.children].map((part) => part.getBoundingClientRect().width)")
        parts = ("forward_ms", "backward_ms", "exposed_ms", "optimizer_ms")
        recorded = [[statistics.median(run["steps"][name]) for name in parts] for run in (ONE, TWO)]
        scale = widths[0][1] / recorded[0][1]
        for row, wanted in zip(widths, recorded, strict=True):
            for width, ms in zip(row, wanted, strict=True):
                self.assertAlmostEqual(width, scale * ms, delta=1.5)

    def test_each_has_its_timeline_to_one_scale(self):
        self.open(ONE, TWO)
        self.choose(5)
        self.assertEqual(self.each(".timeline-view", "one.dataset.run"), [ONE["name"], TWO["name"]])
        scales = self.each("svg.timeline", "Number(one.querySelector('[data-phase=backward]').getAttribute('width'))")
        recorded = [run["timelines"][5]["ranks"][0]["phases"] for run in (ONE, TWO)]
        lengths = [phases["end_ms"][2] - phases["begin_ms"][2] for phases in recorded]
        self.assertAlmostEqual(scales[0] / lengths[0], scales[1] / lengths[1], delta=0.05)

    def test_a_run_without_the_chosen_step_shows_the_nearest_and_says_so(self):
        self.open(ONE, make_run(Shape(name="sparse", timeline_every=70)))
        self.focus("#step")
        self.browser.press("End")
        self.assertIn("Step 140, the nearest that this run recorded.", self.texts(".sentence")[1])

    def test_settings_that_differ_are_marked(self):
        self.open(ONE, TWO)
        marked = [row[0] for row in self.cells("#configuration tr:has(.differs)")]
        self.assertEqual(marked, ["mesh", "seed"])

    def test_runs_of_one_name_are_told_apart(self):
        self.open(ONE, ONE, ONE)
        self.assertEqual(self.texts("#comparison thead .run-name"), [ONE["name"], ONE["name"] + " (2)", ONE["name"] + " (3)"])


if __name__ == "__main__":
    main()

"""The report page in a real browser: it opens by itself, draws what was recorded, and nothing in a run's data breaks it.

usage: report/report_test.py [--pictures FOLDER] [unittest's options]
"""

import argparse
import importlib.machinery
import importlib.util
import json
import math
import re
import statistics
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import sample  # noqa: E402
from browser import Browser, find_chromium  # noqa: E402
from queries import CONTRASTS, TIMELINE, Queries  # noqa: E402
from sample import Shape, make_run  # noqa: E402

loader = importlib.machinery.SourceFileLoader("assemble", str(HERE / "assemble"))
assemble = importlib.util.module_from_spec(importlib.util.spec_from_loader("assemble", loader))
loader.exec_module(assemble)

CHROMIUM = find_chromium()
PICTURES = None
BROWSER = None
FOLDER = None
ONE = make_run()
TWO = make_run(Shape(name="gpt-nano dp=2", ranks=2, backward_ms=18.0, gbps=1.7, straggler=1, late_steps=(40, 44), seed=11))
CHARTS = ("loss", "gradient_norm", "learning_rate", "time", "throughput", "hidden")
ATTACK = "</script><script>window.hacked = 1; alert(1)</script><img src=x onerror='window.hacked = 2'>"
WIDTHS = ((1280, False), (400, True))


def setUpModule():
    global BROWSER, FOLDER
    FOLDER = tempfile.TemporaryDirectory(prefix="tutti-report-test-")
    unittest.addModuleCleanup(FOLDER.cleanup)
    if CHROMIUM:
        BROWSER = unittest.enterModuleContext(Browser(CHROMIUM))


def whole(value):
    return f"{math.floor(value + 0.5):,}"


class Assembling(unittest.TestCase):
    def run_script(self, *options):
        return subprocess.run([sys.executable, HERE / "assemble", *map(str, options)], capture_output=True, text=True,
                              timeout=60, check=False)

    def test_data_come_back_as_they_were_and_cannot_end_their_script(self):
        text = assemble.data_of([{"name": ATTACK, "<": "ä"}])
        self.assertNotIn("<", text)
        self.assertEqual(json.loads(text), [{"name": ATTACK, "<": "ä"}])

    def test_what_json_cannot_say_is_null(self):
        self.assertEqual(assemble.data_of([{"loss": [1.5, math.nan, math.inf]}]), '[{"loss":[1.5,null,null]}]')

    def test_a_template_has_one_place_left(self):
        page = assemble.template(assemble.LIBRARY)
        self.assertEqual(re.findall(r"/\*TUTTI:.*?\*/", page), [assemble.DATA])
        self.assertLess(len(page), 300_000)

    def test_places_named_in_data_stay_text(self):
        self.assertEqual(assemble.page_of([{"name": "/*TUTTI:page.css*/ /*TUTTI:DATA*/"}]).count("/*TUTTI:DATA*/"), 1)

    def test_every_script_is_in_the_page(self):
        named = set(re.findall(r"/\*TUTTI:([\w.]+)\*/", (HERE / "page.html").read_text()))
        files = {path.name for path in [*HERE.glob("*.js"), *HERE.glob("*.css")]}
        self.assertEqual(named - {"DATA", *assemble.LIBRARY_FILES}, files)

    def test_a_missing_library_is_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            done = self.run_script("--template", "--library", folder, "--out", Path(folder) / "page.html")
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertRegex(done.stderr, r"^assemble: the charting library is not there .*tools/setup report fetches it\n$")
            self.assertFalse((Path(folder) / "page.html").exists())

    def test_a_bad_run_is_a_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            broken = Path(folder) / "run.json"
            broken.write_text("{")
            for path, words in ((broken, "is not JSON"), (Path(folder) / "none.json", "cannot read")):
                done = self.run_script("--out", Path(folder) / "page.html", path)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, rf"^assemble: .*{words}.*\n$")

    def test_the_script_writes_a_page(self):
        with tempfile.TemporaryDirectory() as folder:
            run = Path(folder) / "run.json"
            run.write_text(json.dumps(ONE))
            self.assertEqual(self.run_script("--out", Path(folder) / "page.html", run, run).returncode, 0)
            self.assertEqual((Path(folder) / "page.html").read_text(), assemble.page_of([ONE, ONE]))


@unittest.skipUnless(CHROMIUM, "there is no Chromium; tools/setup browser installs it")
class PageTest(Queries, unittest.TestCase):
    """Opens pages; whatever a test does, the page must not have complained or asked for anything at its end."""

    def setUp(self):
        self.browser = BROWSER

    def open(self, *runs, width=1280, phone=False, scheme="light"):
        path = Path(FOLDER.name) / f"{self.id()}.html"
        path.write_text(assemble.page_of(list(runs)))
        BROWSER.resize(width, 900, phone)
        BROWSER.prefer(scheme)
        BROWSER.open(path)
        BROWSER.settle()
        self.url = path.as_uri()
        self.addCleanup(self.check_quiet)

    def check_quiet(self):
        self.assertEqual(BROWSER.complaints(), [])
        self.assertEqual(BROWSER.requests(), [self.url])
        self.assertIsNone(BROWSER.evaluate("window.hacked ?? null"))


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
        BROWSER.mouse("mouseMoved", x - 30, y)
        BROWSER.mouse("mouseMoved", x, y)
        BROWSER.settle()
        tip = self.text("[data-chart='loss'] .tip")
        self.assertIn("step 60", tip)
        self.assertIn(f"{ONE['steps']['loss'][59]:.4g}", tip)
        self.assertIn(f"{ONE['evaluation']['loss'][2]:.4g}", tip)
        self.assertEqual(sum(self.each(".tip", "!one.hidden")), 1)

    def test_a_click_on_a_chart_chooses_the_step(self):
        self.open(ONE)
        for chart, step in (("loss", 60), ("throughput", 140), ("time", 30)):
            BROWSER.click(*self.place_of_step(chart, step + 2))  # timelines are there for every tenth
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
            BROWSER.press(key)
        self.assertIn("step 3", self.text("[data-chart='loss'] .tip"))
        self.assertEqual(self.shown_step(), 1)
        BROWSER.press("End")
        BROWSER.press("Enter")
        self.assertEqual(self.shown_step(), 200)

    def test_dragging_zooms_every_chart_and_a_button_undoes_it(self):
        self.open(ONE)
        before = self.drawing("throughput")
        x, y = self.place_of_step("loss", 80)
        BROWSER.mouse("mouseMoved", x, y)
        BROWSER.mouse("mousePressed", x, y)
        for by in (20, 60, 90):
            BROWSER.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + by, y=y, button="left", buttons=1)
        BROWSER.mouse("mouseReleased", x + 90, y)
        BROWSER.settle()
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


class Timelines(PageTest):
    def overlap(self, timeline):
        """Mean over ranks of time in flight and of what of it was during a phase other than wait, by sampling microseconds."""
        whole = hidden = 0
        for rank in timeline["ranks"]:
            flight, busy = set(), set()
            for begin, end in zip(rank["buckets"]["begin_ms"], rank["buckets"]["end_ms"], strict=True):
                flight.update(range(round(begin * 1000), round(end * 1000)))
            for name, begin, end in zip(*rank["phases"].values(), strict=True):
                if name != "wait":
                    busy.update(range(round(begin * 1000), round(end * 1000)))
            whole += len(flight)
            hidden += len(flight & busy)
        return whole / 1000 / len(timeline["ranks"]), hidden / whole

    def check_drawing(self, timeline):
        """Everything lies where one scale puts it."""
        rows = self.evaluate(TIMELINE)
        self.assertEqual(len(rows), len(timeline["ranks"]))
        width = self.evaluate("document.querySelector('svg.timeline').width.baseVal.value")
        right = max(phase[1] + phase[2] for row in rows for phase in row["phases"])
        self.assertTrue(0.9 * width < right <= width, (right, width))
        first, end = rows[0]["phases"][1], timeline["ranks"][0]["phases"]
        scale = first[2] / (end["end_ms"][1] - end["begin_ms"][1])
        origin = first[1] - scale * end["begin_ms"][1]
        for row, rank in zip(rows, timeline["ranks"], strict=True):
            self.assertEqual([phase[0] for phase in row["phases"]], rank["phases"]["name"])
            backward_end = rank["phases"]["end_ms"][2]
            buckets = rank["buckets"]
            pairs = [*zip((phase[1] for phase in row["phases"]), rank["phases"]["begin_ms"], strict=True),
                     *zip(row["ready"], buckets["ready_ms"], strict=True), *zip(row["reduced"], buckets["end_ms"], strict=True)]
            for pixels, ms in pairs:
                self.assertAlmostEqual(pixels, origin + scale * ms, delta=0.6)
            for width, begin, done in zip(row["hidden"], buckets["begin_ms"], buckets["end_ms"], strict=True):
                self.assertAlmostEqual(width, scale * max(0.0, min(done, backward_end) - begin), delta=1.0)

    def test_another_step_is_another_drawing_of_that_step(self):
        self.open(ONE)
        seen = set()
        for index in (0, 9, 12, 20):
            self.choose(index)
            timeline = ONE["timelines"][index]
            self.assertEqual(self.shown_step(), timeline["step"])
            self.assertEqual(self.text(".controls output"), f"Step {timeline['step']}")
            self.check_drawing(timeline)
            whole, share = self.overlap(timeline)
            self.assertIn(f"{100 * share:.0f} % of {whole:.1f} ms of communication hidden behind backward",
                          self.text(".sentence"))
            seen.add(self.each("svg.timeline", "one.outerHTML")[0])
        self.assertEqual(len(seen), 4)

    def test_a_late_rank_is_named_where_it_is_late(self):
        self.open(ONE)
        self.choose(13)
        self.assertRegex(self.text("#timeline .sentence"), r"Rank 2 was last: its gradients were ready \d\.\d\d ms after")
        self.choose(5)
        self.assertNotIn("was last", self.text("#timeline .sentence"))

    def test_keys_and_buttons_move_by_one(self):
        self.open(ONE)
        start = self.shown_step()
        self.focus("#step")
        BROWSER.press("ArrowRight")
        self.assertEqual(self.shown_step(), start + 10)
        self.focus(".timelines")
        BROWSER.press("ArrowLeft")
        BROWSER.press("ArrowLeft")
        self.assertEqual(self.shown_step(), start - 10)
        self.click("[aria-label='Next step']")
        self.assertEqual(self.shown_step(), start)

    def test_ends_are_ends(self):
        self.open(ONE)
        self.focus("#step")
        for key, step, button in (("Home", 1, "Step before"), ("End", 200, "Next step")):
            BROWSER.press(key)
            BROWSER.press("ArrowLeft" if key == "Home" else "ArrowRight")
            self.assertEqual(self.shown_step(), step)
            self.assertTrue(self.evaluate(f"document.querySelector('[aria-label=\"{button}\"]').disabled"))

    def test_the_table_follows_the_step(self):
        self.open(ONE)
        self.choose(3)
        self.unfold(".timeline-view details")
        self.choose(14)
        BROWSER.wait_for("document.querySelector('.timeline-view tbody')")
        rows = self.cells(".timeline-view tbody tr")
        self.assertEqual(len(rows), 28)
        rank = ONE["timelines"][14]["ranks"][1]
        self.assertEqual(rows[9][:2], ["1", "2"])
        self.assertAlmostEqual(float(rows[9][5].split()[0]), rank["buckets"]["end_ms"][2], delta=0.051)

    def test_a_tooltip_on_a_bucket(self):
        self.open(ONE)
        self.evaluate("document.querySelector('#timeline').scrollIntoView()")
        left, top, _, _ = self.box(".bucket .hidden-part", 3)
        BROWSER.mouse("mouseMoved", left + 4, top + 3)
        BROWSER.settle()
        tip = self.text(".tip.fixed")
        self.assertIn("rank 0, bucket 3, 6.01 MiB", tip)
        self.assertIn(f"ready at {ONE['timelines'][10]['ranks'][0]['buckets']['ready_ms'][3]:.1f} ms", tip)

    def test_it_is_drawn_anew_for_another_width(self):
        self.open(ONE)
        BROWSER.resize(700)
        BROWSER.settle()
        self.assertLess(self.evaluate("document.querySelector('svg.timeline').getBoundingClientRect().right"), 700)
        self.check_drawing(ONE["timelines"][10])


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
        BROWSER.press("End")
        self.assertIn("Step 140, the nearest that this run recorded.", self.texts(".sentence")[1])

    def test_settings_that_differ_are_marked(self):
        self.open(ONE, TWO)
        marked = [row[0] for row in self.cells("#configuration tr:has(.differs)")]
        self.assertEqual(marked, ["mesh", "seed"])

    def test_runs_of_one_name_are_told_apart(self):
        self.open(ONE, ONE, ONE)
        self.assertEqual(self.texts("#comparison thead .run-name"), [ONE["name"], ONE["name"] + " (2)", ONE["name"] + " (3)"])


class Looks(PageTest):
    def test_nothing_is_wider_than_the_window(self):
        long = make_run(Shape(name="a" * 300, steps=20))
        long["configuration"] = {"k" * 200: "v" * 500, "model": {"k" * 100: 1}}
        long["machine"], long["events"] = {"host": "h" * 300}, [{"step": 3, "rank": 1, "kind": "k" * 120, "text": "t" * 300}]
        long["sample"] = {"prompt": "p" * 200, "text": "x" * 2000}
        long["traffic"]["operation"][0] = long["memory"]["kind"][0] = "o" * 150
        pages = {"one": [ONE], "two": [ONE, TWO], "many": [ONE, TWO] * 3, "long": [long], "long twice": [long, long]}
        for name, runs in pages.items():
            for width, phone in WIDTHS:
                with self.subTest(name, width=width):
                    self.open(*runs, width=width, phone=phone)
                    self.assertEqual(self.overflow(width), [])

    def test_an_overflow_would_be_seen(self):
        for width, phone in WIDTHS:
            self.open(ONE, width=width, phone=phone)
            self.evaluate(f"document.querySelector('h1').style.width = '{width + 50}px'")
            self.assertNotEqual(self.overflow(width), [])

    def check_contrast(self, dark):
        seen = self.evaluate(CONTRASTS)
        if dark:
            self.assertLess(seen["paper"], 0.05)
        else:
            self.assertGreater(seen["paper"], 0.85)
        self.assertGreater(len(seen["found"]), 150)
        self.assertGreaterEqual(seen["found"][0][0], 4.5, seen["found"][:5])

    def test_text_has_contrast_in_both_modes(self):
        for runs in ([ONE], [ONE, TWO]):
            for scheme in ("light", "dark"):
                with self.subTest(scheme, runs=len(runs)):
                    self.open(*runs, scheme=scheme)
                    self.check_contrast(scheme == "dark")

    def test_the_switch_overrules_the_system_also_on_canvases(self):
        self.open(ONE, scheme="light")
        before = self.drawing("loss")
        self.click(".switch [value=dark]")
        self.check_contrast(dark=True)
        self.assertNotEqual(self.drawing("loss"), before)
        self.assertGreater(self.painted("loss", "--run-1"), 150)
        BROWSER.prefer("dark")
        self.click(".switch [value=light]")
        self.check_contrast(dark=False)

    def test_a_change_of_the_system_redraws(self):
        self.open(ONE, scheme="light")
        BROWSER.prefer("dark")
        BROWSER.settle()
        self.assertGreater(self.painted("loss", "--run-1"), 150)

    def test_everything_can_be_reached_by_tab(self):
        self.open(ONE)
        reached = []
        for _ in range(60):
            BROWSER.press("Tab")
            reached.append(self.evaluate("document.activeElement.dataset.chart ?? document.activeElement.id ?? ''"))
        self.assertLessEqual({*CHARTS, "step"}, set(reached))

    def test_everything_that_is_drawn_has_a_name(self):
        self.open(ONE, TWO)
        drawn = self.each(".chart, svg.timeline, input, .scroll, .timelines",
                          "[Boolean(one.getAttribute('aria-label') || one.closest('label')), one.outerHTML.slice(0, 80)]")
        self.assertGreater(len(drawn), 15)
        self.assertEqual([markup for named, markup in drawn if not named], [])

    @unittest.skipUnless("--pictures" in sys.argv, "no folder for pictures was named")
    def test_pictures(self):
        PICTURES.mkdir(parents=True, exist_ok=True)
        for name, runs in {"one": [ONE], "two": [ONE, TWO]}.items():
            for width, phone in WIDTHS:
                for scheme in ("light", "dark"):
                    self.open(*runs, width=width, phone=phone, scheme=scheme)
                    if name == "one":
                        self.choose(13)
                    BROWSER.picture(PICTURES / f"report_{name}_{width}_{scheme}.png")
                    self.assertGreater((PICTURES / f"report_{name}_{width}_{scheme}.png").stat().st_size, 50_000)


class Hostile(PageTest):
    """Data that no recorder should write, and runs at the edges of what it may."""

    def poisoned(self, value):
        """Every text in a run replaced."""
        if isinstance(value, dict):
            return {key: self.poisoned(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.poisoned(one) for one in value]
        return ATTACK if isinstance(value, str) else value

    def test_markup_in_texts_stays_text(self):
        run = self.poisoned(make_run(Shape(steps=30)))
        run["configuration"][ATTACK] = ATTACK
        for width, phone in WIDTHS:
            self.open(run, run, width=width, phone=phone)
            self.assertIn("<script>window.hacked", self.text("#comparison"))
            self.unfold()
            self.assertEqual(self.evaluate("document.querySelectorAll('img').length"), 0)
            self.assertEqual(self.evaluate("document.scripts.length"), 3)

    def test_losses_that_are_no_numbers_are_gaps(self):
        run = make_run()
        for i in (30, 31, 32, 199):
            run["steps"]["loss"][i] = math.nan if i % 2 else None
        self.open(run)
        self.assertEqual(float(self.text("[data-figure=loss] dd")), float(f"{run['steps']['loss'][198]:.4g}"))
        self.focus("[data-chart=loss]")
        BROWSER.press("End")
        self.assertIn("Training\nnot a number", self.text("[data-chart='loss'] .tip"))
        whole = self.painted("loss", "--run-1")
        run["steps"]["loss"][60:140] = [None] * 80
        self.open(run)
        self.assertLess(self.painted("loss", "--run-1"), 0.8 * whole)

    def test_no_number_at_all(self):
        run = make_run(Shape(steps=9))
        run["steps"] = {name: column if name == "step" else [math.nan] * 9 for name, column in run["steps"].items()}
        self.open(run)
        self.assertEqual(self.charts(), ["loss"])  # evaluation

    def test_an_empty_run(self):
        self.open({"format": 1})
        self.assertIn("No step was recorded.", self.text("main"))
        self.assertEqual(self.text("h1"), "run 1")

    def test_no_run(self):
        self.open()
        self.assertEqual(self.text("h1"), "No run")

    def test_another_format_is_a_sentence_and_the_others_are_shown(self):
        self.open({"format": 7, "name": "future"}, ONE)
        self.assertIn("“future” was recorded in format 7; this page reads 1.", self.text(".problem"))
        self.assertEqual(self.text("h1"), ONE["name"])

    def test_data_that_are_no_json_are_a_sentence(self):
        path = Path(FOLDER.name) / "broken.html"
        path.write_text(assemble.template(assemble.LIBRARY).replace(assemble.DATA, '[{"format": 1, "loss": NaN'))
        BROWSER.open(path)
        self.assertIn("The data of this page cannot be read", self.text(".problem"))

    def test_one_step_on_one_rank(self):
        self.open(make_run(Shape(steps=1, ranks=1, buckets=1)))
        self.assertGreater(self.painted("loss", "--run-1"), 20)
        self.assertEqual(self.shown_step(), 1)
        self.assertEqual(self.evaluate("document.querySelectorAll('svg.timeline [data-rank]').length"), 1)
        self.assertIsNone(self.evaluate("document.querySelector('#stragglers')"))

    def test_64_ranks(self):
        for width, phone in WIDTHS:
            self.open(make_run(Shape(steps=20, ranks=64, buckets=23)), width=width, phone=phone)
            self.assertEqual(self.evaluate("document.querySelectorAll('svg.timeline [data-rank]').length"), 64)
            self.assertEqual(self.evaluate("document.querySelectorAll('svg.timeline .bucket').length"), 64 * 23)
            self.assertEqual(self.evaluate("document.querySelectorAll('.stacks li').length"), 8)
            self.unfold()
            BROWSER.wait_for("document.querySelectorAll('.stacks li').length === 64")
            self.assertEqual(self.evaluate("document.documentElement.scrollWidth"), width)

    def test_10_000_steps(self):
        run = make_run(Shape(steps=10_000, timeline_every=500))
        self.open(run)
        self.assertGreater(self.painted("time", "--backward"), 1000)
        self.unfold()
        self.assertTrue(all(3 < rows < 103 for rows in self.each(".chart-card tbody", "one.rows.length")))
        self.choose(20)
        self.assertEqual(self.shown_step(), 10_000)

    def test_fields_of_the_wrong_kind_are_as_if_not_there(self):
        bad_rank = {"phases": {"name": [1], "begin_ms": ["a"]}, "buckets": {"bucket": [0], "begin_ms": [5], "end_ms": [1]}}
        for junk in (None, 5, "text", True, [], {}, [None], [[]], {"step": "x"}, {"step": [1, 2], "loss": "abc"}, [{"step": 1}],
                     [{"step": 1, "ranks": 3}], [{"step": 1, "ranks": [bad_rank]}]):
            with self.subTest(junk=junk):
                self.open({"format": 1} | {name: junk for name in ONE if name != "format"})
                self.assertEqual(len(self.texts("h1")), 1)

    def test_steps_out_of_order_and_twice(self):
        self.open({"format": 1, "name": "r", "steps": {"step": [3, 1, 2, 2, None], "loss": [30.5, 10.5, 20.5, 99.5, 77.5]}})
        self.unfold()
        self.assertEqual(self.texts(".chart-card tbody td"), ["10.5", "20.5", "30.5"])
        self.assertEqual(self.text("[data-figure=loss] dd"), "30.5")


class Samples(unittest.TestCase):
    def test_they_are_the_same_every_time(self):
        self.assertEqual(make_run(Shape(steps=11)), make_run(Shape(steps=11)))

    def test_columns_have_one_length_and_parts_make_the_whole(self):
        self.assertEqual({len(column) for column in ONE["steps"].values()}, {200})
        self.assertEqual(sum(ONE["stragglers"]["times_last"]), 200)
        self.assertEqual(len(ONE["timelines"]), 21)

    def test_the_straggler_costs_what_is_drawn(self):
        exposed = ONE["steps"]["exposed_ms"]
        self.assertGreater(statistics.mean(exposed[120:150]), 2 * statistics.mean(exposed[50:100]))
        self.assertEqual(sample.Shape().straggler, 2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=Path)
    arguments, rest = parser.parse_known_args()
    PICTURES = arguments.pictures
    unittest.main(argv=[sys.argv[0], *rest])

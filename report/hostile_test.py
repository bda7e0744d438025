#!/usr/bin/env python3
"""Data that no recorder should write, and runs at the edges of what it may, in a real browser."""

import math
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_case import ATTACK, ONE, WIDTHS, PageTest, assemble, main, setUpModule  # noqa: E402, F401
from sample import Shape, make_run  # noqa: E402


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
        self.browser.press("End")
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
        path = self.folder / "broken.html"
        path.write_text(assemble.template(assemble.LIBRARY).replace(assemble.DATA, '[{"format": 1, "loss": NaN'))
        self.browser.open(path)
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
            self.browser.wait_for("document.querySelectorAll('.stacks li').length === 64")
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


if __name__ == "__main__":
    main()

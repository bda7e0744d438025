#!/usr/bin/env python3
"""How the page looks, in a real browser: in both modes, on wide and narrow windows.

usage: report/looks_test.py [--pictures FOLDER] [unittest's options]
"""

import argparse
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_case import CHARTS, ONE, TWO, WIDTHS, PageTest, main, setUpModule  # noqa: E402, F401
from queries import CONTRASTS  # noqa: E402
from sample import Shape, make_run  # noqa: E402

PICTURES = None


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
        self.browser.prefer("dark")
        self.click(".switch [value=light]")
        self.check_contrast(dark=False)

    def test_a_change_of_the_system_redraws(self):
        self.open(ONE, scheme="light")
        self.browser.prefer("dark")
        self.browser.settle()
        self.assertGreater(self.painted("loss", "--run-1"), 150)

    def test_everything_can_be_reached_by_tab(self):
        self.open(ONE)
        reached = []
        for _ in range(60):
            self.browser.press("Tab")
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
                    self.browser.picture(PICTURES / f"report_{name}_{width}_{scheme}.png")
                    self.assertGreater((PICTURES / f"report_{name}_{width}_{scheme}.png").stat().st_size, 50_000)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=Path)
    arguments, rest = parser.parse_known_args()
    PICTURES = arguments.pictures
    main(argv=[sys.argv[0], *rest])

#!/usr/bin/env python3
"""The timeline of a step, in a real browser: everything lies where one scale puts it."""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_case import ONE, PageTest, main, setUpModule  # noqa: E402, F401
from queries import TIMELINE  # noqa: E402


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
        self.browser.press("ArrowRight")
        self.assertEqual(self.shown_step(), start + 10)
        self.focus(".timelines")
        self.browser.press("ArrowLeft")
        self.browser.press("ArrowLeft")
        self.assertEqual(self.shown_step(), start - 10)
        self.click("[aria-label='Next step']")
        self.assertEqual(self.shown_step(), start)

    def test_ends_are_ends(self):
        self.open(ONE)
        self.focus("#step")
        for key, step, button in (("Home", 1, "Step before"), ("End", 200, "Next step")):
            self.browser.press(key)
            self.browser.press("ArrowLeft" if key == "Home" else "ArrowRight")
            self.assertEqual(self.shown_step(), step)
            self.assertTrue(self.evaluate(f"document.querySelector('[aria-label=\"{button}\"]').disabled"))

    def test_the_table_follows_the_step(self):
        self.open(ONE)
        self.choose(3)
        self.unfold(".timeline-view details")
        self.choose(14)
        self.browser.wait_for("document.querySelector('.timeline-view tbody')")
        rows = self.cells(".timeline-view tbody tr")
        self.assertEqual(len(rows), 28)
        rank = ONE["timelines"][14]["ranks"][1]
        self.assertEqual(rows[9][:2], ["1", "2"])
        self.assertAlmostEqual(float(rows[9][5].split()[0]), rank["buckets"]["end_ms"][2], delta=0.051)

    def test_a_tooltip_on_a_bucket(self):
        self.open(ONE)
        self.evaluate("document.querySelector('#timeline').scrollIntoView()")
        left, top, _, _ = self.box(".bucket .hidden-part", 3)
        self.browser.mouse("mouseMoved", left + 4, top + 3)
        self.browser.settle()
        tip = self.text(".tip.fixed")
        self.assertIn("rank 0, bucket 3, 6.01 MiB", tip)
        self.assertIn(f"ready at {ONE['timelines'][10]['ranks'][0]['buckets']['ready_ms'][3]:.1f} ms", tip)

    def test_it_is_drawn_anew_for_another_width(self):
        self.open(ONE)
        self.browser.resize(700)
        self.browser.settle()
        self.assertLess(self.evaluate("document.querySelector('svg.timeline').getBoundingClientRect().right"), 700)
        self.check_drawing(ONE["timelines"][10])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""What the recorder of Tutti writes, on the page that `tutti report` makes, in a real browser: format and page fit together.

The environment names the programs, as ctest does: TUTTI_TOOL (tutti) and TUTTI_RECORDED_RUN (tests/report/recorded_run.cpp).
"""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import page_case  # noqa: E402
from page_case import CHARTS, ONE, PageTest, assemble, main  # noqa: E402

TOOL, WRITER = (os.environ.get(name) for name in ("TUTTI_TOOL", "TUTTI_RECORDED_RUN"))
RUN = None


def call(*command):
    return subprocess.run([*map(str, command)], check=True, capture_output=True, text=True, timeout=60).stdout


def setUpModule():
    global RUN
    if not TOOL or not WRITER:
        raise unittest.SkipTest("TUTTI_TOOL and TUTTI_RECORDED_RUN are not named")
    page_case.setUpModule()
    call(WRITER, PageTest.folder / "run.json")
    RUN = json.loads((PageTest.folder / "run.json").read_text())


class Recorded(unittest.TestCase):
    def test_it_has_every_field_that_a_page_shows(self):
        self.assertEqual(set(RUN), set(ONE))
        for table in ("steps", "evaluation", "traffic", "memory", "stragglers"):
            self.assertEqual(set(RUN[table]), set(ONE[table]), table)
        for rank, shown in zip(RUN["timelines"][0]["ranks"], ONE["timelines"][0]["ranks"], strict=False):
            self.assertEqual({name: set(rank[name]) for name in ("phases", "buckets")},
                             {name: set(shown[name]) for name in ("phases", "buckets")})

    def test_columns_have_one_length(self):
        for table in ("steps", "evaluation", "traffic", "stragglers"):
            self.assertEqual(len({len(column) for column in RUN[table].values()}), 1, table)
        self.assertLessEqual(len(RUN["steps"]["step"]), 100)
        self.assertEqual(RUN["steps"]["step"][-1], 301)

    def test_the_tool_and_the_script_make_the_same_page(self):
        call(TOOL, "report", self.page("same.html"), PageTest.folder)
        page = (PageTest.folder / "same.html").read_text()
        before, after = assemble.template(assemble.LIBRARY).split(assemble.DATA)
        self.assertTrue(page.startswith(before) and page.endswith(after), "build/ is older than report/")
        data = page[len(before):-len(after)]
        self.assertNotIn("<", data)
        self.assertEqual(json.loads(data), [RUN])

    def test_its_trace_has_every_bucket(self):
        trace = PageTest.folder / "trace.json"
        call(TOOL, "report", "--trace", trace, PageTest.folder)
        events = json.loads(trace.read_text())["traceEvents"]
        drawn = [event for event in events if event["ph"] == "X" and event["name"].startswith("bucket")]
        recorded = [len(rank["buckets"]["bucket"]) for timeline in RUN["timelines"] for rank in timeline["ranks"]]
        self.assertEqual(len(drawn), sum(recorded))

    def page(self, name):
        return f"--out={PageTest.folder / name}"


class RecordedPage(PageTest):
    def test_all_of_it_is_shown(self):
        said = call(TOOL, "report", self.folder)
        self.assertIn(f"{self.folder}/report.html", said)
        self.open_file(self.folder / "report.html")
        self.assertEqual(self.charts(), list(CHARTS))
        self.assertEqual(self.text("h1"), "recorded dp=3")
        self.assertEqual(len(self.each("svg.timeline [data-rank]", "1")), 3)
        self.assertIn("Rank 1 was last most often: in 301 of 301 steps", self.text("#stragglers"))
        self.assertIn("1,505", self.text("#traffic"))
        self.assertIn("<script>window.hacked", self.text("#events"))
        self.assertIn("caf\ufffd", self.text("#sample"))
        self.assertEqual(self.each("#memory .stack", "one.children.length"), [2, 2, 2])

    def test_the_last_timeline_has_the_buckets_that_were_laid_out_anew(self):
        self.open(RUN)
        self.choose(len(RUN["timelines"]) - 1)
        self.assertEqual(self.shown_step(), 301)
        self.assertEqual(self.each("svg.timeline [data-rank='2'] .bucket", "Number(one.dataset.bucket)"), [3, 4, 5, 6, 7])
        self.assertEqual(RUN["bucket_bytes"][3], 1_000_007)

    def test_two_of_them_are_compared(self):
        call(TOOL, "report", self.folder, self.folder / "run.json", f"--out={self.folder / 'two.html'}")
        self.open_file(self.folder / "two.html")
        self.assertEqual(self.texts("#comparison thead .run-name"), ["recorded dp=3", "recorded dp=3 (2)"])


if __name__ == "__main__":
    main()

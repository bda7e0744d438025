#!/usr/bin/env python3
"""How a page is put together, and the made-up runs that other tests look at. No browser."""

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
sys.path.insert(0, str(Path(__file__).resolve().parent))
from page_case import ATTACK, HERE, ONE, assemble  # noqa: E402
from sample import Shape, make_run  # noqa: E402


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
        self.assertEqual(Shape().straggler, 2)


if __name__ == "__main__":
    unittest.main()

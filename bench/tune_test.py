#!/usr/bin/env python3
"""`tutti bench --tune`, whole: what it prints, what it keeps, and that programs find it."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import unittest

TOOL = None


def run(*arguments, tuning="off", **variables):
    environment = {**os.environ, "TUTTI_TUNING": tuning, **variables}
    return subprocess.run([TOOL, *arguments], env=environment, text=True, capture_output=True, timeout=120)


class Tune(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = os.path.join(folder.name, "deeper", "tuning.json")

    def tune(self, *arguments, tuning=None):
        done = run("bench", *arguments, "--tune", "--seconds", "0.01", tuning=tuning or self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def kept(self):
        with open(self.file) as file:
            return json.load(file)["tuned"]

    def test_the_grid_has_every_way_and_one_is_chosen(self):
        grids = json.loads(self.tune("--sizes", "8,96Ki", "--json").stdout)
        self.assertEqual([(grid["op"], grid["memory"], grid["group"]) for grid in grids],
                         [("all_reduce", "symmetric", "shm 2"), ("all_reduce", "private", "shm 2")])
        for grid in grids:
            for size in grid["sizes"]:
                self.assertLessEqual({"own", "in_slices", "ring", "direct", "tree"}, set(size["tried_us"]))
                self.assertIn(size["chosen"], size["tried_us"])
                self.assertTrue(all(time > 0 for time in size["tried_us"].values()))
            self.assertIn("at_once", grid["sizes"][0]["tried_us"])
            self.assertNotIn("at_once", grid["sizes"][1]["tried_us"])
            self.assertGreaterEqual(grid["worst"], 1)

    def test_what_was_found_is_kept_for_that_group_and_found_again(self):
        first = self.tune("broadcast", "--sizes", "64", "--memory", "private").stdout
        self.assertIn("broadcast in private memory, shm 2", first)
        self.assertIn("chosen: ", first)
        self.tune("broadcast", "--sizes", "64", "--memory", "private", "-n", "3")
        self.tune("broadcast", "--sizes", "64", "--memory", "private")
        self.assertEqual([(each["group"], each["operation"]) for each in self.kept()],
                         [("shm 2", "broadcast"), ("shm 3", "broadcast")])
        for each in self.kept():
            self.assertTrue(each["machine"] and each["choices"] and each["when"])

    def test_ranks_take_what_the_first_one_reads(self):
        self.tune("--sizes", "64", "--memory", "private")
        entry = {**self.kept()[0], "choices": "ring"}
        other = os.path.join(os.path.dirname(self.file), "other.json")
        for path, choices in (self.file, "ring"), (other, "tree/2"):
            with open(path, "w") as file:
                json.dump({"version": 1, "tuned": [{**entry, "choices": choices}]}, file)
        script = f'TUTTI_TUNING=$([ $RANK = 0 ] && echo {self.file} || echo {other}) exec "$0" "$@"'
        program = os.path.join(os.path.dirname(TOOL), "tutti-bench")
        done = run("run", "-n", "2", "--", "sh", "-c", script, program, "--sizes", "4096", "--seconds-per-size", "0.01")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_file_that_makes_no_sense_is_told_of_and_not_touched(self):
        os.makedirs(os.path.dirname(self.file))
        with open(self.file, "w") as file:
            file.write("nonsense")
        done = run("bench", "--sizes", "64", "--seconds", "0.01", tuning=self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("it is not used", done.stdout + done.stderr)
        done = run("bench", "--tune", "--sizes", "64", "--seconds", "0.01", tuning=self.file)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(self.file, done.stderr)
        with open(self.file) as file:
            self.assertEqual(file.read(), "nonsense")

    def refused(self, *arguments, tuning=None):
        """One line, and nothing was timed before."""
        done = run("bench", *arguments, tuning=tuning or self.file)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), done.stdout + done.stderr)
        return done.stderr

    def test_a_file_that_cannot_be_kept_is_known_before_anything_is_timed(self):
        folder = os.path.dirname(self.file)
        os.makedirs(folder)
        with open(self.file, "w"):
            pass
        self.assertIn(f"{self.file}: no JSON object", self.refused("--tune", "--sizes", "64"))
        self.assertIn(f"{folder}: it is a folder", self.refused("--tune", "--sizes", "64", tuning=folder))
        self.assertIn("cannot make the folder", self.refused("--tune", "--sizes", "64", tuning="/proc/nowhere/f"))
        for option in "--record", "--out":
            self.assertIn("/dev/full: cannot write: it is no file", self.refused("--links", option, "/dev/full"))
            self.assertIn(f"{folder}: cannot write: it is a folder", self.refused("--links", option, folder))

    def test_ranks_that_others_started_end_before_anything_is_timed_too(self):
        program = os.path.join(os.path.dirname(TOOL), "tutti-bench")
        for arguments, tuning, says in ((["--links", "--record", "/dev/full"], "off", "/dev/full: cannot write"),
                                        (["--tune", "--sizes", "64"], "/dev/zero", "/dev/zero: it is no file")):
            done = run("run", "-n", "2", "--", program, *arguments, tuning=tuning)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stdout + done.stderr)
            self.assertNotIn("is lost", done.stdout + done.stderr)
            self.assertNotIn("tuning all_reduce", done.stdout + done.stderr)

    def test_files_without_end_are_not_read(self):
        self.assertIn("/dev/zero: it is no file", self.refused("--links", "--from", "/dev/zero"))
        done = run("plan", "cost", "--topology", "/dev/zero", "-n", "2")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/dev/zero: it is no file", done.stderr)
        done = run("bench", "--sizes", "64", "--seconds", "0.01", tuning="/dev/zero")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("/dev/zero: it is no file; it is not used", done.stdout + done.stderr)

    def test_what_was_found_for_other_sizes_stays(self):
        self.tune("--sizes", "8,4Mi", "--memory", "private")
        (entry,) = self.kept()
        with open(self.file, "w") as file:
            json.dump({"version": 1, "tuned": [{**entry, "choices": "own,1Mi:ring/4"}]}, file)
        done = self.tune("--sizes", "8", "--memory", "private")
        (entry,) = self.kept()
        self.assertTrue(entry["choices"].endswith("1Mi:ring/4"), entry)
        self.assertEqual(entry["timed"], [8, 4 << 20])
        self.assertIn("only blocks of 8 to 8 bytes were timed now", done.stderr)

    def test_numbers_that_make_no_sense_are_refused(self):
        for seconds in "nan", "inf", "0", "-1", "1e300", "1e-400":
            self.assertIn("--seconds", self.refused("--seconds", seconds))
        for option in "--rounds", "--cores":
            self.assertIn(option, self.refused("--links", option, "0"))

    def test_links_refuse_what_has_no_meaning_with_them(self):
        for wrong in (["--tune"], ["--sizes", "8"], ["--dtype", "int64"], ["--memory", "both"], ["--seconds", "1"], ["--touch"],
                      ["--reproducible"], ["--plot", "x.svg"], ["all_gather"], ["--record", "x", "--out", "y"],
                      ["--record", "x", "--json"], ["--from", TOOL, "-n", "2"], ["--from", TOOL, "--rounds", "2"]):
            self.assertIn("excludes", self.refused("--links", *wrong))

    def test_nothing_is_kept_where_that_is_off(self):
        self.assertNotIn("kept in", self.tune("--sizes", "64", "--memory", "private", tuning="off").stdout)

    def test_one_rank_has_nothing_to_tune(self):
        done = run("bench", "--tune", "-n", "1", "--sizes", "64")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("nothing to tune", done.stderr)

    def test_links_are_timed_once_and_used_from_then_on(self):
        before = run("plan", "cost", "--topology", "here", "-n", "2", tuning=self.file)
        self.assertIn("links were not timed yet", before.stderr)
        timed = run("bench", "--links", "-n", "2", "--rounds", "1", tuning=self.file)
        self.assertEqual(timed.returncode, 0, timed.stderr)
        networks = os.path.join(os.path.dirname(self.file), "networks")
        (name,) = os.listdir(networks)
        self.assertIn(os.path.join(networks, name), timed.stderr)
        after = run("plan", "cost", "--topology", "here", "-n", "2", "--bytes", "1Mi", tuning=self.file)
        self.assertEqual(after.returncode, 0, after.stderr)
        self.assertIn("all_reduce of 1 MiB, 2 ranks, this host", after.stdout)
        # Every message costs a second there: who sends many is not tried.
        with open(os.path.join(networks, name)) as file:
            network = json.load(file)
        network["levels"][0]["send"]["us"] = 1e6
        with open(os.path.join(networks, name), "w") as file:
            json.dump(network, file)
        (grid,) = json.loads(self.tune("--sizes", "1Mi", "--memory", "private", "--json").stdout)
        tried = grid["sizes"][0]["tried_us"]
        self.assertIn("direct", tried)
        self.assertNotIn("tree/16", tried)

    def test_what_links_took_can_be_recorded_and_used_later(self):
        recorded = os.path.join(os.path.dirname(self.file), "links.json")
        done = run("bench", "--links", "-n", "2", "--rounds", "1", "--compare", "--record", recorded, tuning=self.file)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"--from {recorded}", done.stderr)
        self.assertEqual(os.listdir(os.path.dirname(self.file)), ["links.json"])
        found = run("bench", "--links", "--from", recorded, "--json", tuning=self.file)
        self.assertEqual(found.returncode, 0, found.stderr)
        report = json.loads(found.stdout)
        with open(recorded) as file:
            was = json.load(file)
        for part in "calibration", "comparison":
            self.assertEqual([plan["round_seconds"] for plan in report[part]["plans"]],
                             [plan["round_seconds"] for plan in was[part]["plans"]])
            self.assertGreater(report[part]["median_error"], 0)
        self.assertEqual(run("plan", "cost", "--topology", "here", "-n", "2", tuning=self.file).returncode, 0)

    def test_a_recording_that_is_none_is_refused(self):
        done = run("bench", "--links", "--from", TOOL)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"{TOOL} is no recording of tutti bench --links", done.stderr)
        for wrong, says in (["--links", "--from", "/no/such"], "/no/such"), (["--from", TOOL], "--links"):
            done = run("bench", *wrong)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(says, done.stderr)

    def test_what_has_nothing_to_choose_from_is_refused(self):
        for op in "barrier", "all_induce":
            done = run("bench", op, "--tune", "--sizes", "64", "--seconds", "0.01")
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"--tune: nothing to choose from for '{op}'", done.stderr)

    def test_sizes_may_come_in_any_order(self):
        grids = json.loads(self.tune("--sizes", "4Ki,64,4Ki", "--memory", "private", "--json").stdout)
        self.assertEqual([size["bytes"] for size in grids[0]["sizes"]], [64, 4096])

    def test_a_choice_that_cannot_be_is_refused(self):
        for wrong, says in ("ring,4K:tree", "is no size"), ("bruck", "no bruck for all_reduce"):
            done = run("bench", "--sizes", "64", "--seconds", "0.01", TUTTI_ALL_REDUCE=wrong)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(f"TUTTI_ALL_REDUCE={wrong}", done.stderr)
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True)
    known, rest = parser.parse_known_args()
    TOOL = known.tool
    unittest.main(argv=[sys.argv[0], *rest])

"""bench/links_hosts, whole: what it records and what it tunes between two hosts of one rank each. Skipped, and said so, where hosts
cannot be made, or there is no Open MPI."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "tests"))
from skips import main  # noqa: E402


class BetweenHosts(unittest.TestCase):
    def between_hosts(self, *arguments):
        done = subprocess.run([os.path.join(HERE, "links_hosts"), "--ranks", "1", *arguments], capture_output=True, text=True,
                              timeout=150, check=False, stdin=subprocess.DEVNULL)
        if done.returncode != 0 and done.stderr.startswith(("no hosts:", "no openmpi")):
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done

    def test_what_links_take_is_recorded_and_every_rank_ends_well(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "links.json")
            done = self.between_hosts("--record", path, "--rounds", "1", "--seconds-per-size", "0.0001")
            self.assertNotIn("is gone", done.stderr)
            with open(path) as file:
                recording = json.load(file)
        self.assertEqual((recording["hosts"], recording["ranks_of_host"]), (2, 1))
        plans = recording["calibration"]["plans"]
        self.assertGreater(len(plans), 50)
        self.assertTrue(all(plan["seconds"] > 0 for plan in plans))

    def test_what_is_quickest_is_found_among_plans_and_mpis_own(self):
        done = self.between_hosts("--tune", "--sizes", "8,96Ki", "--memory", "private", "--seconds-per-size", "0.01", "--json")
        grid, = json.loads(done.stdout[done.stdout.index("["):done.stdout.rindex("]") + 1])
        self.assertRegex(grid["group"], r"^mpi \(Open MPI.*\) 1\+1$")
        for size in grid["sizes"]:
            self.assertLessEqual({"own", "library", "ring", "tree"}, set(size["tried_us"]))
            self.assertIn(size["chosen"], size["tried_us"])


if __name__ == "__main__":
    main(argv=sys.argv)

"""The benchmark's scripts, without any peer; and the bare loop, which has to compute sums and not only to be fast."""

import argparse
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from xml.etree import ElementTree

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parent))
import plots  # noqa: E402
import rounds  # noqa: E402
import tables  # noqa: E402
from contestants import ALL_OPS, CONTESTANTS  # noqa: E402

BARE_LOOP = None


def line(contestant, size, median, setting="default", meeting=0.6, kind="peer", op="all_reduce"):
    return {"op": op, "ranks": 2, "bytes": size, "asked": size, "dtype": "float32", "median_us": median, "contestant": contestant,
            "kind": kind, "setting": setting, "meeting_us": meeting, "touch": False, "round": 0}


class Tables(unittest.TestCase):
    kinds = {"Tutti symmetric": "ours", "Open MPI": "peer", "Gloo": "peer", "Tutti in Python": "python", "bare loop": "limit"}

    def figures(self, *lines):
        return tables.summarize(list(lines))[("all_reduce", 2, "float32", "as is")]

    def test_median_and_spread_of_rounds(self):
        figure = self.figures(line("Gloo", 8, 3.0), line("Gloo", 8, 9.0), line("Gloo", 8, 4.0))["Gloo"][8]
        self.assertEqual((figure.median_us, figure.least_us, figure.most_us, figure.rounds), (4.0, 3.0, 9.0, 3))

    def test_bus_bandwidth_as_nccl_defines_it(self):
        self.assertAlmostEqual(tables.bus_gbps("all_reduce", 4, 4_000_000, 1000.0), 6.0)
        self.assertAlmostEqual(tables.bus_gbps("all_gather", 4, 4_000_000, 1000.0), 3.0)
        self.assertAlmostEqual(tables.bus_gbps("broadcast", 4, 4_000_000, 1000.0), 4.0)

    def test_ratios_are_to_the_best_peer_of_each_size(self):
        rows = tables.ratio_rows(self.figures(
            line("Tutti symmetric", 8, 2.0, kind="ours"), line("Open MPI", 8, 5.0), line("Gloo", 8, 100.0),
            line("Tutti in Python", 8, 10.0, kind="python"), line("bare loop", 8, 1.0, kind="limit")), self.kinds, [8])
        self.assertEqual(rows[0], "| best peer | Open MPI |")
        self.assertIn("**2.50x**", rows[1])
        self.assertIn("**10.00x**", rows[2])
        self.assertIn("50%", rows[3])

    def test_failures_are_no_figures(self):
        self.assertEqual(tables.summarize([{"failure": "did not end", "op": "all_reduce"}]), {})

    def test_names_of_sizes(self):
        self.assertEqual([tables.size_name(size) for size in (8, 4096, 25 << 20, 1000)], ["8 B", "4 KiB", "25 MiB", "1000 B"])


class Rounds(unittest.TestCase):
    def test_output_as_array_or_as_lines(self):
        one = {"op": "all_reduce"}
        self.assertEqual(rounds.parse_output(json.dumps([one])), [one])
        self.assertEqual(rounds.parse_output("a warning\n" + json.dumps(one) + "\n"), [one])

    def test_results_are_kept_apart_by_how_near_the_cores_were(self):
        lines = [line("a", 8, 1.0, meeting=0.2), line("a", 8, 3.0, meeting=0.6), line("a", 8, 3.1, meeting=0.7)]
        self.assertEqual(rounds.states_of(lines), [lines[1:], lines[:1]])

    def test_settings_are_compared_within_one_state_only(self):
        """The slower setting was lucky: it ran while the cores were near."""
        lines = [line("a", 8, 3.0, "fast", 0.6), line("a", 8, 6.0, "slow", 0.6), line("a", 8, 2.0, "slow", 0.2),
                 line("a", 8, 1.0, "fast", 0.2)]
        self.assertEqual(rounds.score_settings(lines), {"fast": 1.0, "slow": 2.0})

    def test_the_best_setting_is_kept_in_the_file_for_this_machine(self):
        contestant = next(one for one in CONTESTANTS if one.name == "Open MPI")
        case = rounds.Case("all_reduce", 1, (8, 4096))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "settings.json"
            rounds.Settings(path, "here").remember(contestant, case, {8: {"bound": 2.0, "ring": 1.0}, 4096: {"bound": 1.0}})
            self.assertEqual(rounds.Settings(path, "here").choose(contestant, case, 8).name, "ring")
            self.assertIsNone(rounds.Settings(path, "elsewhere").choose(contestant, case, 8))
            groups = rounds.by_setting(rounds.Settings(path, "here"), contestant, case)
            self.assertEqual([(setting.name, sizes) for setting, sizes in groups], [("ring", [8]), ("bound", [4096])])

    def test_every_contestant_has_a_setting_and_a_command_for_all_it_offers(self):
        arena = rounds.Arena()
        for contestant in CONTESTANTS:
            for op in contestant.ops:
                for ranks in (1, 10000):
                    case = rounds.Case(op, ranks, (8,))
                    fitting = rounds.fitting_settings(contestant, case)
                    self.assertTrue(fitting, f"{contestant.name} has no setting for {op} on {ranks} ranks")
                    command = arena.command(contestant, fitting[0], case, rounds.Effort(1, 5))
                    self.assertNotIn("{", " ".join(command))
            self.assertLessEqual(set(contestant.ops), set(ALL_OPS))

    def test_a_contestant_that_fails_says_why(self):
        contestant = CONTESTANTS[0].__class__("broken", "peer", (), ("sh", "-c"), ("echo too bad >&2; exit 3",))
        with self.assertRaisesRegex(rounds.Failure, "ended with 3: too bad"):
            rounds.Arena().run(contestant, contestant.settings[0], rounds.Case("barrier", 1, (8,)), rounds.Effort(1, 5))


class Plots(unittest.TestCase):
    def test_plots_are_documents_with_one_line_per_contestant(self):
        summary = tables.summarize([line(name, size, time) for name, time in (("a<b", 1.0), ("c", 70.0)) for size in (8, 4096)])
        files = plots.plots_of(summary)
        self.assertEqual(sorted(files), ["all_reduce_2_ranks_bandwidth.svg", "all_reduce_2_ranks_latency.svg"])
        for text in files.values():
            drawing = ElementTree.fromstring(text)
            lines = [path for path in drawing.iter("{http://www.w3.org/2000/svg}path") if path.get("class") == "line"]
            self.assertEqual(len(lines), 2)
            self.assertIn("prefers-color-scheme:dark", text)

    def test_ticks_hold_all_values(self):
        for high in (0.3, 1.0, 7.0, 79.4):
            marks = plots.ticks(0.01, high, False)
            self.assertGreaterEqual(marks[-1], high)
            self.assertLess(len(marks), 10)
        self.assertEqual(plots.ticks(0.5, 200, True), [0.1, 1.0, 10.0, 100.0, 1000.0])


class BareLoop(unittest.TestCase):
    def run_loop(self, *options):
        return subprocess.run([BARE_LOOP, "--seconds-per-size", "0.01", "--min-iterations", "3", *options], capture_output=True,
                              text=True, timeout=60, check=False)

    @unittest.skipUnless("--bare-loop" in sys.argv, "no bare loop was named")
    def test_both_algorithms_add_on_any_number_of_ranks(self):
        for algorithm in ("one-shot", "two-shot"):
            for ranks in (1, 2, 3):
                for touch in ("yes", "no"):
                    done = self.run_loop("-n", str(ranks), "--sizes", "4,1004,65540", "--algorithm", algorithm, "--touch", touch)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    lines = rounds.parse_output(done.stdout)
                    self.assertEqual([(one["bytes"], one["ranks"]) for one in lines], [(4, ranks), (1004, ranks), (65540, ranks)])

    @unittest.skipUnless("--bare-loop" in sys.argv, "no bare loop was named")
    def test_it_says_what_it_does_not_have(self):
        done = self.run_loop("--op", "broadcast")
        self.assertEqual(done.returncode, 2)
        self.assertIn("all_reduce of float32 alone", done.stderr)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--bare-loop")
    arguments, rest = parser.parse_known_args()
    BARE_LOOP = arguments.bare_loop
    unittest.main(argv=[sys.argv[0], *rest])

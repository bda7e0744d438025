"""`tutti train` as a user calls it: whole runs, and what it says while they go on."""

import json
import os
import re
import signal
import struct
import subprocess
import sys
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from trained import FILES, SMALL, TOOL, Trained, rank_of  # noqa: E402


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError("nothing came of it")
        time.sleep(0.05)
    return found


def tensor_in(file, name):
    """The bytes of a tensor of a safetensors file."""
    content = file.read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    first, last = json.loads(content[8:begin])[name]["data_offsets"]
    return content[begin + first:begin + last]


def overwrite_in_process(pid, old, new):
    """Puts new bytes for old ones wherever the process has them in memory of its own; how often."""
    found = 0
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            place, rights = line.split()[:2]
            begin, end = (int(number, 16) for number in place.split("-"))
            if rights != "rw-p" or end - begin > 1 << 28:  # larger ones are only reserved
                continue
            memory.seek(begin)
            content = memory.read(end - begin)
            for match in re.finditer(re.escape(old), content):
                memory.seek(begin + match.start())
                memory.write(new)
                found += 1
    return found


class WholeRuns(Trained):
    def test_leaves_everything_and_tells(self):
        out, _ = self.train("-n", "2", "--steps", "20", "--evaluation-interval", "7")
        for file in FILES:
            self.assertTrue((self.folder / "runs/train" / file).is_file(), file)
        self.assertIn("2 ranks, 20 steps of 768 tokens, into runs/train\n", out)
        self.assertIn("step 20/20  loss ", out)
        self.assertIn("What it writes:", out)
        self.assertIn(" bits per byte)", out)
        self.assertNotIn("\r", out)
        run = json.loads((self.folder / "runs/train/run.json").read_text())
        self.assertEqual(run["steps"]["step"], list(range(1, 21)))
        self.assertEqual(run["evaluation"]["step"], [7, 14, 20])
        self.assertEqual((run["ranks"], run["status"]), (2, "finished"))
        self.assertTrue(all(len(one["ranks"]) == 2 for one in run["timelines"]))
        self.assertFalse((self.folder / "runs/train/saving").exists())

    def test_a_second_run_gets_a_folder_of_its_own(self):
        self.train("--steps", "2")
        first = self.weights("runs/train")
        out, _ = self.train("--steps", "3")
        self.assertIn("runs/train has a run in it; this one goes to runs/train-2\n", out)
        self.assertEqual(self.weights("runs/train"), first)
        out, _ = self.tutti("train", "--config", "runs/train-2/train.json", "--steps", "4")
        self.assertIn("into runs/train-3\n", out)
        self.assertEqual(json.loads((self.folder / "runs/train-3/train.json").read_text())["steps"], 4)

    def test_ranks_from_a_file(self):
        (self.folder / "three.json").write_text(json.dumps({"ranks": 3, "steps": 2}))
        chosen = {"three": ((), 3), "one": (("-n", "1"), 1)}
        for name, (flags, ranks) in chosen.items():
            out, _ = self.train("--config", "three.json", "--out", name, *flags)
            self.assertRegex(out, rf" {ranks} ranks?, 2 steps ")
            self.assertEqual(json.loads((self.folder / name / "train.json").read_text())["ranks"], ranks)
        out, _ = self.tutti("train", "--config", "three/train.json", "--resume", "--steps", "3")
        self.assertIn(" 3 ranks, 3 steps ", out)
        self.train("--steps", "1", "--out", "unsaid")
        self.assertIsNone(json.loads((self.folder / "unsaid/train.json").read_text())["ranks"])
        (self.folder / "no.json").write_text('{"ranks": 0}')
        self.assertEqual(self.complaint("--config", "no.json"), "tutti train: no.json: ranks is 0, and must be a whole number from 1 to 1024\n")

    def test_json_lines(self):
        out, _ = self.train("--steps", "5", "--json")
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([line["step"] for line in lines[:5]], [1, 2, 3, 4, 5])
        self.assertEqual(lines[5]["summary"]["status"], "finished")
        self.assertEqual(lines[5]["summary"]["loss"], lines[4]["loss"])
        self.assertEqual(len(lines), 6)

    def test_standard_input_is_kept_for_later(self):
        self.tutti("train", "--data", "-", *SMALL, "--steps", "2", data=self.text.read_bytes())
        self.assertEqual((self.folder / "runs/train/input.txt").read_bytes(), self.text.read_bytes())
        self.tutti("train", "--config", "runs/train/train.json", "--resume", "--steps", "4")

    def test_all_that_can_be_switched_on(self):
        out, _ = self.train("-n", "2", "--steps", "6", "--accumulation", "2", "--optimizer", "lamb", "--precision",
                            "bfloat16", "--hook", "bf16", "--batch-scaling", "square_root", "--clip", "0",
                            "--save-interval", "4", "--no-record")
        self.assertIn("step 6/6", out)
        self.assertFalse((self.folder / "runs/train/run.json").exists())

    def test_a_loss_that_is_no_number_is_said_once(self):
        out, err = self.train("-n", "2", "--steps", "30", "--learning-rate", "1e12", "--warmup-steps", "0", code=1)
        for rank in (0, 1):
            self.assertEqual(out.count(f"note: rank {rank} had a loss or gradient that is not a number in step 2"), 1)
            self.assertIn(f"rank {rank} had a loss or gradient that is not a number 29 times, in steps 2 to 30", out)
        self.assertEqual(err, "tutti train: the last loss is not a number, so weights are not saved; a smaller --learning-rate may help\n")
        run = json.loads((self.folder / "runs/train/run.json").read_text())
        # On a busy machine a rank may be late, too.
        events = [(event["rank"], event["kind"]) for event in run["events"] if event["kind"] != "late rank"]
        self.assertEqual(events, [(0, "NaN"), (1, "NaN")])

    def test_a_rank_that_is_late_is_said_once(self):
        command = [TOOL, "train", "--data", str(self.text), "--steps", "100000", "-n", "2", "--sample-length", "0"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True) as tool:
            self.addCleanup(tool.kill)
            late = wait_for(lambda: rank_of(self.folder, 1), 30)
            said = []
            reader = threading.Thread(target=lambda: said.extend(iter(tool.stdout.readline, "")))
            reader.start()
            end = time.monotonic() + 60
            while not any("late" in line for line in said) and time.monotonic() < end:
                for what, seconds in ((signal.SIGSTOP, 0.08), (signal.SIGCONT, 0.004)):  # a step takes longer than the pauses between
                    os.kill(late, what)
                    time.sleep(seconds)
            tool.send_signal(signal.SIGINT)
            self.assertEqual(tool.wait(120), 130)
            reader.join()
        first, *rest = [line for line in said if line.startswith("note: rank 1 ")]  # on a busy machine the other may be late, too
        self.assertRegex(first, r"note: rank 1 was late in step \d+ by ")
        # Until it has stopped it may be late once more, which is counted at the end.
        self.assertTrue(not rest or (len(rest) == 1 and re.match(r"note: rank 1 was late \d+ times, in steps ", rest[0])), said)
        run = json.loads((self.folder / "runs/train/run.json").read_text())
        self.assertIn((1, "late rank"), [(event["rank"], event["kind"]) for event in run["events"]])
        self.assertGreater(run["stragglers"]["times_last"][run["stragglers"]["rank"].index(1)], 4)

    def test_a_replica_that_diverged_is_said_once(self):
        # A weight of one rank is changed in its memory. Steps are too small to change any: it is known what lies there.
        still = ("--learning-rate", "1e-30", "-n", "2", "--evaluation-interval", "0", "--sample-length", "0")
        self.train(*still, "--steps", "1", "--out", "first")
        row = tensor_in(self.folder / "first/model.safetensors", "transformer.wpe.weight")[:128]
        other = row[:64] + struct.pack("<f", 0.75) + row[68:]
        command = [TOOL, "train", "--data", str(self.text), *SMALL, *still, "--steps", "1000000"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True) as tool:
            self.addCleanup(tool.kill)
            said = []
            reader = threading.Thread(target=lambda: said.extend(iter(tool.stdout.readline, "")))
            reader.start()
            wait_for(lambda: any(line.startswith("step ") for line in said), 60)
            try:
                self.assertGreater(overwrite_in_process(rank_of(self.folder, 1), row, other), 0)
            except PermissionError:
                tool.kill()
                self.skipTest("the memory of another process cannot be written to here")
            wait_for(lambda: any("other weights" in line for line in said), 60)
            time.sleep(0.5)  # in which it is compared again
            tool.send_signal(signal.SIGINT)
            self.assertEqual(tool.wait(60), 130)
            reader.join()
        first, *rest = [line for line in said if "other weights" in line]
        self.assertRegex(first, r"^note: rank 1 had other weights than the others in step \d+ "
                                r"\('transformer.wpe.weight' .*on rank 1 is not what the other ranks have, .*; after step \d+ all were the same")
        self.assertEqual(len(rest), 1, rest)
        self.assertRegex(rest[0], r"^note: rank 1 had other weights than the others \d+ times, in steps \d+ to \d+$")
        run = json.loads((self.folder / "runs/train/run.json").read_text())
        self.assertIn((1, "diverged replica"), [(event["rank"], event["kind"]) for event in run["events"]])

    def test_weights_of_another_run_to_begin_with(self):
        self.train("--steps", "2")
        out, _ = self.tutti("train", "--data", self.text, "--batch-tokens", "768", "--weights", "runs/train", "--steps",
                            "1", "--learning-rate", "1e-9", "--name", "second", "--sample-length", "0")
        self.assertIn("22.0k parameters", out)
        self.assertNotIn("What it writes", out)

    def test_reproducible_on_any_number_of_ranks(self):
        losses = {}
        for ranks in (1, 2, 3):
            out, _ = self.train("-n", ranks, "--steps", "12", "--reproducible", "--json", "--out", f"runs/{ranks}")
            losses[ranks] = [(line.get("loss"), line.get("evaluation_loss"), line.get("gradient_norm"))
                             for line in map(json.loads, out.splitlines()) if "step" in line]
        for ranks in (2, 3):
            self.assertEqual(losses[ranks], losses[1])
            self.assertEqual(self.weights(f"runs/{ranks}"), self.weights("runs/1"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

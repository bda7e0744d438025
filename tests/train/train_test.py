"""`tutti train` and `tutti generate` as a user calls them: whole runs, bad input, Ctrl-C, a full disk."""

import argparse
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from terminal import Terminal  # noqa: E402

ARGUMENTS = None
# A model whose steps take milliseconds.
SMALL = ["--layers", "1", "--heads", "2", "--width", "32", "--context", "32", "--batch-tokens", "768"]
FILES = ["config.json", "model.safetensors", "optimizer.pt", "position.json", "run.json", "train.json"]


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError("nothing came of it")
        time.sleep(0.05)
    return found


def rank_of(folder, rank):
    """The process that is this rank of the training that runs in the folder."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "comm").read_text() == "tutti-train\n" and (entry / "cwd").samefile(folder):
                if f"\0RANK={rank}\0".encode() in b"\0" + (entry / "environ").read_bytes():
                    return int(entry.name)
        except OSError:
            continue  # gone meanwhile
    return None


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


class Trained(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tutti-train-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.text = self.folder / "text.txt"
        self.text.write_text("".join(f"line {i} of a text; half of {i} is {i // 2}.\n" for i in range(2000)))

    def tutti(self, *words, code=0, data=None):
        done = subprocess.run([ARGUMENTS.tool, *map(str, words)], cwd=self.folder, input=data, capture_output=True,
                              timeout=200, check=False)
        out, err = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, f"{words}\n{out}\n{err}")
        return out, err

    def train(self, *words, **more):
        return self.tutti("train", "--data", self.text, *SMALL, *words, **more)

    def complaint(self, *words, data=None):
        """The one sentence that ends it before anything starts."""
        out, err = self.tutti("train", *words, code=2, data=data)
        self.assertEqual(out, "")
        self.assertEqual(err.count("\n"), 1, err)
        self.assertTrue(err.startswith("tutti train: "), err)
        return err

    def weights(self, run):
        return (self.folder / run / "model.safetensors").read_bytes()


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
        self.assertEqual([(event["rank"], event["kind"]) for event in run["events"]], [(0, "NaN"), (1, "NaN")])

    def test_a_rank_that_is_late_is_said_once(self):
        command = [ARGUMENTS.tool, "train", "--data", str(self.text), "--steps", "100000", "-n", "2", "--sample-length", "0"]
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
        notes = [line for line in said if line.startswith("note: ")]
        self.assertEqual(len(notes), 1, said)
        self.assertRegex(notes[0], r"note: rank 1 .*late")
        run = json.loads((self.folder / "runs/train/run.json").read_text())
        self.assertEqual([(event["rank"], event["kind"]) for event in run["events"]], [(1, "late rank")])
        self.assertGreater(run["stragglers"]["times_last"][run["stragglers"]["rank"].index(1)], 4)

    def test_a_replica_that_diverged_is_said_once(self):
        # A weight of one rank is changed in its memory. Steps are too small to change any: it is known what lies there.
        still = ("--learning-rate", "1e-30", "-n", "2", "--evaluation-interval", "0", "--sample-length", "0")
        self.train(*still, "--steps", "1", "--out", "first")
        row = tensor_in(self.folder / "first/model.safetensors", "transformer.wpe.weight")[:128]
        other = row[:64] + struct.pack("<f", 0.75) + row[68:]
        command = [ARGUMENTS.tool, "train", "--data", str(self.text), *SMALL, *still, "--steps", "1000000"]
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


class Generating(Trained):
    def test_writes_on(self):
        self.train("--steps", "5")
        words = ("generate", "--prompt", "line 1", "--length", "50")
        first, _ = self.tutti(*words)
        self.assertTrue(first.startswith("line 1"))
        self.assertEqual(self.tutti(*words, "--seed", "1")[0], first)
        self.assertNotEqual(self.tutti(*words, "--seed", "2")[0], first)
        likeliest = self.tutti(*words, "runs/train", "--temperature", "0")[0]
        self.assertEqual(self.tutti(*words, "runs/train", "--top-k", "1", "--seed", "3")[0], likeliest)
        self.assertEqual(self.tutti("generate", "--length", "0", "--prompt", "")[0], "")

    def test_text_comes_byte_by_byte_also_into_a_pipe(self):
        self.train("--steps", "2")
        command = [ARGUMENTS.tool, "generate", "--prompt", "line 1", "--length", "1000000", "--temperature", "5"]  # hardly a space or line's end in it
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tool:
            self.addCleanup(tool.kill)
            pieces = [os.read(tool.stdout.fileno(), 65536) for _ in range(150)]
            self.assertIsNone(tool.poll(), "it is not done when the first text is there")
            tool.stdout.close()
            self.assertEqual(tool.stderr.read(), b"", "whose reader has left says nothing")
            self.assertEqual(tool.wait(20), -signal.SIGPIPE)
        self.assertTrue(pieces[0].startswith(b"line 1"), pieces[0])
        self.assertLess(sorted(map(len, pieces))[len(pieces) // 2], 5)

    def test_letters_of_several_bytes_are_whole_on_a_terminal(self):
        self.train("--steps", "2")
        terminal = Terminal([ARGUMENTS.tool, "generate", "--prompt", "\u00e4\u20ac\U0001f600", "--length", "300", "--temperature", "5"], self.folder)
        self.assertEqual(terminal.wait(), 0)
        said = terminal.seen.decode()  # every byte of it is UTF-8
        self.assertTrue(said.startswith("\u00e4\u20ac\U0001f600"), said)
        self.assertIn("\ufffd", said)
        self.assertTrue(all(letter.isprintable() or letter in "\r\n\t" for letter in said), said)

    def test_limits(self):
        self.train("--steps", "2")
        same = ("generate", "--seed", "3")
        self.assertEqual(self.tutti(*same, "--length", "0", "--prompt", "as it is")[0], "as it is")
        long = "x" * 100_000  # the model sees the last 32
        self.assertEqual(self.tutti(*same, "--length", "20", "--prompt", long)[0],
                         long[32:] + self.tutti(*same, "--length", "20", "--prompt", long[:32])[0])
        for option, values in (("--length", ("-1", "nan", "1e3", "2.5", "1000000001", "many", "")),
                               ("--temperature", ("-0.1", "nan", "inf", "1e-9", "101", "hot", "")),
                               ("--top-k", ("-1", "257", "nan")),
                               ("--seed", ("-1", "nan", "18446744073709551617"))):
            for value in values:
                out, err = self.tutti(*same[:1], f"{option}={value}", code=2)
                self.assertEqual(out, "")
                self.assertRegex(err, rf"\Atutti generate: {option}.*\n\Z")
                self.assertLess(len(err), 160, err)

    def test_without_weights(self):
        _, err = self.tutti("generate", code=2)
        self.assertIn("there is no run in runs/", err)
        _, err = self.tutti("generate", "nowhere", code=1)
        self.assertEqual(err, "tutti generate: nowhere/config.json: cannot read: No such file or directory\n")


class BadInput(Trained):
    def test_data(self):
        (self.folder / "empty").write_bytes(b"")
        (self.folder / "short").write_bytes(b"short")
        (self.folder / "void").mkdir()
        self.assertIn("nothing-here: cannot read: No such file", self.complaint("--data", "nothing-here"))
        self.assertIn("empty: is empty", self.complaint("--data", "empty"))
        self.assertIn("the data has 6 bytes, and a context of 128 needs 129", self.complaint("--data", "short"))
        self.assertIn("no text in this folder", self.complaint("--data", "void"))
        self.assertIn("standard input: is empty", self.complaint("--data", "-", data=b""))

    def test_settings(self):
        data = ("--data", self.text)
        self.assertIn("mesh dp=3 needs at least 3 ranks", self.complaint(*data, "--mesh", "dp=3", "-n", "2"))
        self.assertIn("not along tp", self.complaint(*data, "--mesh", "tp=2"))
        self.assertIn("did you mean 'nano'?", self.complaint(*data, "--preset", "nanno"))
        self.assertIn("768 or 1024 would fit", self.complaint(*data, "--batch-tokens", "1000", "-n", "2"))
        self.assertIn("did you mean '--steps'?", self.complaint(*data, "--step", "7"))
        self.assertFalse((self.folder / "runs").exists())

    def test_more_than_there_is_memory_for(self):
        data = ("--data", self.text)
        err = self.complaint(*data, "--batch-tokens", 128 * 10**8, "-n", "2")
        self.assertRegex(err, r"needs at least \d[^ ]* GiB of memory, and there is \d.*: each of 2 ranks .* a smaller --batch-tokens, a larger --accumulation")
        self.assertRegex(self.complaint(*data, "--layers", "900", "--width", "65536", "-n", "1"), r"a smaller --preset or --width needs less\n")
        self.assertFalse((self.folder / "runs").exists())

    def test_folders(self):
        data = ("--data", self.text)
        (self.folder / "file").write_text("")
        self.assertIn("file/run: cannot make the folder", self.complaint(*data, "--out", "file/run"))
        self.assertIn("elsewhere/train.json: cannot read", self.complaint("--out", "elsewhere", "--resume"))
        self.train("--steps", "2")
        self.assertIn("has made all of its 2 steps", self.complaint("--config", "runs/train/train.json", "--resume"))
        self.assertIn("another size", self.complaint("--resume", "--steps", "4", "--layers", "2"))
        self.text.write_text("changed " * 1000)
        self.assertIn("when the position was saved", self.complaint("--resume", "--steps", "4"))


class Failing(Trained):
    """What is said when ranks fail, and how often."""

    def test_what_all_ranks_meet_is_said_once(self):
        self.train("--steps", "3", "--out", "good")
        resume = ("train", "--config", "good/train.json", "--resume", "--steps", "5", "-n", "3")
        _, err = self.tutti(*resume, "--optimizer", "lamb", code=1)
        self.assertEqual(err, "tutti train: good/optimizer.pt: is damaged, or the state of another optimizer or model than this one\n")
        (self.folder / "good/model.safetensors").write_bytes(b"no weights")
        _, err = self.tutti(*resume, code=1)
        self.assertRegex(err, r"\Atutti train: good/model.safetensors: .*\n\Z")

    def test_what_one_rank_meets_is_said_with_it(self):
        tool = self.tool_whose_ranks("[ $RANK = 1 ] && cd /")
        done = subprocess.run([tool, "train", "--data", self.text, *SMALL, "--steps", "3", "-n", "3", "--out", "lost"], cwd=self.folder,
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "tutti train: rank 1: lost/starting.json: cannot read: No such file or directory\n")

    def test_a_rank_that_left_without_a_word_is_said(self):
        tool = self.tool_whose_ranks("[ $RANK = 1 ] && sleep 1 && exit 7")
        done = subprocess.run([tool, "train", "--data", self.text, *SMALL, "--steps", "3", "-n", "2"], cwd=self.folder, capture_output=True,
                              text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 7)
        self.assertIn("exited with code 7", done.stderr)

    def test_data_that_becomes_shorter_meanwhile_is_said_once(self):
        command = [ARGUMENTS.tool, "train", "--data", self.text, *SMALL, "--steps", "1000000", "-n", "3", "--json", "--save-interval", "5"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
            self.addCleanup(tool.kill)
            self.assertTrue(any(json.loads(line)["step"] == 20 for line in tool.stdout))
            os.truncate(self.text, 5000)
            _, err = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 1)
        reason, hint = err.splitlines()
        self.assertRegex(reason, r"^tutti train: (rank \d( and 1 more)?: )?.*text.txt: has become shorter while it was in use")
        self.assertRegex(hint, r"^tutti train: to go on after step \d+ of 1000000: ")

    def test_an_environment_that_makes_no_sense_is_said_once(self):
        os.environ["TUTTI_TIMEOUT"] = "soon"
        self.addCleanup(os.environ.pop, "TUTTI_TIMEOUT")
        self.assertEqual(self.complaint("--data", self.text, *SMALL, "-n", "2"),
                         "tutti train: TUTTI_TIMEOUT=soon: must be a number of seconds above 0\n")
        self.assertFalse((self.folder / "runs").exists())

    def killed(self, *words, when):
        """What a training says of a rank that is killed as soon as there is such a line."""
        command = [ARGUMENTS.tool, "train", "--data", self.text, *SMALL, "--steps", "100000", "-n", "2", "--json", *words]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as tool:
            self.addCleanup(tool.kill)
            self.assertTrue(any(json.loads(line)["step"] == when for line in tool.stdout))
            os.kill(rank_of(self.folder, 1), signal.SIGKILL)
            _, err = tool.communicate(timeout=60)
        self.assertEqual(tool.returncode, 137)
        verdict, hint = err.splitlines()  # and nothing of those who lost it
        self.assertRegex(verdict, r"^tutti train: rank 1 \(pid \d+\) was killed by SIGKILL \(signal 9\) after")
        return hint

    def test_a_killed_rank_and_how_to_go_on(self):
        last = self.killed("--save-interval", "7", when=20)
        self.assertRegex(last, r"^tutti train: to go on after step \d+ of 100000: tutti train --config runs/train/train.json --resume$")
        saved = json.loads((self.folder / "runs/train/position.json").read_text())["step"]
        self.assertIn(f"after step {saved} ", last)
        out, _ = self.tutti(*last.split(": tutti ")[1].split(), "--steps", saved + 2, "--warmup-steps", "0", "--json")
        self.assertEqual([line["step"] for line in map(json.loads, out.splitlines()) if "step" in line], [saved + 1, saved + 2])

    def test_a_killed_rank_before_anything_was_saved(self):
        self.assertEqual(self.killed(when=2),
                         "tutti train: this run had not saved anything to go on from yet (it does every 500 steps: --save-interval)")

    def tool_whose_ranks(self, begin):
        """A copy of the tool whose ranks run these words of the shell first."""
        folder = self.folder / "tool"
        folder.mkdir()
        shutil.copy(ARGUMENTS.tool, folder / "tutti")
        program = Path(ARGUMENTS.tool).parent / "tutti-train"
        (folder / "tutti-train").write_text(f'#!/bin/sh\n{begin}\nexec "{program}" "$@"\n')
        (folder / "tutti-train").chmod(0o755)
        return str(folder / "tutti")


class Damaged(Trained):
    """What others may have left in a run's folder. Errors are a sentence each, and have no C++ in them."""

    CPP = re.compile(r"frame #|Exception raised|terminate called|c10|what\(\)|std::|enforce fail|\.cpp|\.h:|0x[0-9a-f]{6}")
    BROKEN = {"nothing": b"", "a few bytes": b"\x07\0\0", "noise": bytes(range(256)) * 40, "braces": b"{" * 3000, "an array": b"[]",
              "an object": b"{}", "a null": b"null"}

    def run_in(self, name, *words):
        done = subprocess.run([ARGUMENTS.tool, *words], cwd=self.folder, capture_output=True, timeout=100, check=False, text=True, errors="replace")
        self.assertIn(done.returncode, (1, 2), (name, words, done))
        self.assertRegex(done.stderr, r"\Atutti (train|generate|report): .+\n\Z", (name, words))
        self.assertNotRegex(done.stderr, self.CPP, (name, words))

    def test_files(self):
        self.train("--steps", "2", "--out", "good")
        resume = ("train", "--config", "run/train.json", "--resume", "--steps", "4", "-n", "2")
        uses = {"config.json": [("generate", "run"), resume], "model.safetensors": [("generate", "run"), resume], "optimizer.pt": [resume],
                "position.json": [resume], "train.json": [resume], "run.json": [("report", "run")]}
        for file, commands in uses.items():
            whole = (self.folder / "good" / file).read_bytes()
            for kind, content in {**self.BROKEN, "half": whole[:len(whole) // 2]}.items():
                if (file, kind) == ("train.json", "an object"):
                    continue  # is one
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                shutil.copytree(self.folder / "good", self.folder / "run")
                (self.folder / "run" / file).write_bytes(content)
                for command in commands:
                    self.run_in(f"{file} is {kind}", *command)

    def test_a_model_larger_than_any_memory(self):
        self.train("--steps", "2", "--out", "run")
        config = json.loads((self.folder / "run/config.json").read_text())
        (self.folder / "run/config.json").write_text(json.dumps({**config, "n_layer": 900, "n_embd": 65536, "n_head": 1}))
        self.run_in("huge", "generate", "run")

    def test_a_report_is_not_written_over_its_record(self):
        self.train("--steps", "2", "--out", "run")
        record = self.folder / "run/run.json"
        before = record.read_bytes()
        (self.folder / "link.json").symlink_to(record)
        for target in ("run/run.json", "./run/../run/run.json", record, "link.json"):
            for option in ("--out", "--trace"):
                out, err = self.tutti("report", "run", option, target, code=2)
                self.assertEqual((out, err), ("", f"tutti report: {target}: is the record that this is to be made of\n"))
                self.assertEqual(record.read_bytes(), before)
        self.assertTrue((self.folder / "link.json").is_symlink())


class Interrupted(Trained):
    def command(self, *words):
        return [ARGUMENTS.tool, "train", "--data", str(self.text), *SMALL, "-n", "2", *words]

    def test_live_line_and_control_c(self):
        terminal = Terminal(self.command("--steps", "3000", "--name", "cut"), self.folder)
        terminal.read_until(rb"\r\x1b\[K[^\r]* \d{3}/3000  loss [^\r]*\r")
        terminal.resize(40)
        time.sleep(0.5)
        terminal.press(b"\x03")
        self.assertEqual(terminal.wait(), 130)
        said = terminal.seen.decode(errors="replace")
        self.assertIn("stopping; press Ctrl-C again to end at once", said)
        self.assertRegex(said, r"stopped after step \d+ of 3000; to go on: tutti train --config runs/cut/train.json --resume")
        lines = [line for line in said.replace("\x1b[K", "").split("\r") if "/3000" in line and "stopped" not in line]
        self.assertTrue(all(len(line.rstrip("\n")) <= 100 for line in lines))
        self.assertLess(min(map(len, lines[-3:])), 40)
        self.assertEqual(json.loads((self.folder / "runs/cut/run.json").read_text())["status"], "interrupted")

    def test_going_on_is_as_if_nothing_had_been(self):
        self.train("-n", "2", "--steps", "400", "--out", "runs/whole", "--reproducible")
        started = subprocess.Popen(self.command("--steps", "400", "--out", "runs/cut", "--reproducible", "--json"),
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(5):
            started.stdout.readline()
        started.send_signal(signal.SIGTERM)
        out, err = started.communicate(timeout=60)
        self.assertEqual(started.returncode, 143, err)
        self.assertEqual(json.loads(out.splitlines()[-1])["summary"]["status"], "interrupted")
        position = json.loads((self.folder / "runs/cut/position.json").read_text())
        self.assertLess(position["step"], 400)
        self.tutti("train", "--config", "runs/cut/train.json", "--resume", "-n", "3")
        self.assertEqual(self.weights("runs/cut"), self.weights("runs/whole"))
        self.assertEqual(json.loads((self.folder / "runs/cut/position.json").read_text())["step"], 400)
        run = json.loads((self.folder / "runs/cut/run.json").read_text())
        self.assertEqual(run["steps"]["step"], list(range(1, 401)))
        self.assertEqual((run["status"], run["ranks"]), ("finished", 3))


class Guarded(Trained):
    """What was saved stays as long as nothing better is there."""

    def test_a_copy_goes_on_where_it_is(self):
        self.train("--steps", "3", "--out", "good")
        shutil.copytree(self.folder / "good", self.folder / "copy")
        self.tutti("train", "--config", "copy/train.json", "--resume", "--steps", "5")
        steps = {name: json.loads((self.folder / name / "position.json").read_text())["step"] for name in ("good", "copy")}
        self.assertEqual(steps, {"good": 3, "copy": 5})

    def test_weights_that_are_no_numbers_are_not_saved(self):
        self.train("--steps", "3", "--out", "good")
        before = self.weights("good")
        _, err = self.tutti("train", "--config", "good/train.json", "--resume", "--steps", "12", "--learning-rate", "1e30", "--clip", "0",
                            "--minimum-rate", "1e30", code=1)
        self.assertIn("the last loss is not a number, so weights are not saved", err)
        self.assertEqual(self.weights("good"), before)
        self.tutti("generate", "good", "--length", "5")

    def test_what_failed_to_go_on_can_still_go_on(self):
        self.train("--steps", "3", "--out", "good")
        _, err = self.tutti("train", "--config", "good/train.json", "--resume", "--steps", "5", "--optimizer", "lamb", code=1)
        self.assertIn("is damaged, or the state of another optimizer", err)
        self.tutti("train", "--config", "good/train.json", "--resume", "--steps", "5")

    def test_one_training_at_a_time_in_a_folder(self):
        command = [ARGUMENTS.tool, "train", "--data", str(self.text), *SMALL, "--steps", "100000", "-n", "1", "--out", "same", "--json"]
        with subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE) as first:
            self.addCleanup(first.kill)
            first.stdout.readline()
            self.assertRegex(self.complaint("--data", self.text, *SMALL, "--out", "same"), "another training writes there now")
            first.send_signal(signal.SIGINT)
            first.stdout.read()
            self.assertEqual(first.wait(60), 130)

    def test_pipes_are_refused(self):
        os.mkfifo(self.folder / "pipe")
        self.assertRegex(self.complaint("--data", "pipe", *SMALL), "is a pipe; give what it holds on standard input")


class FullDisk(Trained):
    def setUp(self):
        super().setUp()
        self.disk = self.folder / "disk"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(self.disk)],
                                 capture_output=True, check=False)
        if mounted.returncode != 0:
            self.skipTest("a small file system cannot be mounted here")
        self.addCleanup(subprocess.run, ["umount", str(self.disk)], check=False)

    def test_a_sentence_and_the_old_files(self):
        self.train("--steps", "2", "--out", self.disk / "run", "--no-record")
        before = {file.name: file.read_bytes() for file in (self.disk / "run").iterdir()}
        (self.disk / "other").write_bytes(b"x" * 150_000)
        _, err = self.train("--steps", "3", "--out", self.disk / "run", "--no-record", code=1)
        self.assertRegex(err, r"tutti train: .*: No space left on device")
        after = {file.name: file.read_bytes() for file in (self.disk / "run").iterdir()}
        del after["starting.json"]  # what it was to do
        self.assertEqual(after, before)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tool", required=True, type=lambda path: str(Path(path).resolve()))
    ARGUMENTS, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)

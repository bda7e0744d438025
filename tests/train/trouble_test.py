"""What `tutti train` says of bad input, of ranks that fail, and of damaged files."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
from trained import SMALL, TOOL, Trained, rank_of  # noqa: E402


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
        command = [TOOL, "train", "--data", self.text, *SMALL, "--steps", "1000000", "-n", "3", "--json", "--save-interval", "5"]
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
        command = [TOOL, "train", "--data", self.text, *SMALL, "--steps", "100000", "-n", "2", "--json", *words]
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
        shutil.copy(TOOL, folder / "tutti")
        program = Path(TOOL).parent / "tutti-train"
        (folder / "tutti-train").write_text(f'#!/bin/sh\n{begin}\nexec "{program}" "$@"\n')
        (folder / "tutti-train").chmod(0o755)
        return str(folder / "tutti")


class Damaged(Trained):
    """What others may have left in a run's folder. Errors are a sentence each, and have no C++ in them."""

    CPP = re.compile(r"frame #|Exception raised|terminate called|c10|what\(\)|std::|enforce fail|\.cpp|\.h:|0x[0-9a-f]{6}")
    BROKEN = {"nothing": b"", "a few bytes": b"\x07\0\0", "noise": bytes(range(256)) * 40, "braces": b"{" * 3000, "an array": b"[]",
              "an object": b"{}", "a null": b"null"}

    def run_in(self, name, *words):
        done = subprocess.run([TOOL, *words], cwd=self.folder, capture_output=True, timeout=100, check=False, text=True, errors="replace")
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


if __name__ == "__main__":
    unittest.main(verbosity=2)

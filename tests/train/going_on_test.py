"""Ctrl-C, going on, what must not be lost, a full disk."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import unittest

sys.dont_write_bytecode = True
from terminal import Terminal  # noqa: E402
from trained import SMALL, TOOL, Trained  # noqa: E402


class Interrupted(Trained):
    def command(self, *words):
        return [TOOL, "train", "--data", str(self.text), *SMALL, "-n", "2", *words]

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
        command = [TOOL, "train", "--data", str(self.text), *SMALL, "--steps", "100000", "-n", "1", "--out", "same", "--json"]
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
    unittest.main(verbosity=2)

"""What tests of `tutti train` stand on: a folder with a text, and the tool, which the variable TUTTI_TOOL names."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

TOOL = os.environ["TUTTI_TOOL"]
# A model whose steps take milliseconds.
SMALL = ["--layers", "1", "--heads", "2", "--width", "32", "--context", "32", "--batch-tokens", "768"]
FILES = ["config.json", "model.safetensors", "optimizer.pt", "position.json", "run.json", "train.json"]


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


class Trained(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="tutti-train-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.text = self.folder / "text.txt"
        self.text.write_text("".join(f"line {i} of a text; half of {i} is {i // 2}.\n" for i in range(2000)))

    def tutti(self, *words, code=0, data=None):
        done = subprocess.run([TOOL, *map(str, words)], cwd=self.folder, input=data, capture_output=True,
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

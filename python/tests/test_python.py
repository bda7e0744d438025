"""The installed package: `import tutti`, torch.distributed on it, PyTorch's DDP, and the tool."""

import os
import subprocess
import sys
import unittest

RANKS = os.path.join(os.path.dirname(__file__), "ranks.py")


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=180, check=False)


class Python(unittest.TestCase):
    def ranks(self, count, *arguments):
        done = run(sys.executable, "-m", "tutti.run", "-n", str(count), "--", sys.executable, RANKS, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_import_registers_the_backend(self):
        done = run(sys.executable, "-c", "import torch.distributed as d, tutti; print(d.Backend.TUTTI, tutti.__version__)")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertRegex(done.stdout, r"tutti \d+\.\d+\.\d+")

    def test_the_tool_comes_along(self):
        done = run(sys.executable, "-m", "tutti", "--version")
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("0.1", done.stdout)

    def test_collectives(self):
        self.ranks(3, "collectives")

    def test_collectives_over_our_store(self):
        self.ranks(3, "collectives", "tutti://")

    def test_collectives_alone(self):
        self.ranks(1, "collectives")

    def test_ddp_trains(self):
        self.ranks(2, "ddp")

    def test_ddp_trains_under_torchrun(self):
        done = run(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", RANKS, "ddp")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_a_mismatch_is_an_error(self):
        self.ranks(2, "mismatch")

    def test_init_again_and_fork(self):
        self.ranks(2, "again", "tutti://")

    def test_init_again_and_fork_under_torchrun(self):
        done = run(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", RANKS, "again")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_store(self):
        self.ranks(3, "store", "tutti://")


if __name__ == "__main__":
    unittest.main(verbosity=2)

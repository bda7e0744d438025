"""The installed package: `import tutti`, torch.distributed on it, PyTorch's DDP, and the tool."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
RANKS = os.path.join(HERE, "ranks.py")


def run(*command, **environment):
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=180, check=False, env={**os.environ, **environment})


class Python(unittest.TestCase):
    def ranks(self, count, *arguments, script="ranks.py", **environment):
        """Checks of a script of ours, one after the other in one group: to start a rank takes seconds."""
        command = [sys.executable, os.path.join(HERE, script), *arguments]
        done = run(sys.executable, "-m", "tutti.run", "-n", str(count), "--", *command, **environment)
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
        self.ranks(3, "store,collectives", "tutti://")

    def test_collectives_alone(self):
        self.ranks(1, "collectives")

    def test_ddp_trains_after_a_mismatch(self):
        self.ranks(2, "mismatch,ddp")

    def test_ddp_trains_under_torchrun(self):
        done = run(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", RANKS, "ddp")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_calls(self):
        self.ranks(3, "reduces,lists,messages,coalesced,groups,symmetric", script="calls.py")

    def test_calls_over_our_store(self):
        self.ranks(2, "coalesced,groups,symmetric", "tutti://", script="calls.py", TEST_BACKEND="cpu:tutti")

    def test_call_sites_callbacks_and_forked_workers(self):
        with tempfile.TemporaryDirectory() as folder:
            theirs = shutil.copytree(HERE, os.path.join(folder, "torch"))  # not the torch that is left out
            self.ranks(2, "call_sites,callbacks,loader,abandons", script=os.path.join(theirs, "troubles.py"))

    def test_a_backend_that_torch_wraps(self):
        self.ranks(2, "wrapped", script="troubles.py", TORCH_DISTRIBUTED_DEBUG="DETAIL")

    def test_ranks_that_do_not_come_or_leave(self):
        self.ranks(3, "missing,leaves", script="troubles.py")

    def test_functional_collectives_ddp_and_pipelines(self):
        self.ranks(2, "functional,ddp_kinds,pipeline", script="clients.py")

    def test_meshes_and_dtensors(self):
        self.ranks(4, "functional,mesh,tensor_parallel,hybrid", script="clients.py")

    def test_fsdp2_and_checkpoints(self):
        with tempfile.TemporaryDirectory() as folder:
            self.ranks(2, "fsdp2,fsdp2_low_precision,checkpoint", script="sharded.py", TEST_FOLDER=folder)

    def test_init_again_and_fork(self):
        self.ranks(2, "again", "tutti://")

    def test_init_again_and_fork_under_torchrun(self):
        done = run(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", RANKS, "again")
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main(verbosity=2)

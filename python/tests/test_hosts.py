"""torch.distributed on several hosts (network namespaces), joined by MPI: the same checks as on one, with nothing but
`init_method="tutti://"` to say where ranks are. Skipped, and said so, where hosts cannot be made and for MPIs that are not here.
"""

import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "hosts"), os.path.join(ROOT, "tests")]
from cluster import Cluster, Mpi, Unavailable  # noqa: E402
from skips import main  # noqa: E402


class OnHosts(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            cls.cluster = Cluster(2).__enter__()
        except Unavailable as why:
            raise unittest.SkipTest(f"no hosts: {why}") from why
        cls.addClassCleanup(cls.cluster.__exit__, None, None, None)

    def check(self, folder, ranks, names):
        mpi = Mpi(os.path.join(ROOT, ".venv", "mpi", folder))
        if not mpi.available():
            self.skipTest(f"no {folder} in {mpi.root}")
        variables = {"PYTHONPATH": os.environ.get("PYTHONPATH", ""), "OMP_NUM_THREADS": "1", "TUTTI_TUNING": "off"}
        program = [sys.executable, os.path.join(HERE, "ranks.py"), names, "tutti://"]
        done = subprocess.run(mpi.command(self.cluster, ranks, program, variables), env=mpi.environment(),
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=180,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        # Launchers may mix the words of ranks.
        self.assertEqual(done.stdout.count("check"), sum(ranks) * len(names.split(",")), done.stdout)

    def test_open_mpi(self):
        self.check("openmpi", (2, 2), "several_hosts,store,collectives,mismatch,ddp")

    def test_mpich(self):
        self.check("mpich", (2, 2), "several_hosts,collectives,ddp")


if __name__ == "__main__":
    main(verbosity=2)

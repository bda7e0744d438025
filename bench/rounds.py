"""Runs contestants: one after the other, round after round, each with the setting that is its best on this machine."""

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from contestants import CONTESTANTS, Contestant, Setting

ROOT = Path(__file__).resolve().parent.parent
MPI = ".venv/mpi"
FOREIGN = ("OMPI_", "PMI", "I_MPI_", "CCL_", "MPIR_", "PRTE_", "OPAL_", "TUTTI_", "GLOO_", "HYD", "UCX_")


@dataclass(frozen=True)
class Case:
    """What is asked of everyone: one operation on one number of ranks, at several sizes."""

    op: str
    ranks: int
    sizes: tuple[int, ...]
    dtype: str = "float32"
    touch: bool = False


@dataclass(frozen=True)
class Effort:
    seconds: float  # for each size
    samples: int  # at least
    limit: float = 400  # seconds for all


class Failure(Exception):
    """A contestant that did not start, did not end, or computed something wrong."""


def count_cores() -> int:
    return len(os.sched_getaffinity(0))


def find_python() -> str:
    """A Python that has torch: the project's own, or the system's."""
    for python in (".venv/bin/python", "python3"):
        path = shutil.which(python) if "/" not in python else str(ROOT / python)
        if path and Path(path).exists():
            probe = [path, "-c", "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"]
            if subprocess.run(probe, check=False).returncode == 0:
                return path
    return "no-python-with-torch"


class Arena:
    """Where contestants run: the repository's root, without what other launchers left in the environment."""

    def __init__(self) -> None:
        self.python = find_python()
        self.words = {"mpi": f"{ROOT}/{MPI}", "root": str(ROOT), "python": self.python}

    def missing(self, contestant: Contestant) -> str | None:
        for need in contestant.needs:
            if not (ROOT / need.format(**self.words)).exists():
                return need.format(**self.words)
        return None

    def environment(self, contestant: Contestant, setting: Setting) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
        added = {**contestant.environment, **setting.environment}
        return {**kept, **{name: value.format(**self.words) for name, value in added.items()}}

    def command(self, contestant: Contestant, setting: Setting, case: Case, effort: Effort) -> list[str]:
        words = {**self.words, "n": str(case.ranks), "op": case.op, "sizes": ",".join(map(str, case.sizes)),
                 "dtype": case.dtype, "seconds": f"{effort.seconds:g}", "samples": str(effort.samples),
                 "touch": "yes" if case.touch else "no", "touch_flag": "--touch" if case.touch else ""}
        return contestant.command(setting, words)

    def run(self, contestant: Contestant, setting: Setting, case: Case, effort: Effort) -> list[dict]:
        command = self.command(contestant, setting, case, effort)
        child = subprocess.Popen(command, cwd=ROOT, env=self.environment(contestant, setting), stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            output, errors = child.communicate(timeout=effort.limit)
        except BaseException as error:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                raise Failure(f"did not end within {effort.limit:g} s") from None
            raise
        if child.returncode != 0:
            said = [line for line in errors.splitlines() if line.strip("-\0 ")]
            raise Failure(f"ended with {child.returncode}: {said[-1].strip() if said else 'nothing said'}")
        return parse_output(output)

    def probe(self) -> float | None:
        """Microseconds in which two cores meet. On a virtual machine this changes while the host moves the cores about."""
        program = ROOT / "build/bench/bare_loop"
        if not program.exists():
            return None
        command = [str(program), "-n", "2", "--sizes", "8", "--touch", "yes", "--seconds-per-size", "0.03"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return parse_output(done.stdout)[0]["median_us"] if done.returncode == 0 else None


def parse_output(text: str) -> list[dict]:
    """A JSON array, or one object on each line that begins with a brace."""
    stripped = text.strip()
    if stripped.startswith("["):
        return json.loads(stripped)
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


class Settings:
    """Which setting is a contestant's best, by operation, ranks and size; kept in a file from run to run."""

    def __init__(self, path: Path, machine: str) -> None:
        self.path, self.machine = path, machine
        known = json.loads(path.read_text()) if path.exists() else {}
        self.best: dict[str, str] = known.get(machine, {})
        self.others = {name: best for name, best in known.items() if name != machine}

    @staticmethod
    def key(contestant: Contestant, case: Case, size: int) -> str:
        return f"{contestant.name} {case.op} {case.dtype} n={case.ranks} {size}"

    def choose(self, contestant: Contestant, case: Case, size: int) -> Setting | None:
        name = self.best.get(self.key(contestant, case, size))
        fitting = fitting_settings(contestant, case)
        if len(fitting) == 1:
            return fitting[0]
        return next((setting for setting in fitting if setting.name == name), None)

    def remember(self, contestant: Contestant, case: Case, scores: dict[int, dict[str, float]]) -> None:
        for size, by_name in scores.items():
            if by_name:
                self.best[self.key(contestant, case, size)] = min(by_name, key=by_name.__getitem__)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({**self.others, self.machine: self.best}, indent=1, sort_keys=True) + "\n")


def fitting_settings(contestant: Contestant, case: Case) -> list[Setting]:
    return [setting for setting in contestant.settings if setting.fits(case.op, case.ranks, count_cores())]


def run_steadily(arena: Arena, contestant: Contestant, setting: Setting, case: Case, effort: Effort) -> list[dict]:
    """A run made again, up to twice, where the cores moved meanwhile. What comes of it says how near they were."""
    for _ in range(3):
        before = arena.probe()
        lines = arena.run(contestant, setting, case, effort)
        after = arena.probe()
        if same_state(before, after):
            return [{**line, "asked": size, "setting": setting.name, "meeting_us": after, "contestant": contestant.name,
                     "kind": contestant.kind, "touch": case.touch} for size, line in zip(case.sizes, lines)]
    return []


def tune(arena: Arena, settings: Settings, contestant: Contestant, case: Case, rounds: int = 3) -> None:
    """Short runs of every setting, in turn, to find the fastest for each size. One that fails is not tried again."""
    lines = []
    trying = fitting_settings(contestant, case)
    for _ in range(rounds):
        for setting in list(trying):
            try:
                lines += run_steadily(arena, contestant, setting, case, Effort(0.1, 5, limit=60))
            except Failure as failure:
                trying.remove(setting)
                print(f"  {contestant.name}, {setting.name}: {failure}", file=sys.stderr)
    scores = {size: score_settings([line for line in lines if line["asked"] == size]) for size in case.sizes}
    settings.remember(contestant, case, scores)
    for size, by_name in scores.items():
        shown = ", ".join(f"{name} {score:.3g}" for name, score in sorted(by_name.items(), key=lambda item: item[1]))
        print(f"  {contestant.name}, {case.op}, {case.ranks} ranks, {size} bytes, times the best: {shown}", flush=True)


def score_settings(lines: list[dict]) -> dict[str, float]:
    """How many times as long as the best each setting took, compared only while the cores were equally far apart."""
    names = {line["setting"] for line in lines}
    scores: dict[str, float] = {}
    for state in states_of(lines):
        times: dict[str, float] = {}
        for line in state:
            times[line["setting"]] = min(line["median_us"], times.get(line["setting"], float("inf")))
        if len(times) * 2 < len(names):
            continue  # hardly anyone to compare with
        best = min(times.values())
        for name, time in times.items():
            scores[name] = min(time / best, scores.get(name, float("inf")))
    return scores


def by_setting(settings: Settings, contestant: Contestant, case: Case) -> list[tuple[Setting, list[int]]]:
    """The case's sizes, by the setting that each is run with: one start of the program serves several."""
    groups: dict[str, tuple[Setting, list[int]]] = {}
    for size in case.sizes:
        setting = settings.choose(contestant, case, size) or fitting_settings(contestant, case)[0]
        groups.setdefault(setting.name, (setting, []))[1].append(size)
    return list(groups.values())


def same_state(before: float | None, after: float | None) -> bool:
    return before is None or after is None or max(before, after) < 2 * min(before, after)


def run_case(arena: Arena, settings: Settings, who: list[Contestant], case: Case, effort: Effort, rounds: int) -> list[dict]:
    """All contestants, round after round, forwards and backwards in turn."""
    results = []
    for number in range(rounds):
        for contestant in who if number % 2 == 0 else reversed(who):
            for setting, sizes in by_setting(settings, contestant, case):
                part = Case(case.op, case.ranks, tuple(sizes), case.dtype, case.touch)
                try:
                    lines = run_steadily(arena, contestant, setting, part, effort)
                    results += [{**line, "round": number} for line in lines]
                except Failure as failure:
                    results.append({"contestant": contestant.name, "op": case.op, "ranks": case.ranks, "failure": str(failure)})
                    print(f"  {contestant.name}: {failure}", file=sys.stderr)
        print(f"{case.op}, {case.ranks} ranks: round {number + 1} of {rounds}", flush=True)
    return results


def present(arena: Arena, names: list[str] | None) -> list[Contestant]:
    who = []
    for contestant in CONTESTANTS:
        if names and contestant.name not in names:
            continue
        missing = arena.missing(contestant)
        if missing:
            print(f"without {contestant.name}: {missing} is not there")
        else:
            who.append(contestant)
    return who


def states_of(results: list[dict]) -> list[list[dict]]:
    """The results, apart by how near the cores were to each other: those that most results come from first."""
    known = sorted(line["meeting_us"] for line in results if line.get("meeting_us"))
    if not known:
        return [results]
    near_limit = 2 * known[0]
    near = [line for line in results if (line.get("meeting_us") or 0) <= near_limit]
    far = [line for line in results if (line.get("meeting_us") or 0) > near_limit]
    return sorted((part for part in (near, far) if part), key=len, reverse=True)


def median_meeting(results: list[dict]) -> float | None:
    known = [line["meeting_us"] for line in results if line.get("meeting_us")]
    return statistics.median(known) if known else None

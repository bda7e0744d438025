"""Runs as a recorder would write them, for tests and for looking at the page: made up, the same every time.

usage: report/sample.py FOLDER     writes one.json and two.json
"""

import json
import math
import random
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20
COLUMNS = ("step", "loss", "gradient_norm", "learning_rate", "tokens_per_s", "step_ms", "forward_ms", "backward_ms",
           "exposed_ms", "optimizer_ms", "communication_ms", "hidden_ms")


@dataclass(frozen=True)
class Shape:
    """What a made-up run is like."""

    name: str = "gpt-nano dp=4"
    ranks: int = 4
    steps: int = 200
    buckets: int = 7
    timeline_every: int = 10
    forward_ms: float = 9.0
    backward_ms: float = 19.0
    gbps: float = 2.6
    tokens: int = 4096
    straggler: int = 2
    late_steps: tuple[int, int] = (118, 152)
    seed: int = 7

    @property
    def bucket_bytes(self) -> list[int]:
        """The first is small, so that something leaves early; the last is what is left."""
        whole = [1 * MIB] + [6 * MIB + 4096 * i for i in range(self.buckets - 1)]
        return whole[:self.buckets - 1] + [2 * MIB + 1028] if self.buckets > 1 else whole


def simulate(shape: Shape, step: int, chance: random.Random) -> list[dict]:
    """One step of every rank: buckets fill during backward, leave in one order, two at most in flight, and end together."""
    ranks = []
    for rank in range(shape.ranks):
        start = chance.uniform(0.0, 0.25)
        slow = 1.38 if rank == shape.straggler and shape.late_steps[0] <= step <= shape.late_steps[1] else 1.0
        forward = shape.forward_ms * chance.gauss(1.0, 0.012) * (2.5 if step == 1 else 1.0)
        backward = shape.backward_ms * slow * chance.gauss(1.0, 0.015)
        from_ms, to_ms = start + 0.3 + forward, start + 0.3 + forward + backward
        ready = [from_ms + backward * (0.16 + 0.84 * (i + 1) / shape.buckets) for i in range(shape.buckets)]
        ready[-1] = to_ms
        ranks.append({"start": start, "forward": start + 0.3, "backward": from_ms, "end": to_ms, "ready": ready})
    begin = [[0.0] * shape.buckets for _ in ranks]
    done = [0.0] * shape.buckets
    for i, size in enumerate(shape.bucket_bytes):
        free = done[i - 2] if i > 1 else 0.0
        for rank, one in enumerate(ranks):
            begin[rank][i] = max(one["ready"][i], free) + 0.02
        together = max(column[i] for column in begin)
        transfer = size / shape.gbps / 1e6 * chance.gauss(1.0, 0.05) if shape.ranks > 1 else 0.0
        done[i] = max(together, done[i - 1] if i else 0.0) + transfer
    for rank, one in enumerate(ranks):
        one["begin"] = begin[rank]
        one["done"] = [at + chance.uniform(0.0, 0.05) for at in done]
        one["resume"] = max(one["end"], one["done"][-1])
        one["stop"] = one["resume"] + 2.6 * chance.gauss(1.0, 0.02)
    return ranks


def overlap(one: dict) -> tuple[float, float]:
    """Time with something in flight, and how much of it before backward ended."""
    whole = hidden = 0.0
    at = 0.0
    for begin, end in zip(one["begin"], one["done"], strict=True):
        begin = max(begin, at)
        whole += max(0.0, end - begin)
        hidden += max(0.0, min(end, one["end"]) - begin)
        at = max(at, end)
    return whole, hidden


def timeline_of(step: int, ranks: list[dict]) -> dict:
    def row(rank: int, one: dict) -> dict:
        cuts = [one["start"], one["forward"], one["backward"], one["end"], one["resume"], one["stop"]]
        names = ["data", "forward", "backward", "wait", "optimizer"]
        return {"rank": rank,
                "phases": {"name": names, "begin_ms": rounded(cuts[:-1]), "end_ms": rounded(cuts[1:])},
                "buckets": {"bucket": list(range(len(one["ready"]))), "ready_ms": rounded(one["ready"]),
                            "begin_ms": rounded(one["begin"]), "end_ms": rounded(one["done"])}}
    return {"step": step, "ranks": [row(rank, one) for rank, one in enumerate(ranks)]}


def rounded(values) -> list[float]:
    return [round(value, 3) for value in values]


def learning_rate(step: int, steps: int) -> float:
    warm = max(1, steps // 10)
    if step <= warm:
        return 6e-4 * step / warm
    return 6e-5 + 5.4e-4 * 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm)))


def make_run(shape: Shape = Shape()) -> dict:
    chance = random.Random(shape.seed)
    columns = {name: [] for name in COLUMNS}
    evaluation = {"step": [], "loss": []}
    late = {"rank": list(range(shape.ranks)), "times_last": [0] * shape.ranks, "late_ms": [0.0] * shape.ranks,
            "most_late_ms": [0.0] * shape.ranks}
    timelines = []
    for step in range(1, shape.steps + 1):
        ranks = simulate(shape, step, chance)
        count_late(late, ranks)
        step_ms = max(one["stop"] for one in ranks)
        gone = 40.0 * step / max(40, shape.steps)
        level = 1.62 + 3.9 * math.exp(-gone / 6.5)
        parts = [(one["backward"] - one["start"], one["end"] - one["backward"], one["resume"] - one["end"],
                  one["stop"] - one["resume"], *overlap(one)) for one in ranks]
        means = [round(sum(column) / shape.ranks, 3) for column in zip(*parts, strict=True)]
        norm = 0.55 + 2.6 * math.exp(-gone / 3) + abs(chance.gauss(0.0, 0.09))
        values = [step, round(level * chance.gauss(1.0, 0.012), 5), round(norm, 4), learning_rate(step, shape.steps),
                  round(1000 * shape.tokens * shape.ranks / step_ms, 1), round(step_ms, 3), *means]
        for column, value in zip(columns.values(), values, strict=True):
            column.append(value)
        if step == 1 or step % shape.timeline_every == 0:
            timelines.append(timeline_of(step, ranks))
        if step % max(1, shape.steps // 10) == 0:
            evaluation["step"].append(step)
            evaluation["loss"].append(round(level * (1.03 + 0.003 * shape.seed), 5))
    late["late_ms"], late["most_late_ms"] = rounded(late["late_ms"]), rounded(late["most_late_ms"])
    return {"format": 1, "name": shape.name, "started": "2026-03-14T09:26:53Z", "status": "finished",
            "duration_s": round(sum(columns["step_ms"]) / 1000 + 2.4, 1),
            "ranks": shape.ranks, "mesh": [{"axis": "dp", "size": shape.ranks}],
            "steps": columns, "evaluation": evaluation, "bucket_bytes": shape.bucket_bytes, "timelines": timelines,
            "stragglers": late, **surroundings(shape)}


def count_late(late: dict, ranks: list[dict]) -> None:
    ends = [one["end"] for one in ranks]
    last = max(range(len(ends)), key=ends.__getitem__)
    behind = ends[last] - statistics.median(ends)
    late["times_last"][last] += 1
    late["late_ms"][last] += behind
    late["most_late_ms"][last] = max(late["most_late_ms"][last], behind)


def surroundings(shape: Shape) -> dict:
    """All that does not change from step to step."""
    model = sum(shape.bucket_bytes)
    kinds = {"parameters": model, "gradients": model, "optimizer": 2 * model, "activations": 3 * model + 77777,
             "communication": 2 * MIB}
    late = {"step": shape.late_steps[0] + 2, "rank": shape.straggler, "kind": "late rank",
            "text": "Its gradients come 7 ms after the others’; every rank waits for it."}
    return {
        "traffic": {"operation": ["all_reduce", "broadcast", "all_reduce", "all_gather"],
                    "axis": ["dp", "dp", "world", "world"],
                    "calls": [shape.buckets * shape.steps, 1, shape.steps, 11],
                    "bytes": [model * shape.steps, model, 8 * shape.steps, 11 * 4096]},
        "memory": {"kind": list(kinds),
                   "bytes": [[size + 4096 * rank for rank in range(shape.ranks)] for size in kinds.values()],
                   "resident_bytes": [sum(kinds.values()) + 96 * MIB + 65536 * rank for rank in range(shape.ranks)]},
        "events": [late] if shape.ranks > shape.straggler else [],
        "configuration": {
            "model": {"preset": "nano", "layers": 6, "width": 320, "heads": 5, "context": 256, "parameters": 9_432_321},
            "batch": {"tokens_per_rank": shape.tokens, "accumulation": 1},
            "optimizer": {"name": "AdamW", "learning_rate": 6e-4, "weight_decay": 0.1, "clip": 1.0,
                          "warmup_steps": shape.steps // 10},
            "data_parallel": {"bucket_bytes": 6 * MIB, "hook": None, "reproducible": False},
            "mesh": f"dp={shape.ranks}", "seed": shape.seed},
        "machine": {"host": "node-17", "cores": 16, "memory_bytes": 64 << 30, "engine": "shm", "libtorch": "2.13.0",
                    "tutti": "0.1.0"},
        "sample": {"prompt": "/// One rank’s view of ",
                   "text": "the memory that the ranks of a host share.\n"
                           "/// Any thread. A bucket is handed over when its last gradient is there,\n"
                           "/// in the order that all ranks share.\n"
                           "class Bucket {\n public:\n  void add(Gradient gradient);\n  bool full() const;\n};\n"},
    }


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    second = Shape(name="gpt-nano dp=2", ranks=2, backward_ms=18.0, gbps=1.7, straggler=1, late_steps=(40, 44), seed=11)
    for name, shape in (("one", Shape()), ("two", second)):
        (folder / f"{name}.json").write_text(json.dumps(make_run(shape)), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

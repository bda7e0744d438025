#!/usr/bin/env python3
"""Collectives through torch.distributed, timed as bench/measure.h says: Gloo, or Tutti as Python code sees it.

usage: gloo_peer.py -n RANKS --backend gloo|tutti --op all_reduce --sizes 8,4Ki,1Mi [--dtype float32] [--memory private|symmetric]

It starts its ranks itself, as processes that meet in a file. The figures hold what Python and PyTorch add to each call.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import timedelta

BATCH_SECONDS = 200e-6
MOST_SAMPLES = 20000
OPERATIONS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter", "all_to_all", "barrier")


def parse_size(text):
    units = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
    unit = units.get(text[-2:])
    return int(text[:-2]) * unit if unit else int(text)


def parse_arguments():
    parser = argparse.ArgumentParser(description="collectives through torch.distributed")
    parser.add_argument("-n", type=int, default=2, dest="ranks")
    parser.add_argument("--backend", choices=("gloo", "tutti"), default="gloo")
    parser.add_argument("--op", choices=OPERATIONS, default="all_reduce")
    parser.add_argument("--sizes", type=lambda text: [parse_size(size) for size in text.split(",")], default="8,4Ki,1Mi")
    parser.add_argument("--dtype", choices=("float32", "float64", "int32", "bfloat16"), default="float32")
    parser.add_argument("--memory", choices=("private", "symmetric"), default="private")
    parser.add_argument("--seconds-per-size", type=float, default=1)
    parser.add_argument("--min-iterations", type=int, default=20)
    parser.add_argument("--touch", choices=("yes", "no"), default="no")
    parser.add_argument("--pin", choices=("yes", "no"), default="no", help="one core per rank, where there are enough")
    parser.add_argument("--meet", help="for the ranks that this program starts")
    return parser.parse_args()


class Collective:
    """Buffers of one operation and size, and what must be in them."""

    def __init__(self, options, size):
        self.op, self.ranks, self.rank = options.op, options.ranks, int(os.environ["RANK"])
        dtype = getattr(torch, options.dtype)
        self.parted = self.op in ("all_gather", "reduce_scatter", "all_to_all")
        unit = dtype.itemsize * (self.ranks if self.parted else 1)
        self.part = max(size // unit, 1)
        empty = symmetric_empty if options.memory == "symmetric" else torch.empty
        inputs = self.part * (self.ranks if self.op in ("reduce_scatter", "all_to_all") else 1)
        outputs = self.part * (self.ranks if self.op in ("all_gather", "all_to_all") else 1)
        self.input = empty(inputs, dtype=dtype)
        self.output = empty(outputs, dtype=dtype) if self.parted else self.input
        self.bytes = 0 if self.op == "barrier" else max(inputs, outputs) * dtype.itemsize

    def operation(self):
        """The call to time, with everything looked up already."""
        into, out_of = self.output, self.input
        return {
            "all_reduce": lambda: dist.all_reduce(into),
            "broadcast": lambda: dist.broadcast(into, 0),
            "all_gather": lambda: dist.all_gather_into_tensor(into, out_of),
            "reduce_scatter": lambda: dist.reduce_scatter_tensor(into, out_of),
            "all_to_all": lambda: dist.all_to_all_single(into, out_of),
            "barrier": dist.barrier,
        }[self.op]

    def value(self, rank, begin, end):
        return torch.arange(begin, end) % 7 + rank % 3

    def expected(self):
        mine = (self.rank * self.part, (self.rank + 1) * self.part)
        everyone = range(self.ranks)
        if self.op == "all_reduce":
            return sum(self.value(r, 0, self.part) for r in everyone)
        if self.op == "broadcast":
            return self.value(0, 0, self.part)
        if self.op == "all_gather":
            return torch.cat([self.value(r, 0, self.part) for r in everyone])
        if self.op == "reduce_scatter":
            return sum(self.value(r, *mine) for r in everyone)
        return torch.cat([self.value(r, *mine) for r in everyone])

    def verify(self):
        if self.op == "barrier":
            return
        self.input.copy_(self.value(self.rank, 0, self.input.numel()))
        self.operation()()
        if not torch.equal(self.output, self.expected().to(self.output.dtype)):
            sys.exit(f"bench: wrong result on rank {self.rank}: {self.op} of {self.bytes} bytes")

    def touch(self):
        self.input.zero_()
        self.output.zero_()


def symmetric_empty(count, dtype):
    import tutti

    return tutti.symmetric_empty(count, dtype=dtype)


def time_batch(iterations, run, touch):
    """Seconds of some calls on this rank, begun together. With touch, each by itself and its buffers written before."""
    clock = time.perf_counter
    spent = 0.0
    if touch:
        for _ in range(iterations):
            touch()
            dist.barrier()
            start = clock()
            run()
            spent += clock() - start
        return spent
    dist.barrier()
    start = clock()
    for _ in range(iterations):
        run()
    return clock() - start


def agree(value):
    shared = torch.tensor([value], dtype=torch.float64)
    dist.broadcast(shared, 0)
    return shared.item()


def warm_up(seconds, run, touch):
    spent, fastest, iterations = 0.0, float("inf"), 1
    while spent < seconds * 0.2:
        batch = agree(time_batch(iterations, run, touch))
        fastest = min(fastest, batch / iterations)
        spent += batch
        iterations *= 2
    return fastest


def measure(options, collective):
    run = collective.operation()
    touch = collective.touch if options.touch == "yes" else None
    estimate = warm_up(options.seconds_per_size, run, touch)
    batch = max(1, int(BATCH_SECONDS / estimate))
    samples = min(max(int(options.seconds_per_size / (estimate * batch)), options.min_iterations), MOST_SAMPLES)
    times = torch.tensor([time_batch(batch, run, touch) / batch for _ in range(samples)], dtype=torch.float64)
    dist.all_reduce(times, dist.ReduceOp.MAX)
    cuts = statistics.quantiles(times.tolist(), n=10, method="inclusive") if samples > 1 else [times.item()] * 9
    return {"median_us": statistics.median(times.tolist()) * 1e6, "p10_us": cuts[0] * 1e6, "p90_us": cuts[8] * 1e6,
            "samples": samples}


def run_rank(options):
    if options.backend == "tutti":
        import tutti

        version = tutti.__version__
    else:
        version = torch.__version__
    torch.set_num_threads(1)
    dist.init_process_group(options.backend, init_method=f"file://{options.meet}", rank=int(os.environ["RANK"]),
                            world_size=options.ranks, timeout=timedelta(seconds=120))
    for size in [0] if options.op == "barrier" else options.sizes:
        collective = Collective(options, size)
        collective.verify()
        collective.touch()
        summary = measure(options, collective)
        collective.verify()
        if dist.get_rank() == 0:
            library = "Gloo" if options.backend == "gloo" else "Tutti (Python)"
            line = {"op": options.op, "ranks": options.ranks, "bytes": collective.bytes, "dtype": options.dtype,
                    "memory": options.memory, "library": library, "version": version, **summary}
            print(json.dumps(line), flush=True)
    dist.destroy_process_group()


def start_ranks(options):
    """Every rank again this program; the first that fails ends the others."""
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, *sys.argv, "--meet", os.path.join(folder, "store")]
        children = []
        for rank in range(options.ranks):
            child = subprocess.Popen(command, env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(options.ranks)})
            if options.pin == "yes" and options.ranks <= len(cores):
                os.sched_setaffinity(child.pid, {cores[rank]})
            children.append(child)
        while any(child.poll() is None for child in children):
            if any(child.poll() for child in children):
                for child in children:
                    child.kill()
            time.sleep(0.02)
        return max(abs(child.returncode) for child in children)


if __name__ == "__main__":
    OPTIONS = parse_arguments()
    if OPTIONS.meet is None:
        sys.exit(start_ranks(OPTIONS))
    import torch
    import torch.distributed as dist

    run_rank(OPTIONS)

#!/usr/bin/env python3
"""Whole training steps through PyTorch's DistributedDataParallel, on Gloo or on Tutti's backend, beside steps without it.

usage: ddp_steps.py -n RANKS MODEL ROUNDS gloo|tutti

Models and batches have the shapes of bench/step_models.cpp, and each rank has one thread. It starts its ranks itself. Both take
turns; times are of the slowest rank. One line of JSON for each, as `build/bench/steps --json` writes them.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
MODELS = ("gpt", "cnn", "mlp")


def parse_arguments():
    parser = argparse.ArgumentParser(description="training steps through DistributedDataParallel")
    parser.add_argument("-n", type=int, default=2, dest="ranks")
    parser.add_argument("model", choices=MODELS)
    parser.add_argument("rounds", type=int)
    parser.add_argument("backend", choices=("gloo", "tutti"))
    parser.add_argument("--meet", help="for the ranks that this program starts")
    return parser.parse_args()


def start_ranks(options):
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, *sys.argv[1:], "--meet", os.path.join(folder, "store")]
        ranks = [subprocess.Popen(command, env={**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank),
                                                "WORLD_SIZE": str(options.ranks), "LOCAL_WORLD_SIZE": str(options.ranks)})
                 for rank in range(options.ranks)]
        return max(abs(rank.wait()) for rank in ranks)


class Contestant:
    def __init__(self, name, group, options):
        from ddp_models import MODELS as makers

        torch.manual_seed(1)
        model, self.loss = makers[options.model]()
        self.name, self.times, self.cpu = name, [], []
        # The quicker one of its settings: gradients are views of its buckets.
        self.model = nn.parallel.DistributedDataParallel(model, process_group=group, gradient_as_bucket_view=True) if group else model
        self.optimizer = torch.optim.SGD(self.model.parameters(), 1e-4)

    def step(self):
        start, cpu = time.perf_counter(), time.process_time()
        self.optimizer.zero_grad()
        self.loss(self.model).backward()
        self.optimizer.step()
        return (time.perf_counter() - start) * 1e6, (time.process_time() - cpu) * 1e6


def run(options):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{options.meet}", rank=int(os.environ["RANK"]), world_size=options.ranks)
    contestants = [Contestant("none in Python", None, options)]
    if options.backend == "gloo":
        contestants.append(Contestant("DDP on Gloo", dist.group.WORLD, options))
    else:
        import tutti  # noqa: F401  (brings the backend)

        contestants.append(Contestant("DDP on Tutti", dist.new_group(backend="tutti"), options))
    for number in range(-3, options.rounds):
        for one in contestants:
            dist.barrier()
            wall, cpu = one.step()
            slowest = torch.tensor([wall], dtype=torch.float64)
            average = torch.tensor([cpu / options.ranks], dtype=torch.float64)
            dist.all_reduce(slowest, dist.ReduceOp.MAX)
            dist.all_reduce(average)
            if number >= 0:
                one.times.append(round(slowest.item(), 1))
                one.cpu.append(round(average.item(), 1))
    if dist.get_rank() == 0:
        for one in contestants:
            print(json.dumps({"model": options.model, "contestant": one.name, "us": one.times, "cpu_us": one.cpu}), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    arguments = parse_arguments()
    if not arguments.meet:
        sys.exit(start_ranks(arguments))
    import torch
    import torch.distributed as dist
    from torch import nn

    run(arguments)

"""What goes wrong, and what is going on besides, on each rank of a test: troubles.py NAME,NAME... [init method]."""

import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import tutti
from ranks import error_of, main


def missing():
    """A monitored barrier says who did not come."""
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.new_group()
    group.monitored_barrier(timedelta(seconds=30))
    if rank != size - 1:
        text = error_of(lambda: group.monitored_barrier(timedelta(milliseconds=300), wait_all_ranks=True))
        assert f"rank {size - 1}" in text, text
    dist.barrier()


def call_sites():
    """When ranks call different things, each is told both places of the program, not of torch or of Python."""
    rank = dist.get_rank()
    tensor = torch.ones(3 + rank)
    model = DistributedDataParallel(torch.nn.Linear(3 + rank, 1), init_sync=False)

    def coalesced():
        with _coalescing_manager():
            dist.all_reduce(tensor)
            dist.all_reduce(tensor)

    for async_op in (False, True):
        reduce = lambda: waited(dist.all_reduce(tensor, async_op=async_op))
        broadcast = lambda: waited(dist.broadcast(tensor, 0, async_op=async_op))
        text = error_of(broadcast if rank else reduce)
        for call in (reduce, broadcast):
            assert place_of(call) in text, f"{place_of(call)} is not in: {text}"
        assert "site-packages" not in text, text
    text = error_of(lambda: model(tensor).sum().backward())
    assert text.count(os.path.basename(__file__)) == 2 and "all_reduce" in text, text
    text = error_of(coalesced)
    assert text.count(os.path.basename(__file__)) == 2 and "contextlib" not in text, text
    dist.barrier()


def waited(work):
    if work is not None:
        work.wait()


def place_of(call):
    """A lambda's line, as an error names it."""
    return f"{os.path.basename(__file__)}:{call.__code__.co_firstlineno}"


def leaves():
    """A rank that ends in the midst of it: the others are told who, now and later."""
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.barrier()
    if rank == size - 1:
        os._exit(0)  # no goodbye
    for async_op in (True, False):
        text = error_of(lambda: waited(dist.all_reduce(torch.ones(9), async_op=async_op)))
        assert f"rank {size - 1}" in text, text
    sys.exit(0)  # without destroy_process_group


def abandons():
    """The program ends with operations under way that nobody waits for, and groups that nobody destroys."""
    for group in (dist.new_group(), None):
        for _ in range(200):
            dist.all_reduce(torch.ones(50), group=group, async_op=True)
    members = list(range(dist.get_world_size()))
    globals()["split"] = split = dist.group.WORLD.split_group(members, group_name="unknown to torch")
    for _ in range(200):
        split.allreduce([torch.ones(50)])
    sys.exit(0)


def wrapped():
    """TORCH_DISTRIBUTED_DEBUG=DETAIL puts a backend of c10d's around ours."""
    assert dist.get_debug_level() == dist.DebugLevel.DETAIL
    tensor = tutti.symmetric_empty(3, 5)
    assert tutti.is_symmetric(tensor)
    dist.all_reduce(tensor.fill_(1.0))
    assert torch.equal(tensor, torch.full((3, 5), float(dist.get_world_size())))
    gloo = dist.new_group(backend="gloo")
    assert "gloo" in error_of(lambda: tutti.symmetric_empty(3, group=gloo))


def callbacks():
    """Python callbacks on results, also of work that nobody waits for when the group ends."""
    size = dist.get_world_size()
    tensor = torch.ones(1003)
    doubled = dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: 2 * done.value()[0])
    assert torch.equal(doubled.wait(), torch.full((1003,), 2.0 * size))
    failed = dist.all_reduce(torch.ones(3 + dist.get_rank()), async_op=True).get_future()
    assert "different" in error_of(failed.wait, RuntimeError)
    for _ in range(20):
        group = dist.new_group()
        ends = []
        for _ in range(5):
            dist.all_reduce(torch.ones(5003), group=group, async_op=True).get_future().add_done_callback(ends.append)
        dist.destroy_process_group(group)


def loader():
    """Processes that a DataLoader forks, while the group is in use and at their end."""
    rank, size = dist.get_rank(), dist.get_world_size()
    data = TensorDataset(torch.arange(24.0))
    for workers in (2, 1):
        total = torch.zeros(1)
        pending = dist.all_reduce(torch.ones(100_000), async_op=True)
        for (batch,) in DataLoader(data, batch_size=5, num_workers=workers, multiprocessing_context="fork"):
            value = batch.sum().reshape(1)
            dist.all_reduce(value)
            total += value
        pending.wait()
        assert total.item() == size * sum(range(24))
    model = DistributedDataParallel(torch.nn.Linear(1, 1))
    feed = iter(DataLoader(data, batch_size=5, num_workers=1, persistent_workers=True))
    for _ in range(3):
        model(next(feed)[0].reshape(-1, 1)).sum().backward()
    dist.barrier()


if __name__ == "__main__":
    main(globals())

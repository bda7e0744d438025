"""What each rank of a test does: ranks.py NAME,NAME... [init method]. Ends with 0 only when it was right."""

import os
import sys
import warnings
from datetime import timedelta

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import tutti


def collectives():
    """Each of c10d's everyday operations gives what it must."""
    rank, size = dist.get_rank(), dist.get_world_size()
    value = torch.full((1003,), float(rank))
    dist.all_reduce(value)
    assert torch.equal(value, torch.full((1003,), float(sum(range(size)))))
    work = dist.all_reduce(value, op=dist.ReduceOp.AVG, async_op=True)
    work.wait()
    assert torch.equal(work.get_future().value()[0], value)
    gathered = [torch.empty(5) for _ in range(size)]
    dist.all_gather(gathered, torch.full((5,), float(rank)))
    assert [int(t[0]) for t in gathered] == list(range(size))
    flat = torch.empty(size * 5)
    dist.all_gather_into_tensor(flat, torch.full((5,), float(rank)))
    assert torch.equal(flat, torch.cat(gathered))
    out = torch.empty(3)
    dist.reduce_scatter_tensor(out, torch.arange(3.0 * size))
    assert torch.equal(out, size * torch.arange(3.0 * rank, 3.0 * rank + 3))
    everywhere = torch.tensor([rank])
    dist.broadcast(everywhere, src=size - 1)
    assert everywhere.item() == size - 1
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": r} for r in range(size)]
    swapped = torch.empty(size)
    dist.all_to_all_single(swapped, torch.full((size,), float(rank)))
    assert torch.equal(swapped, torch.arange(float(size)))
    if size > 1:
        received = torch.empty(7)
        operations = [
            dist.P2POp(dist.isend, torch.full((7,), float(rank)), (rank + 1) % size),
            dist.P2POp(dist.irecv, received, (rank - 1) % size),
        ]
        for request in dist.batch_isend_irecv(operations):
            request.wait()
        assert received[0] == (rank - 1) % size
    half = dist.new_group(list(range(0, size, 2)))
    if rank % 2 == 0:
        one = torch.ones(1)
        dist.all_reduce(one, group=half)
        assert one.item() == (size + 1) // 2
    dist.barrier()


def error_of(call, kind=dist.DistBackendError):
    """What a call says that must fail."""
    try:
        call()
    except kind as error:
        return str(error)
    raise AssertionError("no error")


def close(ours, reference):
    torch.testing.assert_close(ours, reference, rtol=1e-10, atol=1e-12)


def make_model():
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(11, 33), torch.nn.ReLU(), torch.nn.Linear(33, 5)).double()


def train(model, inputs, targets, steps=20):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        optimizer.zero_grad()
        F.cross_entropy(model(inputs), targets).backward()
        optimizer.step()


def ddp():
    """PyTorch's own DDP on our backend ends with the weights of one process that saw the whole batch."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    inputs, targets = torch.randn(12 * size, 11, dtype=torch.float64), torch.randint(5, (12 * size,))
    model = DistributedDataParallel(make_model(), bucket_cap_mb=0.001)  # several buckets
    mine = slice(12 * rank, 12 * rank + 12)
    train(model, inputs[mine], targets[mine])
    alone = make_model()
    train(alone, inputs, targets)
    for ours, reference in zip(model.module.parameters(), alone.parameters()):
        torch.testing.assert_close(ours, reference, rtol=1e-12, atol=1e-14)


def mismatch():
    """A wrong shape is an error on every rank, of the type that PyTorch's users catch."""
    text = error_of(lambda: dist.all_reduce(torch.ones(3 + dist.get_rank())))
    assert "rank 0 calls all_reduce" in text, text
    dist.barrier()


def again():
    """Destroy and init again, over a store that outlives the group; and a fork in between."""
    for _ in range(3):
        dist.barrier()
        dist.destroy_process_group()
        join()
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
        except dist.DistBackendError as error:
            os._exit(0 if "forked" in str(error) else 1)
        os._exit(2)
    assert os.waitpid(child, 0)[1] == 0
    child = os.fork()
    if child == 0:
        sys.exit(0)  # with all destructors
    assert os.waitpid(child, 0)[1] == 0
    collectives()


def store():
    """The job's own store, through Python's interface."""
    group_store = dist.distributed_c10d._get_default_store()
    group_store.set(f"key{dist.get_rank()}", "value")
    group_store.wait([f"key{r}" for r in range(dist.get_world_size())], timedelta(seconds=30))
    assert group_store.add("count", 2) >= 2


def several_hosts():
    """The group's ranks are really not all here, and MPI joins them."""
    names = [None] * dist.get_world_size()
    dist.all_gather_object(names, os.uname().nodename)
    assert len(set(names)) == 2, names


def join():
    method = sys.argv[2] if len(sys.argv) > 2 else None
    dist.init_process_group(os.environ.get("TEST_BACKEND", "tutti"), init_method=method, timeout=timedelta(seconds=60))


def main(checks):
    """Runs those that the command line names, in one group."""
    warnings.simplefilter("ignore", FutureWarning)  # older names are wanted, too
    join()
    assert dist.group.WORLD._get_backend(torch.device("cpu")).name() == "tutti" and tutti.__version__
    for name in sys.argv[1].split(","):
        print("check", name, flush=True)
        checks[name]()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(globals())

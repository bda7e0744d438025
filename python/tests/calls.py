"""torch.distributed's own functions, as each rank of a test calls them: calls.py NAME,NAME... [init method]."""

import functools
import threading

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import _coalescing_manager

import tutti
from ranks import error_of, main

CPU = torch.device("cpu")


def reduces():
    """Each reduction, whether waited for at the call or later."""
    rank, size = dist.get_rank(), dist.get_world_size()
    values = [float(r + 2) for r in range(size)]
    expected = {
        dist.ReduceOp.SUM: sum(values),
        dist.ReduceOp.AVG: sum(values) / size,
        dist.ReduceOp.PRODUCT: torch.tensor(values).prod().item(),
        dist.ReduceOp.MIN: min(values),
        dist.ReduceOp.MAX: max(values),
        dist._make_nccl_premul_sum(0.5): 0.5 * sum(values),
    }
    for op, result in expected.items():
        for async_op in (False, True):
            tensor = torch.full((1003,), values[rank])
            work = dist.all_reduce(tensor, op=op, async_op=async_op)
            assert (work is not None) == async_op
            if work is not None:
                work.wait()
                assert work.is_completed() and work.is_success()
            torch.testing.assert_close(tensor, torch.full((1003,), result))
    op = dist.ReduceOp
    for bitwise, combine in ((op.BAND, int.__and__), (op.BOR, int.__or__), (op.BXOR, int.__xor__)):
        bits = torch.tensor([rank + 5])
        dist.all_reduce(bits, op=bitwise)
        assert bits.item() == functools.reduce(combine, [r + 5 for r in range(size)])
    assert "avg" in error_of(lambda: dist.all_reduce(torch.ones(3, dtype=torch.int32), op=dist.ReduceOp.AVG))


def lists():
    """Uneven splits, lists, objects, and what only a root has."""
    rank, size = dist.get_rank(), dist.get_world_size()
    to_each = [r + 1 for r in range(size)]
    out = torch.empty(size * (rank + 1), 3)
    dist.all_to_all_single(out, torch.full((sum(to_each), 3), float(rank)), [rank + 1] * size, to_each)
    assert torch.equal(out[:, 0], torch.arange(float(size)).repeat_interleave(rank + 1))
    uneven = [torch.empty(r + 1) for r in range(size)]
    dist.all_gather(uneven, torch.full((rank + 1,), float(rank)))
    assert all(torch.equal(u, torch.full((r + 1,), float(r))) for r, u in enumerate(uneven))
    swapped = [torch.empty(r + 2) for r in range(size)]
    dist.all_to_all(swapped, [torch.full((rank + 2,), float(rank)) for _ in range(size)])
    assert all(torch.equal(s, torch.full((r + 2,), float(r))) for r, s in enumerate(swapped))
    at_root = [torch.empty(3) for _ in range(size)] if rank == 1 else None
    dist.gather(torch.full((3,), float(rank)), at_root, dst=1)
    assert rank != 1 or [int(t[0]) for t in at_root] == list(range(size))
    mine = torch.empty(3)
    dist.scatter(mine, [torch.full((3,), float(r)) for r in range(size)] if rank == 1 else None, src=1)
    assert torch.equal(mine, torch.full((3,), float(rank)))

    objects = [{"from": rank, "text": "x" * 999 * (rank + 1)}, rank] if rank == 1 else [None, None]
    dist.broadcast_object_list(objects, src=1)
    assert objects == [{"from": 1, "text": "x" * 1998}, 1]
    everyone = [None] * size
    dist.all_gather_object(everyone, "y" * rank)
    assert everyone == ["y" * r for r in range(size)]
    gathered = [None] * size if rank == 0 else None
    dist.gather_object((rank,), gathered)
    assert rank != 0 or gathered == [(r,) for r in range(size)]
    given = [None]
    dist.scatter_object_list(given, [f"for {r}" for r in range(size)] if rank == 0 else None)
    assert given == [f"for {rank}"]


def messages():
    """Messages one by one, from anybody, with tags, objects, and many as one."""
    rank, size = dist.get_rank(), dist.get_world_size()
    after, before = (rank + 1) % size, (rank - 1) % size
    received = [torch.empty(7), torch.empty(2, 3)]
    operations = [
        dist.P2POp(dist.isend, torch.full((7,), float(rank)), after),
        dist.P2POp(dist.irecv, received[0], before),
        dist.P2POp(dist.isend, torch.full((2, 3), rank + 0.5), before),
        dist.P2POp(dist.irecv, received[1], after),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()
    assert received[0][0] == before and received[1][0, 0] == after + 0.5
    requests = [dist.isend(torch.tensor([10 * tag + rank]), after, tag=tag) for tag in (3, 4)]
    for tag in (4, 3):  # not the order in which they were sent
        number = torch.empty(1, dtype=torch.int64)
        assert dist.recv(number, before, tag=tag) == before
        assert number.item() == 10 * tag + before
    for request in requests:
        request.wait()
    dist.barrier()
    if rank == 0:
        senders = set()
        for _ in range(size - 1):
            number = torch.empty(1)
            sender = dist.recv(number)
            assert number.item() == sender
            senders.add(sender)
        assert senders == set(range(1, size))
    else:
        dist.send(torch.full((1,), float(rank)), 0)
    if rank == 0:
        dist.send_object_list(["hello", {"n": 3}], 1)
    if rank == 1:
        objects = [None, None]
        dist.recv_object_list(objects, 0)
        assert objects == ["hello", {"n": 3}]


def coalesced():
    """Several calls as one, waited for at the end or later, in the new style and in the old one with a device."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for device in (None, CPU):
        for async_ops in (False, True):
            tensors = [torch.full((n,), float(rank)) for n in (3, 1, 5)]
            with _coalescing_manager(device=device, async_ops=async_ops) as manager:
                for tensor in tensors:
                    dist.all_reduce(tensor)
            if async_ops:
                manager.wait()
            assert all(torch.equal(t, torch.full_like(t, sum(range(size)))) for t in tensors)

            wholes = [torch.empty(n * size) for n in (3, 1)]
            with _coalescing_manager(device=device, async_ops=async_ops) as manager:
                for whole in wholes:
                    dist.all_gather_into_tensor(whole, torch.full((whole.numel() // size,), float(rank)))
            if async_ops:
                manager.wait()
            for whole in wholes:
                assert torch.equal(whole, torch.arange(float(size)).repeat_interleave(whole.numel() // size))

            parts = [torch.empty(n) for n in (3, 1)]
            with _coalescing_manager(device=device, async_ops=async_ops) as manager:
                for part in parts:
                    dist.reduce_scatter_tensor(part, torch.ones(part.numel() * size))
            if async_ops:
                manager.wait()
            assert all(torch.equal(p, torch.full_like(p, size)) for p in parts)
    tensors = [torch.full((3,), float(rank)), torch.full((3,), float(rank))]
    with _coalescing_manager(device=CPU) as manager:
        dist.broadcast(tensors[0], src=0)
        dist.broadcast(tensors[1], src=1)
    assert tensors[0][0] == 0 and tensors[1][0] == 1


def groups():
    """Groups of some ranks, also made by these alone, and split off by the backend."""
    rank, size = dist.get_rank(), dist.get_world_size()
    one = torch.ones(1)
    pair = dist.new_group([0, size - 1])
    if rank in (0, size - 1):
        dist.all_reduce(one, group=pair)
        assert one.item() == 2 and pair._get_backend(CPU).name() == "tutti"
        local = dist.new_group([0, size - 1], use_local_synchronization=True)
        dist.all_reduce(one, group=local)
        assert one.item() == 4
        dist.destroy_process_group(local)
    mine, every = dist.new_subgroups_by_enumeration([[r] for r in range(size)])
    dist.all_reduce(one, group=mine)
    assert len(every) == size
    world = dist.group.WORLD
    assert world._get_backend(CPU).supports_splitting
    members = [0, 1] if rank < 2 else [2]  # c10d sorts them
    split = world.split_group(members, group_name=f"split-{members}")
    assert (split.rank(), split.size()) == (members.index(rank), len(members))
    sum_of = torch.full((5,), float(rank))
    split.allreduce([sum_of]).wait()
    assert sum_of[0] == sum(members)
    both = threading.Barrier(2)
    twins = [dist.new_group() for _ in range(2)]

    def work(group):
        both.wait()
        for _ in range(20):
            value = torch.ones(77)
            dist.all_reduce(value, group=group)
            assert torch.equal(value, torch.full((77,), float(size)))

    threads = [threading.Thread(target=work, args=(twin,)) for twin in twins]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]


def symmetric():
    """Tensors in symmetric memory, from our own function and from c10d's."""
    rank, size = dist.get_rank(), dist.get_world_size()
    pair = dist.new_group(list(range(size)))
    for group in (None, pair):
        tensor = tutti.symmetric_empty(3, 5, dtype=torch.float64, group=group)
        assert tensor.shape == (3, 5) and tensor.dtype == torch.float64 and tensor.is_contiguous()
        assert tutti.is_symmetric(tensor, group) and tutti.is_symmetric(tensor[1:, ::2], group)
        tensor.copy_(torch.arange(15.0).reshape(3, 5) + rank)
        dist.all_reduce(tensor, group=group)
        assert torch.equal(tensor, size * torch.arange(15.0, dtype=torch.float64).reshape(3, 5) + sum(range(size)))
    assert not tutti.is_symmetric(torch.ones(3))
    assert tutti.symmetric_empty((2, 3)).shape == (2, 3) and tutti.symmetric_empty(0).numel() == 0
    assert tutti.symmetric_empty(torch.Size([7]), dtype=torch.bfloat16).dtype == torch.bfloat16
    backend = dist.group.WORLD._get_backend(CPU)
    assert backend.supports_tensor_alloc(CPU)
    for count in (1003, 300000):
        tensor = backend.allocate_tensor(count, dtype=torch.float32, device=CPU)
        assert tutti.is_symmetric(tensor)
        tensor.fill_(rank + 1.0)
        work = dist.all_reduce(tensor, async_op=True)
        work.wait()
        assert torch.equal(tensor, torch.full((count,), size * (size + 1) / 2))
    for size in (-1, 2**60):
        assert error_of(lambda size=size: tutti.symmetric_empty(size), RuntimeError)
    kept = tutti.symmetric_empty(33, group=pair)
    dist.destroy_process_group(pair)
    assert kept.fill_(3.0).sum() == 99  # it may outlive its group


if __name__ == "__main__":
    main(globals())

"""PyTorch's own clients of a backend, as each rank of a test runs them: clients.py NAME,NAME... [init method]."""

import copy

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

from ranks import close, main, make_model, train


def functional():
    """Functional collectives give what the ones in place give, also in their coalesced forms."""
    rank, size = dist.get_rank(), dist.get_world_size()
    group, wait = dist.group.WORLD, funcol.wait_tensor
    mine = torch.arange(6.0).reshape(2, 3) + rank
    total = torch.arange(6.0).reshape(2, 3) * size + sum(range(size))
    assert torch.equal(wait(funcol.all_reduce(mine, "sum", group)), total)
    assert torch.equal(wait(funcol.all_reduce(mine, "avg", group)), total / size)
    assert torch.equal(wait(funcol.broadcast(mine, size - 1, group)), torch.arange(6.0).reshape(2, 3) + size - 1)
    whole = wait(funcol.all_gather_tensor(mine, gather_dim=1, group=group))
    assert torch.equal(whole, torch.cat([mine - rank + r for r in range(size)], dim=1))
    part = wait(funcol.reduce_scatter_tensor(whole, "sum", scatter_dim=1, group=group))
    assert torch.equal(part, size * mine)
    counts = [r + 1 for r in range(size)]  # rank r gets r + 1 rows of each
    rows = torch.full((sum(counts), 2), float(rank))
    swapped = wait(funcol.all_to_all_single(rows, [rank + 1] * size, counts, group))
    assert torch.equal(swapped[:, 0], torch.arange(float(size)).repeat_interleave(rank + 1))

    reduced = funcol.all_reduce_coalesced([mine, 2 * mine], "sum", group)
    assert all(torch.equal(wait(r), n * total) for n, r in enumerate(reduced, 1))
    gathered = funcol.all_gather_into_tensor_coalesced([mine, mine[0]], group)
    gathered = [wait(g) for g in gathered]
    assert gathered[0].shape == (2 * size, 3) and gathered[1].shape == (3 * size,)
    parts = funcol.reduce_scatter_tensor_coalesced(gathered, "sum", [0, 0], group)
    assert torch.equal(wait(parts[0]), size * mine)
    assert torch.equal(wait(parts[1]), size * mine[0])

    weight = torch.ones(2, 3, requires_grad=True)
    funcol.all_gather_tensor_autograd(weight, 0, group).sum().backward()
    assert torch.equal(weight.grad, torch.full((2, 3), float(size)))


def mesh():
    """A mesh of two dimensions, and DTensors that are laid out on it one way and another."""
    rank = dist.get_rank()
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    assert dist.get_backend(grid["tp"].get_group()) == "tutti"
    assert tuple(grid.get_coordinate()) == (rank // 2, rank % 2)
    one = torch.full((1,), float(rank))
    dist.all_reduce(one, group=grid["tp"].get_group())
    assert one.item() == 2 * (rank // 2 * 2) + 1
    flat = grid["dp", "tp"]._flatten("all")
    assert flat.size() == 4

    torch.manual_seed(5)
    left, right = torch.randn(8, 7, dtype=torch.float64), torch.randn(7, 5, dtype=torch.float64)
    for start in ([Shard(0), Shard(1)], [Shard(0), Shard(0)], [Replicate(), Shard(1)], [Replicate(), Replicate()]):
        laid = distribute_tensor(left, grid, start)
        for end in ([Replicate(), Replicate()], [Shard(1), Shard(0)], [Shard(0), Replicate()]):
            moved = laid.redistribute(grid, end)
            assert torch.equal(moved.full_tensor(), left), (start, end)

    partial = DTensor.from_local(left, grid, [Partial(), Replicate()])
    close(partial.redistribute(grid, [Shard(0), Replicate()]).full_tensor(), 2 * left)
    columns, rows = [Shard(0), Shard(1)], [Replicate(), Shard(0)]
    product = distribute_tensor(left, grid, columns) @ distribute_tensor(right, grid, rows)
    assert any(placement.is_partial() for placement in product.placements)
    close(product.full_tensor(), left @ right)


def tensor_parallel():
    """A column- and a row-parallel layer with FSDP2 around them train as one process does."""
    rank = dist.get_rank()
    grid = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    alone = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4)).double()
    for number, parameter in enumerate(alone.parameters()):
        torch.manual_seed(number)
        torch.nn.init.uniform_(parameter)
    ours = parallelize_module(copy.deepcopy(alone), grid["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(ours, mesh=grid["dp"])
    torch.manual_seed(11)
    inputs, targets = torch.randn(10, 6, dtype=torch.float64), torch.randint(4, (10,))
    half = slice(5 * (rank // 2), 5 * (rank // 2) + 5)
    train(ours, inputs[half], targets[half], steps=3)
    train(alone, inputs, targets, steps=3)
    for mine, reference in zip(ours.parameters(), alone.parameters()):
        close(mine.full_tensor(), reference.detach())


def hybrid():
    """FSDP2 on a mesh of two dimensions: shards within one, replicas over the other."""
    rank = dist.get_rank()
    ours, alone = make_model(), make_model()
    fully_shard(ours, mesh=init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard")))
    torch.manual_seed(4)
    inputs, targets = torch.randn(12, 11, dtype=torch.float64), torch.randint(5, (12,))
    mine = slice(3 * rank, 3 * rank + 3)
    train(ours, inputs[mine], targets[mine], steps=3)
    train(alone, inputs, targets, steps=3)
    for parameter, reference in zip(ours.parameters(), alone.parameters()):
        close(parameter.full_tensor(), reference.detach())


def make_blocks(count):
    torch.manual_seed(9)
    return [torch.nn.Sequential(torch.nn.Linear(5, 5), torch.nn.Tanh()).double() for _ in range(count)]


def pipeline():
    """Stages on two ranks, one and two on each: losses and gradients of the whole model in one place."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(2)
    inputs, targets = torch.randn(12, 5, dtype=torch.float64), torch.randn(12, 5, dtype=torch.float64)

    def loss_of(output, target):
        return F.mse_loss(output, target)

    for schedule, per_rank in ((ScheduleGPipe, 1), (Schedule1F1B, 1), (ScheduleInterleaved1F1B, 2)):
        blocks, alone = make_blocks(per_rank * size), torch.nn.Sequential(*make_blocks(per_rank * size))
        loss = loss_of(alone(inputs), targets)
        loss.backward()
        mine = range(rank, per_rank * size, size)
        stages = [PipelineStage(blocks[i], i, per_rank * size, torch.device("cpu")) for i in mine]
        run = schedule(stages if per_rank > 1 else stages[0], n_microbatches=4, loss_fn=loss_of)
        seen = []
        if rank == size - 1:
            run.step(*([inputs] if rank == 0 else []), target=targets, losses=seen)
            close(torch.stack(seen).mean().detach(), loss.detach())
        else:
            run.step(inputs)
        for i in mine:
            close(blocks[i][0].weight.grad, alone[i][0].weight.grad)


class Words(torch.nn.Module):
    """Sparse gradients, and a layer that not every input uses."""

    def __init__(self, sparse):
        super().__init__()
        torch.manual_seed(6)
        self.words = torch.nn.Embedding(17, 3, sparse=sparse, dtype=torch.float64)
        self.out = torch.nn.Linear(3, 1).double()
        self.extra = torch.nn.Linear(3, 1).double()

    def forward(self, indices, extra=False):
        found = self.words(indices)
        return (self.extra if extra else self.out)(found).sum()


def ddp_gradients(ours, indices, extra=False):
    """Backward of one rank's part under DDP against that of all parts in one model."""
    alone = Words(ours.module.words.sparse)
    ours.zero_grad()
    ours(indices[dist.get_rank()], *([True] if extra else [])).backward()
    for part in indices:
        (alone(part, extra) / len(indices)).backward()
    for mine, reference in zip(ours.module.parameters(), alone.parameters()):
        if reference.grad is not None:
            close(mine.grad.to_dense(), reference.grad.to_dense())


def ddp_kinds():
    """DDP with sparse gradients, with parameters that are not used, with a static graph, with a communication hook."""
    size = dist.get_world_size()
    torch.manual_seed(8)
    indices = torch.randint(17, (size, 5))
    for sparse in (True, False):
        ours = DistributedDataParallel(Words(sparse), find_unused_parameters=True)
        ddp_gradients(ours, indices)
        ddp_gradients(ours, indices, extra=True)
        ours = DistributedDataParallel(Words(sparse), static_graph=True)
        ddp_gradients(ours, indices)
        ddp_gradients(ours, indices)
    ours = DistributedDataParallel(Words(False), find_unused_parameters=True, gradient_as_bucket_view=True)
    ours.register_comm_hook(None, allreduce_hook)
    ddp_gradients(ours, indices)
    with DistributedDataParallel(torch.nn.Linear(3, 1)).join():  # uneven inputs
        pass


if __name__ == "__main__":
    main(globals())

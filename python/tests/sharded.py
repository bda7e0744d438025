"""FSDP2 and DCP, as each rank of a test runs them: sharded.py NAME,NAME... [init method]."""

import os
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.fsdp._fully_shard._fsdp_collectives import ProcessGroupAllocMixin

import tutti
from ranks import close, main, make_model


def losses(model, inputs, targets, steps=3):
    """The losses of a few steps."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    seen = []
    for _ in range(steps):
        loss = F.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        seen.append(loss.detach())
    return torch.stack(seen)


def shard(from_group):
    """A model under FSDP2, layer by layer; its buffers from our memory when asked for."""
    model = make_model()
    for layer in (model[0], model[2], model):
        fully_shard(layer)
        if from_group and layer is not model:  # the outer one has no parameters of its own
            layer.set_allocate_memory_from_process_group_for_comm(True)
    return model


def fsdp2():
    """FSDP2 has the losses and weights of one process that saw the whole batch, with ordinary buffers and with ours."""
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(3)
    inputs, targets = torch.randn(6 * size, 11, dtype=torch.float64), torch.randint(5, (6 * size,))
    mine = slice(6 * rank, 6 * rank + 6)
    buffers, allocate = [], ProcessGroupAllocMixin.allocate

    def counted(*arguments, **options):
        buffer = allocate(*arguments, **options)
        buffers.append(tutti.is_symmetric(buffer))
        return buffer

    alone = make_model()
    expected = losses(alone, inputs, targets)
    for from_group in (False, True):
        model = shard(from_group)
        with mock.patch.object(ProcessGroupAllocMixin, "allocate", counted):
            seen = losses(model, inputs[mine], targets[mine])
        assert (len(buffers) > 0) == from_group and all(buffers)
        dist.all_reduce(seen, op=dist.ReduceOp.AVG)
        close(seen, expected)
        for parameter, reference in zip(model.parameters(), alone.parameters()):
            close(parameter.full_tensor(), reference.detach())


def fsdp2_low_precision():
    """bfloat16 on the wire, and gradients that are gathered over several steps."""
    model = shard(from_group=True).float()
    for layer in (model[0], model[2]):
        layer.set_requires_gradient_sync(False)
    low = fully_shard(torch.nn.Linear(11, 7), mp_policy=MixedPrecisionPolicy(torch.bfloat16, torch.bfloat16))
    low(torch.ones(2, 11)).sum().backward()
    close(low.bias.grad.full_tensor(), torch.full((7,), 2.0))
    model(torch.ones(2, 11)).sum().backward()
    for layer in (model[0], model[2]):
        layer.set_requires_gradient_sync(True)
    model(torch.ones(2, 11)).sum().backward()
    close(model[2].bias.grad.full_tensor(), torch.full((5,), 4.0))


def checkpoint():
    """DCP writes a sharded model with its optimizer, and reads it into another, at once and in the background."""
    folder = os.environ["TEST_FOLDER"]
    saved = shard(from_group=False)
    optimizer = torch.optim.AdamW(saved.parameters(), lr=0.1)
    saved(torch.ones(3, 11, dtype=torch.float64)).sum().backward()
    optimizer.step()
    model_state, optimizer_state = get_state_dict(saved, optimizer)
    dcp.save({"model": model_state, "optimizer": optimizer_state}, checkpoint_id=f"{folder}/now")
    later = dcp.async_save({"model": model_state}, checkpoint_id=f"{folder}/later",
                           process_group=dist.new_group())
    later.result()

    loaded = shard(from_group=False)
    fresh = torch.optim.AdamW(loaded.parameters(), lr=0.3)
    model_state, optimizer_state = get_state_dict(loaded, fresh)
    state = {"model": model_state, "optimizer": optimizer_state}
    dcp.load(state, checkpoint_id=f"{folder}/now")
    set_state_dict(loaded, fresh, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for ours, theirs in zip(loaded.parameters(), saved.parameters()):
        assert torch.equal(ours.full_tensor(), theirs.full_tensor())
        assert torch.equal(fresh.state[ours]["exp_avg"].full_tensor(),
                           optimizer.state[theirs]["exp_avg"].full_tensor())
    assert fresh.param_groups[0]["lr"] == 0.1
    state = {"model": get_state_dict(shard(from_group=False), [])[0]}
    dcp.load(state, checkpoint_id=f"{folder}/later")
    assert torch.equal(state["model"]["0.weight"].full_tensor(), saved[0].weight.full_tensor())


if __name__ == "__main__":
    main(globals())

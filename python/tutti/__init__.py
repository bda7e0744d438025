"""Tutti: distributed gradient computation. Importing it registers the backend "tutti" with torch.distributed.

    import torch.distributed as dist
    import tutti

    dist.init_process_group("tutti")                             # PyTorch's own rendezvous
    dist.init_process_group("tutti", init_method="tutti://")     # the job's authenticated store, as in C++

Start the ranks with `tutti run -n 4 -- python train.py`, or with torchrun.
"""

from datetime import timedelta

import torch as _torch
import torch.distributed as _dist
from torch.distributed.rendezvous import register_rendezvous_handler as _register_rendezvous_handler

from ._tutti import __version__, create_backend as _create_backend, join as _join, symmetric_empty as _symmetric_empty

__all__ = ["__version__", "symmetric_empty"]


def symmetric_empty(*size, dtype=None, group=None):
    """A tensor in memory that the ranks of the group share: its collectives read and write it in place.

    Like torch.empty(*size); `group` is a process group with the tutti backend, the default one when not given.
    """
    sizes = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    group = _dist.group.WORLD if group is None else group
    if group is None:
        raise ValueError("symmetric_empty: there is no process group; call torch.distributed.init_process_group first")
    return _symmetric_empty(group, list(sizes), dtype or _torch.get_default_dtype())


def _backend(store, rank, size, timeout):
    return _create_backend(store, rank, size, timeout)


def _rendezvous_handler(url, timeout=timedelta(minutes=5), **kwargs):
    """Yields store, rank and world size of the job that this process was started for."""
    yield _join(timeout)


if not hasattr(_dist.Backend, "TUTTI"):
    _dist.Backend.register_backend("tutti", _backend, devices=["cpu"])
    _register_rendezvous_handler("tutti", _rendezvous_handler)

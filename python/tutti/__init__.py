"""Tutti: distributed gradient computation. Importing it registers the backend "tutti" with torch.distributed.

    import torch.distributed as dist
    import tutti

    dist.init_process_group("tutti")                             # PyTorch's own rendezvous
    dist.init_process_group("tutti", init_method="tutti://")     # the job's authenticated store, as in C++

Start the ranks with `tutti run -n 4 -- python train.py`, or with torchrun.
"""

import atexit as _atexit
import operator as _operator
from datetime import timedelta

import torch as _torch
import torch.distributed as _dist
from torch.distributed.rendezvous import register_rendezvous_handler as _register_rendezvous_handler

from . import _tutti
from ._tutti import __version__

_CPU = _torch.device("cpu")

__all__ = ["__version__", "is_symmetric", "symmetric_empty"]


def symmetric_empty(*size, dtype=None, group=None):
    """A tensor in memory that the ranks of the group share: its collectives read and write it in place.

    Like torch.empty(*size); `group` is a process group with the tutti backend, the default one when not given.
    """
    sizes = size[0] if len(size) == 1 and not hasattr(size[0], "__index__") else size
    return _tutti.symmetric_empty(_backend_of(group), [_operator.index(each) for each in sizes], dtype or _torch.get_default_dtype())


def is_symmetric(tensor, group=None):
    """Whether collectives of that group read and write this tensor in place."""
    return _tutti.is_symmetric(_backend_of(group), tensor)


def _backend_of(group):
    group = _dist.group.WORLD if group is None else group
    if group is None:
        raise ValueError("tutti: there is no process group; call torch.distributed.init_process_group first")
    if group is _dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError("tutti: this rank is no member of that group")
    backend = group._get_backend(_CPU)
    return getattr(backend, "wrapped_pg", backend)  # TORCH_DISTRIBUTED_DEBUG=DETAIL puts one around it


def _backend(store, rank, size, timeout):
    return _tutti.create_backend(store, rank, size, timeout)


def _rendezvous_handler(url, timeout=timedelta(minutes=5), **kwargs):
    """Yields store, rank and world size of the job that this process was started for."""
    yield _tutti.join(timeout)


if not hasattr(_dist.Backend, "TUTTI"):
    _dist.Backend.register_backend("tutti", _backend, devices=["cpu"])
    _register_rendezvous_handler("tutti", _rendezvous_handler)
    # Groups that nobody destroyed: a thread that lets go of one of Python's tensors while Python itself ends would end
    # the process.
    _atexit.register(_tutti.shut_down_all)

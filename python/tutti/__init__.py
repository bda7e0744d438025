"""Tutti: distributed gradient computation. Importing it registers the backend "tutti" with torch.distributed.

    import torch.distributed as dist
    import tutti

    dist.init_process_group("tutti")                             # PyTorch's own rendezvous
    dist.init_process_group("tutti", init_method="tutti://")     # the job's authenticated store, as in C++

Start the ranks with `tutti run -n 4 -- python train.py`, or with torchrun.
"""

from datetime import timedelta

import torch.distributed as _dist
from torch.distributed.rendezvous import register_rendezvous_handler as _register_rendezvous_handler

from ._tutti import __version__, create_backend as _create_backend, join as _join

__all__ = ["__version__"]


def _backend(store, rank, size, timeout):
    return _create_backend(store, rank, size, timeout)


def _rendezvous_handler(url, timeout=timedelta(minutes=5), **kwargs):
    """Yields store, rank and world size of the job that this process was started for."""
    yield _join(timeout)


if not hasattr(_dist.Backend, "TUTTI"):
    _dist.Backend.register_backend("tutti", _backend, devices=["cpu"])
    _register_rendezvous_handler("tutti", _rendezvous_handler)

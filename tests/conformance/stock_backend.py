"""Runs the conformance suite over a backend of PyTorch's own: stock_backend.py gloo, once per rank."""

import os
import sys

import torch.distributed as dist
import conformance_module

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
dist.init_process_group(sys.argv[1])
ran, failures = conformance_module.run(dist.group.WORLD)
if dist.get_rank() == 0:
    print(f"{ran} cases over {sys.argv[1]}, {len(failures)} failed")
for failure in failures:
    print(failure, file=sys.stderr)
dist.destroy_process_group()
sys.exit(1 if failures or ran == 0 else 0)

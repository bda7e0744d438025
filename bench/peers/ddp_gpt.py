#!/usr/bin/env python3
"""Trains the GPT of `tutti train --preset nano` in PyTorch (eager), with DDP on Gloo or in one process. A line for each step.

usage: ddp_gpt.py FILE TOKENS STEPS [-n RANKS] [--threads T]     TOKENS: of each rank and step
"""

import argparse
import json
import math
import os
import sys
import tempfile

import torch
import torch.multiprocessing
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

LAYERS, HEADS, WIDTH, CONTEXT, WORDS = 2, 4, 128, 128, 256


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        texts, length, _ = x.shape
        query, key, value = self.attention(self.ln_1(x)).view(texts, length, 3, HEADS, -1).permute(2, 0, 3, 1, 4)
        seen = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.project(seen.transpose(1, 2).reshape(texts, length, -1))
        return x + self.narrow(functional.gelu(self.wide(self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, text, following):
        x = self.words(text) + self.places(torch.arange(text.shape[1]))
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.words.weight.t()
        return functional.cross_entropy(logits.view(-1, WORDS), following.reshape(-1))


def train(rank, options, store):
    torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    model = Gpt()
    if options.ranks > 1:
        torch.distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=options.ranks)
        model = DistributedDataParallel(model)
    matrices = [parameter for parameter in model.parameters() if parameter.dim() == 2]
    others = [parameter for parameter in model.parameters() if parameter.dim() != 2]
    optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}], lr=4e-3, betas=(0.9, 0.95))
    with open(options.file, "rb") as file:
        data = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
    drawn = torch.Generator().manual_seed(rank)
    for step in range(options.steps):
        for group in optimizer.param_groups:
            group["lr"] = 4e-3 * (0.55 + 0.45 * math.cos(math.pi * step / options.steps))
        begins = torch.randint(len(data) - CONTEXT - 1, (options.tokens // CONTEXT,), generator=drawn)
        tokens = torch.stack([data[begin:begin + CONTEXT + 1] for begin in begins.tolist()]).long()
        optimizer.zero_grad()
        loss = model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        told = loss.detach().clone()
        if options.ranks > 1:
            torch.distributed.all_reduce(told)  # as everyone does who wants to see the loss
        if rank == 0:
            print(json.dumps({"step": step + 1, "loss": told.item() / options.ranks}), flush=True)
    if options.ranks > 1:
        torch.distributed.barrier()
        os._exit(0)  # Gloo's threads sometimes abort a process that ends in order


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("tokens", type=int)
    parser.add_argument("steps", type=int)
    parser.add_argument("-n", type=int, default=1, dest="ranks")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    if options.ranks == 1:
        train(0, options, "")
        return
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(train, (options, os.path.join(folder, "store")), nprocs=options.ranks)


if __name__ == "__main__":
    sys.exit(main())

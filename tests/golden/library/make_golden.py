# SPDX-License-Identifier: Apache-2.0
"""Loss curves of PyTorch's DDP, FSDP and ZeroRedundancyOptimizer over Gloo, and the indices of its DistributedSampler.

    python make_golden.py        (torch 2.11, safetensors; writes beside itself)

The network is the one of convoy/library/network_test.h. network.safetensors holds its first weights and the rows;
curves.json the losses, mean over two ranks, of every step.
"""

import json
import os
import pathlib
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from safetensors.torch import load_file, save_file
from torch import nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

HERE = pathlib.Path(__file__).parent
RANKS, STEPS, ROWS, INPUTS, WIDTH, CLASSES = 2, 20, 16, 12, 24, 5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.up = nn.Linear(WIDTH, 2 * WIDTH)
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(INPUTS, WIDTH)
        self.norm = nn.BatchNorm1d(WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(3))
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x):
        x = torch.relu(self.norm(self.input(x)))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def loaded_network():
    network = Network()
    tensors = load_file(HERE / "network.safetensors")
    network.load_state_dict({name: tensors[name] for name in network.state_dict()})
    return network, tensors["rows"], tensors["labels"]


def mean_over_ranks(loss):
    total = loss.detach().clone()
    dist.all_reduce(total)
    return total.item() / RANKS


def curve(rank, make_model, make_optimizer, micro_batches=1, clip=None):
    network, rows, labels = loaded_network()
    model = make_model(network)
    optimizer = make_optimizer(model)
    losses = []
    for step in range(STEPS):
        own = slice(rank * ROWS // RANKS, (rank + 1) * ROWS // RANKS)
        parts = list(
            zip(rows[step][own].chunk(micro_batches), labels[step][own].chunk(micro_batches))
        )
        optimizer.zero_grad()
        step_loss = 0
        for index, (x, y) in enumerate(parts):
            last = index + 1 == micro_batches
            if isinstance(model, DistributedDataParallel):
                model.require_backward_grad_sync = last
            else:
                model.set_requires_gradient_sync(last)
            loss = nn.functional.cross_entropy(model(x), y) / micro_batches
            loss.backward()
            step_loss += loss.detach()
        if clip is not None:
            norm = nn.utils.clip_grad_norm_(model.parameters(), clip)
            assert norm > clip
        optimizer.step()
        losses.append(mean_over_ranks(step_loss))
    return losses


def sharded(network, **options):
    for block in network.blocks:
        fully_shard(block, **options)
    return fully_shard(network, **options)


def sent_as_bf16(network):
    return sharded(network, mp_policy=MixedPrecisionPolicy(reduce_dtype=torch.bfloat16))


def run(rank, store, result):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", store=dist.FileStore(store, RANKS), rank=rank, world_size=RANKS)

    def adam(model):
        return torch.optim.Adam(model.parameters(), lr=3e-3)

    def adamw(model):
        return torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)

    def sgd(model):
        return torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)

    def zero(model):
        return ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=3e-3)

    from torch.distributed.device_mesh import init_device_mesh

    init_device_mesh("cpu", (RANKS,))
    curves = {
        "ddp_adam": curve(rank, DistributedDataParallel, adam),
        "ddp_sgd_accumulated": curve(rank, DistributedDataParallel, sgd, micro_batches=2),
        "ddp_adamw_clipped": curve(rank, DistributedDataParallel, adamw, clip=0.5),
        "zero_adam": curve(rank, DistributedDataParallel, zero),
        "fsdp_adamw": curve(rank, sharded, adamw),
        "fsdp_adamw_sent_as_bf16": curve(rank, sent_as_bf16, adamw),
        "fsdp_sgd_accumulated": curve(rank, sharded, sgd, micro_batches=2),
        "fsdp_adamw_clipped": curve(rank, sharded, adamw, clip=0.5),
    }
    if rank == 0:
        pathlib.Path(result).write_text(json.dumps(curves))
    dist.destroy_process_group()


def sampler_cases():
    cases = []
    for rows, ranks, shuffle, drop_last, seed, epoch in [
        (10, 2, False, False, 0, 0),
        (10, 3, False, False, 0, 0),
        (10, 3, False, True, 0, 0),
        (10, 3, True, False, 0, 0),
        (10, 3, True, False, 7, 4),
        (10, 4, True, True, 7, 5),
        (2, 5, True, False, 1, 0),
        (101, 4, True, False, 3, 2),
    ]:
        indices = []
        for rank in range(ranks):
            sampler = DistributedSampler(range(rows), ranks, rank, shuffle, seed, drop_last)
            sampler.set_epoch(epoch)
            indices.append(list(sampler))
        cases.append(
            {
                "rows": rows,
                "shuffle": shuffle,
                "drop_last": drop_last,
                "seed": seed,
                "epoch": epoch,
                "indices": indices,
            }
        )
    return cases


def main():
    torch.manual_seed(1)
    network = Network()
    labels = torch.randint(CLASSES, (STEPS, ROWS))
    rows = torch.randn(STEPS, ROWS, INPUTS) + torch.randn(CLASSES, INPUTS)[labels]
    save_file(network.state_dict() | {"rows": rows, "labels": labels}, HERE / "network.safetensors")
    with tempfile.TemporaryDirectory() as folder:
        result = os.path.join(folder, "curves")
        mp.spawn(run, (os.path.join(folder, "store"), result), RANKS)
        golden = {
            "torch": torch.__version__.split("+")[0],
            "curves": json.loads(pathlib.Path(result).read_text()),
            "sampler": sampler_cases(),
        }
    (HERE / "golden.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()

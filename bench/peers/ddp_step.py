# SPDX-License-Identifier: Apache-2.0
"""One rank of bench/library_ddp.py: the steps of library_ddp_bench.cpp with torch's DistributedDataParallel over Gloo.

ddp_step.py WIDTH DEPTH ROWS STEPS    under the environment of a launcher
"""

import json
import os
import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WARM_UP = 5


def main():
    width, depth, rows, steps = map(int, sys.argv[1:])
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    layers = []
    for _ in range(depth):
        layers += [nn.Linear(width, width), nn.ReLU()]
    model = nn.parallel.DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    torch.manual_seed(1 + dist.get_rank())
    x = torch.randn(rows, width)
    steps_ms = []
    for step in range(steps):
        if step == WARM_UP:
            processor_begin = time.process_time()
        begin = time.perf_counter()
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        value = loss.item()
        steps_ms.append(1e3 * (time.perf_counter() - begin))
    processor_ms = 1e3 * (time.process_time() - processor_begin) / (steps - WARM_UP)
    ordered = sorted(steps_ms[WARM_UP:])
    if dist.get_rank() == 0:
        print(
            json.dumps(
                {
                    "step_ms": statistics.median(ordered),
                    "fast_step_ms": ordered[len(ordered) // 10],
                    "processor_ms": processor_ms,
                    "loss": value,
                }
            )
        )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

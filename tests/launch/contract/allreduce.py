# SPDX-License-Identifier: Apache-2.0
"""An ordinary torch.distributed script, which does not depend on its launcher."""

import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record


@record
def main():
    todo = sys.argv[1] if len(sys.argv) > 1 else ""
    dist.init_process_group("gloo")
    value = torch.full((3,), float(dist.get_rank() + 1))
    dist.all_reduce(value)
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if todo == "fail-once" and attempt == 0 and dist.get_rank() == 1:
        os._exit(9)
    if todo == "raise" and dist.get_rank() == 1:
        raise RuntimeError("tensor q went missing")
    # The key belongs to this attempt: a key of the last attempt would return its old number at once.
    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        store.set("attempt", str(attempt))
    seen = store.get("attempt").decode()
    dist.barrier()
    print(
        f"sum {value.tolist()} rank {dist.get_rank()}/{dist.get_world_size()} attempt {seen}",
        flush=True,
    )
    dist.destroy_process_group()


if __name__ == "__main__":
    main()

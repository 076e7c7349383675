# SPDX-License-Identifier: Apache-2.0
"""Sets countdown timers like a script under torchrun's file-based watchdog. Rank 1 exceeds its second timer."""

import os
import time

from torch.distributed.elastic import timer

timer.configure(timer.FileTimerClient(os.environ["TORCHELASTIC_TIMER_FILE"]))
with timer.expires(after=60, scope="quick"):
    pass
if os.environ["RANK"] == "1":
    with timer.expires(after=0.5, scope="stuck collective"):
        time.sleep(60)
time.sleep(60)

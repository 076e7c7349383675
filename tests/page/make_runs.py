#!/usr/bin/env python3
"""Run folders of every state for the page's test: make_runs.py FOLDER OLD_RUNS

Writes OLD_RUNS finished runs, and `long` with a million steps, `failed`, `diverged`, `running` and `empty`. Prints "ready", then holds the
lock of `running`, as its training would, until this program is ended."""

import fcntl
import json
import math
import pathlib
import signal
import sys


def write_run(folder, steps, start, end, rate, loss_of, total=0, step_seconds=0.01, more=""):
    (folder / "logs").mkdir(parents=True)
    with open(folder / "events.jsonl", "w") as events:
        events.write(
            json.dumps({"event": "start", "time": start, "total_steps": total or max(steps, 10)})
            + "\n"
        )
        for step in range(1, steps + 1):
            events.write(
                '{"event":"step","time":%.1f,"step":%d,"epoch":%.4f,"loss":%.4f,"learning_rate":%.6g,"grad_norm":%.3f,'
                '"tokens_per_second":%.1f,"memory_bytes":268435456,"rank_losses":[%.4f,%.4f]%s}\n'
                % (
                    start + step * step_seconds,
                    step,
                    step / steps,
                    loss_of(step),
                    rate,
                    1 + 0.1 * math.sin(step),
                    900 + step % 50,
                    loss_of(step) - 0.01,
                    loss_of(step) + 0.01,
                    more,
                )
            )
            if step % max(1, steps // 4) == 0:
                events.write(
                    json.dumps(
                        {
                            "event": "eval",
                            "time": start + step * step_seconds,
                            "step": step,
                            "split": "eval",
                            "loss": loss_of(step) + 0.05,
                        }
                    )
                    + "\n"
                )
        if end:
            events.write(json.dumps({**end, "time": start + steps * 0.01 + 1}) + "\n")
    (folder / "run.json").write_text(
        json.dumps(
            {
                "version": "0.1.0",
                "name": folder.name,
                "task": "sft",
                "world_size": 2,
                "stamp": {"tuning.mode": "lora", "dtype": "bf16"},
                "config": {
                    "train": {"learning_rate": rate, "batch_size": 4},
                    "model": {"name": "examples/tally-3m"},
                },
                "origins": {
                    "train.learning_rate": "command line",
                    "train.batch_size": "default",
                    "model.name": "lora.yaml:2",
                },
            }
        )
    )
    (folder / "metrics.json").write_text(json.dumps({"train_loss": 1.0, "eval_loss": 1.1}))


def main():
    folder = pathlib.Path(sys.argv[1])
    finished = {"event": "end", "status": "finished"}
    for run in range(int(sys.argv[2])):
        write_run(
            folder / f"old-{run:03}",
            40,
            1_700_000_000 + run * 1000,
            finished,
            1e-4 + run * 1e-6,
            lambda step: 2 / math.sqrt(step) + run * 1e-3,
        )
    now = 1_790_000_000
    write_run(
        folder / "long",
        1_000_000,
        now,
        finished,
        1e-3,
        lambda step: 3 * step**-0.2 + 0.05 * math.sin(step * 12.9898),
    )
    write_run(
        folder / "failed",
        25,
        now + 20_000,
        {"event": "failure", "message": "the device has no memory left for 3.1 GiB"},
        1e-3,
        lambda step: 2.0,
    )
    (folder / "failed/logs/rank-00.log").write_text("step 1\n<b>traceback line</b>\n")
    write_run(
        folder / "diverged",
        40,
        now + 10_000,
        finished,
        1e-1,
        lambda step: 4 / step if step < 20 else 10_000 * (step - 20),
    )
    write_run(
        folder / "running",
        30,
        now + 30_000,
        None,
        2e-3,
        lambda step: 4 / step,
        total=60,
        step_seconds=2,
        more=',"skipped_rows":0',
    )
    (folder / "running/samples").mkdir()
    (folder / "running/samples/step-20.jsonl").write_text(
        json.dumps({"prompt": "2 + 2?", "prediction": "4", "reference": "4"}) + "\n"
    )
    write_run(
        folder / "empty",
        0,
        now - 5000,
        {"event": "failure", "message": "no such data"},
        1e-3,
        lambda step: 0.0,
    )
    with open(folder / "running/devices.csv", "w") as devices:
        devices.write(
            "timestamp,elapsed_s,run_id,host,rank,device,gpu_util_pct,mem_used_mib,power_w,host_cpu_pct\n"
        )
        for look in range(60):
            for gpu in range(2):
                devices.write(
                    f"2026-01-31T12:{look // 12:02}:{look % 12 * 5:02}.000Z,{look * 5},,h,,gpu{gpu},{90 + look % 7},{20000 + look},"
                    f"{500 + look % 9 * 10},\n"
                )
            devices.write(
                f"2026-01-31T12:{look // 12:02}:{look % 12 * 5:02}.000Z,{look * 5},,h,,host,,,,{30 + look % 5}\n"
            )
    with open(folder / "running/logs/devices-node1.csv", "w") as devices:
        devices.write("timestamp,elapsed_s,run_id,host,rank,device,gpu_util_pct\n")
        for look in range(60):
            devices.write(
                f"2026-01-31T12:{look // 12:02}:{look % 12 * 5:02}.500Z,{look * 5},,node1,,gpu0,{50 + look % 7}\n"
            )
    lock = open(folder / "running/.lock", "w")
    fcntl.lockf(lock, fcntl.LOCK_EX)
    print("ready", flush=True)
    signal.pause()


main()

# SPDX-License-Identifier: Apache-2.0
"""A rank that records how it was started, prints one line on each stream, and ends as its arguments say. probe.c does the same.

  probe.py [end N | signal N | fail-until ATTEMPT | error-file | wait | sleep | WORDS...]

Only rank 1 ends or fails; the other ranks run until they are stopped. With `wait` a rank records the signals that arrive.

PROBE_OUT names the folder for its records.
"""

import json
import os
import signal
import sys
import time


def record(words):
    """Writes one file for this rank and attempt. The file is complete when it appears."""
    rank, attempt = os.environ["RANK"], os.environ["TORCHELASTIC_RESTART_COUNT"]
    name = os.path.join(os.environ["PROBE_OUT"], f"{rank}.{attempt}.json")
    found = {
        "arguments": words,
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "leads_group": os.getpgid(0) == os.getpid(),
        "leads_session": os.getsid(0) == os.getpid(),
    }
    with open(name + ".part", "w") as file:
        json.dump(found, file)
    os.rename(name + ".part", name)


def wait_for_records():
    """Waits for the records of all ranks, so that a rank that fails does not end the other ranks before they have written theirs."""
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    for rank in range(int(os.environ["WORLD_SIZE"])):
        while not os.path.exists(os.path.join(os.environ["PROBE_OUT"], f"{rank}.{attempt}.json")):
            time.sleep(0.01)


def note_signal(number, _frame):
    with open(os.path.join(os.environ["PROBE_OUT"], f"{os.environ['RANK']}.signals"), "a") as file:
        file.write(f"{number}\n")
    if number not in (signal.SIGUSR1, signal.SIGUSR2):
        sys.exit(0)


def main():
    words = sys.argv[1:]
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        if "wait" in words:
            signal.signal(number, note_signal)
    # Each line is written by one call, because other ranks write to the same console.
    os.write(1, f"probe: out of {os.environ['RANK']}\n".encode())
    os.write(2, f"probe: err of {os.environ['RANK']}\n".encode())
    record(words)
    todo = words[0] if words else ""
    attempt = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if todo not in ("wait", "sleep", "end", "signal", "fail-until", "error-file"):
        return
    if todo == "fail-until" and attempt >= int(words[1]):
        return
    if os.environ["RANK"] == "1":
        wait_for_records()
        if todo in ("end", "fail-until"):
            sys.exit(int(words[1]) if todo == "end" else 5)
        if todo == "signal":
            os.kill(os.getpid(), int(words[1]))
        if todo == "error-file":
            with open(os.environ["TORCHELASTIC_ERROR_FILE"], "w") as file:
                json.dump(
                    {
                        "message": {
                            "message": "RuntimeError: on purpose",
                            "extraInfo": {"timestamp": "1"},
                        }
                    },
                    file,
                )
            sys.exit(1)
    while True:
        time.sleep(0.05)  # runs until the launcher ends it


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of watching eight GPUs. It takes 10 samples a second, so that the cost is measurable; at 1 Hz the cost is a tenth.

python3 cost_test.py SOURCE_FOLDER PROGRAM_FOLDER [SECONDS]
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import machines

MOST_CORE_PERCENT_AT_1_HZ = 0.5
LOOKS_PER_SECOND = 10


def main():
    source, programs = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **machines.plain_environment(programs),
            **machines.lay_out(source, "h200x8", pathlib.Path(folder) / "root"),
        }
        run = subprocess.run(
            [
                programs / "convoy",
                "monitor",
                "--interval",
                str(1 / LOOKS_PER_SECOND),
                "--duration",
                str(seconds),
                "--output",
                f"{folder}/out.csv",
                "--json",
            ],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    cost = json.loads(run.stdout)["own_cost"]
    at_1_hz = cost["core_percent"] / LOOKS_PER_SECOND
    print(
        f"8 GPUs at 1 Hz: {at_1_hz:.3f} % of one core; a look {cost['mean_look_ms']:.2f} ms, the longest {cost['longest_look_ms']:.2f} ms"
    )
    sys.exit(0 if at_1_hz <= MOST_CORE_PERCENT_AT_1_HZ else 1)


if __name__ == "__main__":
    main()

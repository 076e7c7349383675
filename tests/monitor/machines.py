# SPDX-License-Identifier: Apache-2.0
"""Lets whole programs run on the machines of tests/machines."""

import json
import os
import pathlib


def lay_out(source, name, root):
    """Writes the /proc and /sys of a machine below `root`. Returns the environment in which a program sees that machine."""
    scenario = source / "tests/machines" / f"{name}.json"
    told = json.loads(scenario.read_text())
    for path, text in told["files"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    for path, target in told["links"].items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).symlink_to(target)
    return {"CONVOY_HOST_ROOT": str(root), "FAKE_NVML_SCENARIO": str(scenario)}


def plain_environment(programs):
    """The environment without the variables that describe the machine on which the tests run."""
    left_out = ("CUDA_", "HIP_", "ROCR_", "NVIDIA_", "TORCHELASTIC", "CONVOY_", "RANK")
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(left_out)
    }
    environment["CONVOY_NVML_LIBRARY"] = str(pathlib.Path(programs) / "libfake_nvml.so")
    return environment

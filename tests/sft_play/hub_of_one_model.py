# SPDX-License-Identifier: Apache-2.0
"""Serves one folder as the hub's model org/tiny until its standard input ends; prints the address first.

hub_of_one_model.py SOURCE_FOLDER MODEL_FOLDER
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "tests/hub"))

from hub_server import Hub  # noqa: E402

files = {
    path.name: path.read_bytes() for path in pathlib.Path(sys.argv[2]).iterdir() if path.is_file()
}
hub = Hub()
hub.add("org/tiny", files, lfs=("model.safetensors",))
print(hub.url, flush=True)
sys.stdin.read()
hub.close()

# SPDX-License-Identifier: Apache-2.0
"""Makes golden_listing.json: the files that huggingface_hub's snapshot_download writes into its cache for sample_repository.py.

Run: python make_golden_listing.py
"""

import json
import os
import pathlib
import tempfile

from hub_server import Hub
from sample_repository import LFS, sample_files

HERE = pathlib.Path(__file__).parent

if __name__ == "__main__":
    hub = Hub()
    hub.add("org/tiny", sample_files(), lfs=LFS)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(
            HF_HOME=home, HF_ENDPOINT=hub.url, HF_HUB_DISABLE_XET="1", HF_HUB_DISABLE_TELEMETRY="1"
        )
        from hub_test import listing
        from huggingface_hub import snapshot_download

        snapshot_download("org/tiny")
        # trees/ is left out: huggingface_hub 2 keeps its own data there.
        found = {
            path: what
            for path, what in listing(pathlib.Path(home) / "hub").items()
            if "/trees/" not in path
        }
        (HERE / "golden_listing.json").write_text(
            json.dumps(found, indent=1, sort_keys=True) + "\n"
        )
    hub.close()

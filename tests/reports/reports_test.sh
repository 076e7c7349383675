#!/usr/bin/env bash
# trackio and wandb read what Convoy writes for them: reports_test.sh SOURCE_FOLDER PROGRAM_FOLDER.
# Runs the tests that are skipped without these packages; here no test may be skipped. Exit code 77:
# skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
environment=.deps/reports
python_environment "$environment" trackio==0.43.0 wandb==0.31.0
export CONVOY_PEER_PYTHON=$source/$environment/bin/python CONVOY_SOURCE_DIR=$source CONVOY_BIN_DIR=$programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$programs/reports_tests" --gtest_filter='*TrackioItself*:*WandbsClasses*' >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
if grep -E 'SKIPPED|PASSED.* 0 tests' "$work/log"; then
  cat "$work/log"
  exit 1
fi
"$CONVOY_PEER_PYTHON" tests/reports/reports_test.py

#!/usr/bin/env bash
# What Convoy writes for TensorBoard, read by TensorBoard itself: tensorboard_test.sh SOURCE_FOLDER PROGRAM_FOLDER
# Runs the tests that skip where there is no TensorBoard; here none may. Exit 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
environment=.deps/tensorboard
if [ ! -e "$environment/.ready" ]; then
  python3 -m venv "$environment" >/dev/null 2>&1 || skip "python3 can not make a virtual environment"
  timeout 300 "$environment/bin/pip" install --quiet --disable-pip-version-check tensorboard==2.21.0 >"$environment/pip.log" 2>&1 ||
    skip "pip can not fetch tensorboard: $(tail -n 1 "$environment/pip.log")"
  : >"$environment/.ready"
fi
export CONVOY_PEER_PYTHON=$source/$environment/bin/python CONVOY_SOURCE_DIR=$source CONVOY_BIN_DIR=$programs
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

read_back() { # PROGRAM FILTER
  "$programs/$1" --gtest_filter="$2" >"$work/$1.log" 2>&1 || { cat "$work/$1.log"; exit 1; }
  if grep -E 'SKIPPED|PASSED.* 0 tests' "$work/$1.log"; then
    cat "$work/$1.log"
    exit 1
  fi
}
read_back telemetry_tests 'TensorBoard.TheStockReader*:TensorBoard.TheHparamsPage*'
read_back monitor_tests 'OfATraining.ItsDevicesAreCurves*'
read_back sweep_tests 'Sessions.*'

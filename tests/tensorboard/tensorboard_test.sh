#!/usr/bin/env bash
# TensorBoard and pyarrow read the files that Convoy writes for them: tensorboard_test.sh
# SOURCE_FOLDER PROGRAM_FOLDER. Runs the tests that are skipped without these packages; here no test
# may be skipped. Exit code 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
source tools/setup.sh
environment=.deps/tensorboard
python_environment "$environment" tensorboard==2.21.0 "pyarrow==$arrow_version"
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
read_back sweep_program_tests 'SweepSsm.ParquetHoldsTheTidyTable'

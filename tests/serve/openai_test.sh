#!/usr/bin/env bash
# `convoy serve`, called by the openai package and by raw sockets: openai_test.sh SOURCE_FOLDER
# PROGRAM_FOLDER. Exit 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
environment=.deps/openai
python_environment "$environment" openai==2.8.1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# An adapter that answers otherwise than its base.
"$programs/convoy" train examples/sums/lora.yaml train.steps=12 --run-dir "$work/run" >"$work/train.log" 2>&1 ||
  { cat "$work/train.log"; exit 1; }
"$environment/bin/python" tests/serve/openai_client_test.py "$programs/convoy" examples/tally-3m "$work/run/adapter"

#!/usr/bin/env bash
# lm-evaluation-harness measures a model by `convoy eval --tasks` as with its own `hf` backend:
# harness_test.sh SOURCE_FOLDER PROGRAM_FOLDER. Exit 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
source tools/smollm2.sh
environment=.deps/harness
python_environment "$environment" 'lm-eval[api]==0.4.13'
export HF_HUB_OFFLINE=1 HF_DATASETS_OFFLINE=1
smollm2=$(smollm2_file .deps/models 2>/dev/null) || smollm2=none
python3 tests/harness/harness_test.py "$programs/convoy" "$environment/bin/python" "$smollm2"

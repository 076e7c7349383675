#!/usr/bin/env bash
# huggingface_hub and `convoy models push` send the same requests: push_peer_test.sh SOURCE_FOLDER
# PROGRAM_FOLDER. Exit code 77: skipped, with the reason.
set -euo pipefail
source=$1 programs=$2
cd "$source"
source tests/files/packages.sh
environment=.deps/huggingface_hub
python_environment "$environment" huggingface_hub==2.4.0
CONVOY_BIN_DIR=$programs exec "$environment/bin/python" tests/hub/push_peer_test.py

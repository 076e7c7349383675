#!/usr/bin/env bash
# Makes .deps/peers, a Python environment with the peers for comparison benchmarks (several GB).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python3 -m venv .deps/peers
.deps/peers/bin/pip install --quiet torch==2.11.0 "transformers[serving]" peft accelerate numpy
nice .deps/peers/bin/pip install --quiet "llama-cpp-python[server]" gguf  # compiled for this machine: minutes
echo "export CONVOY_PEER_PYTHON=$PWD/.deps/peers/bin/python"

#!/usr/bin/env bash
# Tests the wheel in a fresh virtual environment: `convoy` is in PATH, runs with the LibTorch of
# that environment, and can be uninstalled.
#   wheel_test.sh SOURCE_FOLDER BUILD_FOLDER TORCH_FOLDER
set -euo pipefail
source=$1 build=$2 torch=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }
unset CONVOY_TORCH PYTHONPATH

"$source/tools/wheel.sh" "$build" "$work/dist"
python3 -m venv --without-pip "$work/env"
env=$work/env
pip() { python3 -m pip --python "$env/bin/python" --quiet --disable-pip-version-check "$@"; }
pip install --no-deps --no-index "$work"/dist/convoy-*.whl
# Links an existing torch, because `pip install torch==2.11.0` would fetch gigabytes.
ln -s "$torch" "$(echo "$env"/lib/python3*/site-packages)/torch"

# The environment is not activated, the folder is another one, and no Python is in PATH, because the
# programs need no Python.
cd "$work"
run() { env -i HOME="$work" PATH="$env/bin:/nowhere" OMP_NUM_THREADS=1 "$env/bin/convoy" "$@"; }
run --version | grep -q "^LibTorch 2\.11.*$env/lib/python3" || fail "--version: $(run --version)"
cp -r "$source/examples" examples
run train examples/sums/lora.yaml --output-dir run train.max_steps=2 -q 2>err.txt || fail "train: $(cat err.txt)"
answer=$(run generate --model examples/tally-3m --adapter run/adapter --prompt "Question: 2 + 3 = ?" --greedy --max-new-tokens 4 -q)
[ -n "$answer" ] || fail "generate printed nothing"

ls "$env"/lib/python3*/site-packages/convoy-*.dist-info/licenses/{convoy,arrow,font-convoy-sans,rust-crates}.txt >/dev/null || fail "no licences"
grep -q '^tokenizers ' "$env"/lib/python3*/site-packages/convoy-*.dist-info/licenses/rust-crates.txt || fail "no licences of crates"
pip uninstall --yes convoy
[ ! -e "$env/bin/convoy" ] && [ ! -e "$env/bin/convoy-worker" ] && [ ! -e "$env/lib/convoy" ] || fail "uninstalling leaves files"
echo "the wheel works"

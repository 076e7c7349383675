#!/usr/bin/env bash
# Tries Convoy on this machine's GPU, unpacked from the archive (checks/gpu_check.sh) or in a built checkout: ops against their
# references, training and scores against what transformers and PEFT computed, then speed beside them. No network, no compiler.
#   gpu_check.sh [--part ops|parity|bench]... [--geometry NAME]... [--devices cuda|cpu] [--output FOLDER] [--peer-python PYTHON]
# Writes FOLDER/ops.log, ops-aten.log, parity.log, bench.jsonl and table.txt (FOLDER: gpu-check). Ends with 1 when a part failed. Without a Python
# that has torch, transformers and peft the benchmarks run without a peer.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parts=() geometries=() devices=cuda output=gpu-check python=${CONVOY_PEER_PYTHON:-python3} seq=4096 steps=5
while [ $# -gt 0 ]; do
  case "$1" in
    --part) parts+=("${2:?}") ;;
    --geometry) geometries+=("${2:?}") ;;
    --devices) devices=${2:?} ;;
    --output) output=${2:?} ;;
    --peer-python) python=${2:?} ;;
    --seq) seq=${2:?} ;;
    --steps) steps=${2:?} ;;
    *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
[ ${#parts[@]} -gt 0 ] || parts=(ops parity bench)
[ ${#geometries[@]} -gt 0 ] || geometries=(qwen05b qwen15b qwen7b)

if [ -d "$here/bin" ]; then  # the archive
  tests=$here/bin sources=$here programs=$(cd "$here/../bin" && pwd)
else
  sources=$(cd "$here/.." && pwd) tests=$(cd "$here/../build/bin" && pwd)
  programs=$tests
fi
export CONVOY_SOURCE_DIR=$sources CONVOY_BIN_DIR=$programs
convoy=$programs/convoy
# The tests load LibTorch as the programs do: where `convoy` finds it.
torch=$("$convoy" --version | sed -n 's/^LibTorch .* (\(.*\))$/\1/p')
export LD_LIBRARY_PATH=$torch/lib:$programs/../lib/convoy${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
mkdir -p "$output"
failed=0

say() { printf '%s\n' "$*"; }
# judged NAME LOG COMMAND...
judged() {
  local name=$1 log=$2
  shift 2
  if "$@" >"$log" 2>&1; then
    say "$name: $(grep -c '^\[       OK \]' "$log") tests passed"
  else
    say "$name: FAILED, see $log"
    grep '^\[  FAILED  \]' "$log" | sort -u | head -n 20 || tail -n 5 "$log"
    failed=1
  fi
}

check_ops() {
  local ops=$devices
  [ "$devices" != cpu ] || ops=
  judged ops "$output/ops.log" env CONVOY_TEST_OPS="$ops" timeout 600 "$tests/kernels_tests"
  [ "$devices" = cuda ] || return 0
  judged "ops by LibTorch's kernels" "$output/ops-aten.log" \
    env CONVOY_TEST_OPS="$ops" CONVOY_CUDA_KERNELS=aten timeout 600 "$tests/kernels_tests"
}

check_parity() {
  judged parity "$output/parity.log" env CONVOY_TEST_DEVICES="$devices" timeout 600 "$tests/parity_tests" --gtest_filter='*Family.*'
}

# Convoy and its peer on one piece of work; a line of JSON, and one of the table.
bench() {
  local geometry=$1 kind=$2 kernels=${CONVOY_CUDA_KERNELS:+ $CONVOY_CUDA_KERNELS}
  shift 2
  local peer=(--peer-python "$python")
  "$python" -c 'import torch, transformers, peft' 2>/dev/null || peer=(--no-peer)
  local line
  if line=$(timeout 600 "$convoy" bench "$kind" --devices "$devices" --geometry "$geometry" --dtype bf16 "${peer[@]}" --json "$@" 2>"$output/bench.err"); then
    printf '%s\n' "$line" >>"$output/bench.jsonl"
    say "$geometry$kernels $kind $*: $(grep -oE '"(batch|sampling|tokens_per_s|tokens_per_s_ratio|ratio|peak_device_mb|flops_per_token)":("[a-z_]*"|[0-9.e+]+)' <<<"$line" |
      tr -d '"' | tr '\n' ' ')" | tee -a "$output/table.txt"
  else
    say "$geometry$kernels $kind $*: FAILED: $(tail -n 1 "$output/bench.err")" | tee -a "$output/table.txt"
    failed=1
  fi
}

check_bench() {
  : >"$output/bench.jsonl"
  : >"$output/table.txt"
  for geometry in "${geometries[@]}"; do
    bench "$geometry" train --mode lora --seq "$seq" --batch 1 --steps "$steps"
    bench "$geometry" train --mode full --seq "$seq" --batch 1 --steps "$steps"
    # Convoy's kernels beside LibTorch's.
    [ "$devices" != cuda ] || CONVOY_CUDA_KERNELS=aten bench "$geometry" train --mode lora --seq "$seq" --batch 1 --steps "$steps"
    bench "$geometry" generate --batches 1,32 --repeats 1
  done
}

"$convoy" --version
for part in "${parts[@]}"; do
  case "$part" in
    ops | parity | bench) "check_$part" ;;
    *) say "unknown part $part"; exit 2 ;;
  esac
done
exit "$failed"

#!/usr/bin/env bash
# The programs in the archive of tools/package.sh run from another folder, find LibTorch by
# CONVOY_TORCH, and contain no path of the build.
#   package_test.sh SOURCE_FOLDER BUILD_FOLDER TORCH_FOLDER
set -euo pipefail
source=$1 build=$2 torch=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

"$source/tools/package.sh" "$build" "$work/dist"
mkdir "$work/elsewhere"
tar -C "$work/elsewhere" -xzf "$work"/dist/convoy-*-linux-x86_64.tar.gz
root=$(echo "$work"/elsewhere/convoy-*)
convoy=$root/bin/convoy

for file in "$root"/bin/* "$root"/lib/convoy/*; do
  paths=$(readelf -d "$file" | sed -n 's/.*R\(UN\)\?PATH.*\[\(.*\)\]/\2/p')
  case "$paths" in
    '' | '$ORIGIN' | '$ORIGIN/../lib/convoy') ;;
    *) fail "${file##*/} looks for libraries in $paths" ;;
  esac
done
missing=$(ldd "$convoy" "$root"/lib/convoy/*parquet* | grep 'not found' || true)
[ -z "$missing" ] || fail "missing: $missing"

cd "$work"
export CONVOY_TORCH=$torch OMP_NUM_THREADS=1
"$convoy" --version | grep -q '^LibTorch 2\.11' || fail "--version does not find LibTorch in $torch"
ids=$("$convoy" tokens --model "$root/examples/tally-3m" --text "2 + 3 = 5" --json)
[[ $ids == *'"ids"'* ]] || fail "tokens printed: $ids"
head -n 3 "$root/examples/sums/test.jsonl" >three.jsonl
"$convoy" score --model "$root/examples/tally-3m" --data three.jsonl --output scores.jsonl -q
[ "$(grep -c '"nll"' scores.jsonl)" -eq 3 ] || fail "score wrote: $(cat scores.jsonl)"
rows=$("$convoy" tokens --model "$root/examples/tally-3m" --data "$source/tests/golden/data/chats.parquet" --limit 1 --json)
[ -n "$rows" ] || fail "the Parquet plugin did not read"

# On a machine without any CUDA library, and on a machine with the driver alone, the answers are the
# same, and a message says why no GPU computes.
expect_no_gpu() {
  code=0
  "$convoy" score --model "$root/examples/tally-3m" --data three.jsonl --output none.jsonl --devices cuda 2>err.txt || code=$?
  [ "$code" -eq 14 ] || fail "--devices cuda ended with $code: $(cat err.txt)"
  grep -q "$1" err.txt || fail "the error does not say why: $(cat err.txt)"
}
expect_no_gpu "there is no NVIDIA driver"
(
  export CONVOY_NVML_LIBRARY=$build/bin/libfake_nvml.so FAKE_NVML="GPU-1 H200 0000:3b:00.0 143000"
  "$convoy" score --model "$root/examples/tally-3m" --data three.jsonl --output driver.jsonl -q 2>err.txt
  cmp scores.jsonl driver.jsonl || fail "scores beside a driver differ"
  grep -q "computing on CPUs although this host has H200: the LibTorch in .* is CPU only; run: " err.txt || fail "no word on the GPU: $(cat err.txt)"
  expect_no_gpu "is CPU only; run: "
)

# The checks for machines with a GPU also run on CPUs. A twelfth of their tests runs here, because
# the ctest entries `kernels` and `parity` run all of them.
GTEST_TOTAL_SHARDS=12 GTEST_SHARD_INDEX=0 \
  "$root/checks/gpu_check.sh" --devices cpu --part launcher --part ops --part parity --part ranks --part har --part rewards --part sweep --output checked >checked.txt ||
  fail "gpu_check: $(cat checked.txt)"
for line in 'launcher: a rank on each of 2 devices' 'ranks: two reach the loss' 'har: the loss is .* by ddp' 'rewards: engine and trainer are 0\.0\? apart' 'sweep: the results of the CPU, to the bit'; do
  grep -q "^$line" checked.txt || fail "gpu_check printed: $(cat checked.txt)"
done
[ "$(grep -cE '^(ops|parity): [1-9][0-9]* tests passed$' checked.txt)" -eq 2 ] || fail "gpu_check printed: $(cat checked.txt)"

# LibTorch is found beside bin/ without CONVOY_TORCH. If CONVOY_TORCH names a wrong folder, the
# error names that folder.
mkdir -p "$root/.deps/site"
ln -s "$torch" "$root/.deps/site/torch"
env -u CONVOY_TORCH "$convoy" --version | grep -qF "($root/.deps/site/torch)" || fail "the archive's own .deps is not found"
env -u CONVOY_TORCH "$convoy" score --model "$root/examples/tally-3m" --data three.jsonl --output again.jsonl -q
cmp scores.jsonl again.jsonl || fail "scores differ"
code=0
CONVOY_TORCH=$work/nowhere "$convoy" score --model m --data d --output o 2>err.txt || code=$?
[ "$code" -eq 2 ] || fail "without LibTorch the exit code is $code"
grep -q "$work/nowhere" err.txt || fail "the error does not name what was looked at: $(cat err.txt)"
echo "package works"

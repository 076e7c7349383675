#!/usr/bin/env bash
# An installation that was moved serves find_package(Convoy): examples/library builds against it and trains on two ranks.
#   library_test.sh SOURCE_FOLDER BUILD_FOLDER TORCH_FOLDER
set -euo pipefail
source=$1 build=$2 torch=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { tail "$work/install.log"; fail "installation"; }
mv "$work/first" "$work/moved"
cmake -S "$source/examples/library" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/moved" -DCONVOY_TORCH="$torch" \
  >"$work/configure.log" 2>&1 || { cat "$work/configure.log"; fail "find_package(Convoy)"; }
grep -rqF "$source/convoy" "$work/build/CMakeFiles" && fail "the example sees the source tree"
cmake --build "$work/build" >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log"; fail "the example does not build"; }

export OMP_NUM_THREADS=1
"$source/examples/library/run.sh" "$work/build/two_ranks" | tee "$work/out.txt"
grep -q '^2 ranks, equal weights$' "$work/out.txt" || fail "the ranks did not end equal"
first=$(sed -n 's/^step   1 loss //p' "$work/out.txt")
last=$(sed -n 's/^step 200 loss //p' "$work/out.txt")
awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first / 2) }' || fail "loss $first -> $last"

#!/usr/bin/env bash
# find_package(Convoy) works with an installation that was moved: its headers compile, and examples
# build against it and run.
#   installed_library_test.sh SOURCE_FOLDER BUILD_FOLDER TORCH_FOLDER PART
# PART: `headers` tests the headers and cpp-ddp, `examples` tests all other examples.
set -euo pipefail
source=$1 build=$2 torch=$3 part=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# build_against_installation SOURCE_FOLDER: builds it in $work/NAME, where NAME is the folder's
# name.
build_against_installation() {
  local name=${1##*/}
  cmake -S "$1" -B "$work/$name" -DCMAKE_PREFIX_PATH="$work/moved" -DCONVOY_TORCH="$torch" \
    -DCMAKE_CXX_FLAGS_RELEASE=-O0 >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log"; fail "$name: find_package(Convoy)"; }
  grep -rqF "$source/convoy" "$work/$name/CMakeFiles" && fail "$name sees the source tree"
  cmake --build "$work/$name" >"$work/$name.log" 2>&1 || { tail -n 40 "$work/$name.log"; fail "$name does not build"; }
}

export OMP_NUM_THREADS=1
cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { tail "$work/install.log"; fail "installation"; }
mv "$work/first" "$work/moved"
headers=$work/moved/include
if grep -rlE 'gtest|fmt/|CONVOY_CHECK' "$headers"; then fail "these headers show what is private"; fi
if grep -rh '#include "' "$headers" | grep -vE '"convoy/(detail/)?[a-z_]+\.h"$'; then fail "these includes name folders of the sources"; fi
if grep -rnE '^namespace convoy::[a-z]+' "$headers/convoy" --exclude-dir=detail; then fail "public names stand in namespace convoy"; fi
public=(checkpoint convoy ddp dp error fsdp no_sync process_group profiler sampler sweep work zero)
[ "$(cd "$headers/convoy" && ls -d -- *)" = "$(printf '%s\n' detail "${public[@]/%/.h}" | LC_ALL=C sort)" ] ||
  fail "installed are other headers than those of docs/reference/library.md: $(ls "$headers/convoy")"
[ "$(cd "$work/moved/lib" && ls -d -- *.a)" = libconvoy.a ] || fail "archives: $(ls "$work/moved/lib")"
[ "$(grep -rhoE 'Convoy::[a-z_]+|_convoy_target\([a-z_]+' "$work/moved/lib/cmake" | grep -cvE '^(Convoy::|_convoy_target\()(convoy|sweep)$')" -eq 0 ] ||
  fail "the package names other targets than Convoy::convoy and Convoy::sweep"

headers_and_ddp() {
  # A source file that includes every header.
  mkdir "$work/every_header"
  {
    find "$headers" -name '*.h' -printf '#include "%P"\n' | sort
    echo 'int main() {}'
  } >"$work/every_header/main.cpp"
  sed 's/cpp_ddp/every_header/g' "$source/examples/cpp-ddp/CMakeLists.txt" >"$work/every_header/CMakeLists.txt"
  build_against_installation "$work/every_header"
  build_against_installation "$source/examples/cpp-ddp"

  # The training gives the same results under this launcher, under torchrun (if Python has torch),
  # and in one process without a launcher.
  program=$work/cpp-ddp/cpp_ddp
  expect_learned() { # NAME FILE
    [ "$(grep -cE 'epoch +[0-9]+ +[0-9.]+ % right$' "$2")" -eq 15 ] || { cat "$2"; fail "$1: not 15 epochs"; }
    awk '/epoch 15 / { right = $(NF - 2) } END { exit !(right > 90) }' "$2" || { cat "$2"; fail "$1: it has not learned"; }
  }
  "$program" >"$work/alone.txt" && expect_learned "one process" "$work/alone.txt"
  "$work/moved/bin/convoy" launch --nproc-per-node 2 -- "$program" >"$work/launched.txt" && expect_learned "convoy launch" "$work/launched.txt"
  torchrun=$(command -v torchrun || true)
  if [ -n "$torchrun" ]; then
    "$torchrun" --standalone --nproc-per-node 2 --no-python "$program" >"$work/torchrun.txt" && expect_learned torchrun "$work/torchrun.txt"
  else
    echo "no torchrun here: not run under it"
  fi
}

other_examples() {
  local example
  for example in "$source"/examples/*/CMakeLists.txt; do
    case $example in */cpp-ddp/*) ;; *) build_against_installation "${example%/*}" ;; esac
  done

  # The sharded training works with any number of ranks, and rank 0 writes the whole network.
  cd "$work"
  "$work/moved/bin/convoy" launch --nproc-per-node 3 -- "$work/cpp-fsdp/cpp_fsdp" | tee "$work/fsdp.txt"
  awk '/step 20 / { first = $NF } /step 60 / { last = $NF } END { exit !(last < first) }' "$work/fsdp.txt" || fail "sharded training does not learn"
  [ -s network.pt ] || fail "cpp_fsdp has not saved its network"

  # The digits of the tutorial: one epoch on two ranks, then one more on one rank from the
  # checkpoint.
  python3 "$source/tests/package/make_digits.py" "$work/digits"
  "$work/moved/bin/convoy" launch --nproc-per-node 2 -- "$work/cpp-mnist/cpp_mnist" "$work/digits" 1 200 | tee "$work/mnist.txt"
  "$work/cpp-mnist/cpp_mnist" "$work/digits" 2 200 | tee -a "$work/mnist.txt"
  [ "$(grep -cE 'epoch [12]: ' "$work/mnist.txt")" -eq 2 ] || fail "the second run did not go on after the first epoch"
  python3 - mnist.safetensors <<'END' || fail "mnist.safetensors is not the network's state_dict"
import json, struct, sys
with open(sys.argv[1], "rb") as file:
    header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
found = {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}
assert header["__metadata__"]["step"] == "2" and found["first.weight"] == [10, 1, 5, 5] and len(found) == 8, header
END
  awk '/^epoch 2: / { right = $3 } END { exit !(right > 90) }' "$work/mnist.txt" || fail "the digits were not learned"

  if ldd "$work/function_sweep/function_sweep" | grep torch; then fail "a sweep needs LibTorch"; fi
  "$work/function_sweep/function_sweep" | tee "$work/walks.txt"
  [ "$(grep -cE '^[123] .* 8$' "$work/walks.txt")" -eq 9 ] || fail "the table of nine cells is not there"
}

case $part in
  headers) headers_and_ddp ;;
  examples) other_examples ;;
  *) fail "no part $part" ;;
esac
echo "library works"

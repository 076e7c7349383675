#!/usr/bin/env bash
# An installation that was moved serves find_package(Convoy): its headers compile, and every example builds against it
# and runs.
#   library_test.sh SOURCE_FOLDER BUILD_FOLDER TORCH_FOLDER
set -euo pipefail
source=$1 build=$2 torch=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# build_against_installation SOURCE_FOLDER: built in $work/NAME of that folder.
build_against_installation() {
  local name=${1##*/}
  cmake -S "$1" -B "$work/$name" -DCMAKE_PREFIX_PATH="$work/moved" -DCONVOY_TORCH="$torch" >"$work/$name.log" 2>&1 ||
    { cat "$work/$name.log"; fail "$name: find_package(Convoy)"; }
  grep -rqF "$source/convoy" "$work/$name/CMakeFiles" && fail "$name sees the source tree"
  cmake --build "$work/$name" >"$work/$name.log" 2>&1 || { tail -n 40 "$work/$name.log"; fail "$name does not build"; }
}

cmake --install "$build" --prefix "$work/first" >"$work/install.log" || { tail "$work/install.log"; fail "installation"; }
mv "$work/first" "$work/moved"
headers=$work/moved/include
if grep -rlE 'gtest|#include "(files|ports|ranks)/' "$headers"; then fail "these headers are for tests"; fi

# One unit that includes every header.
mkdir "$work/every_header"
{
  find "$headers" -name '*.h' -printf '#include "%P"\n' | sort
  echo 'int main() {}'
} >"$work/every_header/main.cpp"
sed 's/two_ranks/every_header/g; s/PRIVATE Convoy::.*/PRIVATE Convoy::convoy)/' "$source/examples/library/CMakeLists.txt" \
  >"$work/every_header/CMakeLists.txt"
build_against_installation "$work/every_header"

for example in "$source"/examples/*/CMakeLists.txt; do
  build_against_installation "${example%/*}"
done

export OMP_NUM_THREADS=1
"$source/examples/library/run.sh" "$work/library/two_ranks" | tee "$work/out.txt"
grep -q '^2 ranks, equal weights$' "$work/out.txt" || fail "the ranks did not end equal"
first=$(sed -n 's/^step   1 loss //p' "$work/out.txt")
last=$(sed -n 's/^step 200 loss //p' "$work/out.txt")
awk -v first="$first" -v last="$last" 'BEGIN { exit !(last < first / 2) }' || fail "loss $first -> $last"

cd "$work"
"$work/function_sweep/function_sweep" | tee "$work/walks.txt"
[ "$(grep -cE '^run .* 8$' "$work/walks.txt")" -eq 9 ] || fail "the table of nine cells is not there"
echo "library works"

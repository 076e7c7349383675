#!/usr/bin/env bash
# Runs tests under the conditions of a busy machine: in a clone of HEAD inside a folder that no
# other user may enter, beside a busy loop on every core. Ends at the first test that fails.
#   tools/stress.sh [--times N] [ctest arguments]    each test that starts processes N times (20)
#   tools/stress.sh --suite [--times N]              the whole suite N times (5)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh

times=
suite=
while [ $# -gt 0 ]; do
  case "$1" in
    --times) times=${2:?--times needs a number}; shift 2 ;;
    --suite) suite=yes; shift ;;
    *) break ;;
  esac
done

setup_machine
[ -z "$(git status --porcelain --untracked-files=no)" ] || say "changes that are not committed are not tested"
private=$(mktemp -d)  # mode 0700
loops=()
finish() {
  [ ${#loops[@]} -eq 0 ] || kill "${loops[@]}" 2>/dev/null || true
  rm -rf "$private"
}
trap finish EXIT
git clone -q . "$private/convoy"
ln -s "$PWD/.deps" "$private/convoy/.deps"
(cd "$private/convoy" && ./run build -DCONVOY_BUILD_TESTS=ON)

for _ in $(seq "$(nproc)"); do
  (while :; do :; done) &
  loops+=($!)
done
if [ -n "$suite" ]; then
  for round in $(seq "${times:-5}"); do
    say "whole suite, round $round of ${times:-5}"
    ctest --test-dir "$private/convoy/build" --no-tests=error --output-on-failure -j "$((4 * $(nproc)))" "$@"
  done
else
  ctest --test-dir "$private/convoy/build" --no-tests=error --output-on-failure -L processes -LE thorough \
    --repeat "until-fail:${times:-20}" -j "$((4 * $(nproc)))" "$@"
fi

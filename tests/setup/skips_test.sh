#!/usr/bin/env bash
# tools/skips.py finds every kind of skip in the log of ctest, and refuses skips that are not
# listed.
#   skips_test.sh SOURCE_FOLDER
set -euo pipefail
source=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

mkdir "$work/project"
cat >"$work/project/CTestTestfile.cmake" <<'TESTS'
add_test(unit "sh" "-c" "printf '../x_test.cpp:1: Skipped\\nno server\\n[  SKIPPED ] A.B (0 ms)\\n'")
add_test(script "sh" "-c" "echo skipped: no root; exit 77")
set_tests_properties(script PROPERTIES SKIP_RETURN_CODE 77)
TESTS
ctest --test-dir "$work/project" >"$work/ctest.log" || { cat "$work/ctest.log"; fail "ctest"; }

# expect CODE KNOWN WORDS...: with the list KNOWN, `skips.py --strict` ends with CODE and prints
# WORDS.
expect() {
  local code=0
  printf '%b' "$2" >"$work/known.txt"
  python3 "$source/tools/skips.py" "$work/project" "$work/known.txt" --strict >"$work/found.txt" || code=$?
  [ "$code" = "$1" ] || fail "ended with $code, not $1: $(cat "$work/found.txt")"
  for word in "${@:3}"; do grep -qF -- "$word" "$work/found.txt" || fail "no '$word' in: $(cat "$work/found.txt")"; done
}
expect 0 'unit A.*\nscript *\n' "2 skipped" "unit A.B: no server" "script script: no root"
expect 1 'unit A.*\n' "script script: no root  (not in" "1 skips are not in"
ctest --test-dir "$work/project" -R unit >"$work/ctest.log"
expect 1 '' "1 skipped" "unit A.B: no server"
echo "every skip is told"

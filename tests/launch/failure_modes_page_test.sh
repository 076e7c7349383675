#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every test that docs/explanation/failure-modes.md names exists, and every test named after a
# failure mode is on the page.
#   failure_modes_page_test.sh SOURCE_FOLDER
set -euo pipefail
cd "$1"
page=docs/explanation/failure-modes.md
failed=0
complain() { printf 'FAILED: %s\n' "$*" >&2; failed=1; }
mapfile -t tests < <(grep -ho '`[A-Z][A-Za-z]*\.[A-Z][A-Za-z0-9_]*`' "$page" | tr -d '\140' | sort -u)
[ "${#tests[@]}" -ge 50 ] || complain "only ${#tests[@]} tests were found on the page"
for name in "${tests[@]}"; do
  grep -rqzE "TEST(_F|_P)?\(${name%%.*},[[:space:]]+${name#*.}\)" --include=*_test.cpp convoy tests || complain "no test $name"
done
mapfile -t scenarios < <(grep -ho '`hosts: [a-z0-9_]*`' "$page" | tr -d '\140' | sort -u)
for name in "${scenarios[@]}"; do
  grep -q "^def ${name#hosts: }()" tests/hosts/hosts_test.py || complain "no scenario $name"
done
mapfile -t named < <(grep -rhoE 'TEST(_F|_P)?\([A-Za-z]+, L[0-9]+_?[A-Za-z0-9]+\)' --include=*_test.cpp convoy tests |
  sed -E 's/.*\(([A-Za-z]+), ([A-Za-z0-9_]+)\)/\1.\2/' | sort -u)
for name in "${named[@]}"; do
  grep -qF "\`$name\`" "$page" || complain "$name is not on the page"
done
for number in $(seq 1 20); do grep -q "^| L$number |" "$page" || complain "L$number is not on the page"; done
exit "$failed"

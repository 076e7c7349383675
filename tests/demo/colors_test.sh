#!/usr/bin/env bash
# The output of scripts into a file or a pipe has no escape codes. On a terminal the demo's headings
# are bold unless NO_COLOR is set.
#   colors_test.sh SOURCE_FOLDER
set -euo pipefail
source=$1
. "$source/tests/files/frame.sh"

# Runs the demo with a program that does nothing.
mkdir -p "$work/tools" "$work/build/bin"
cp "$source/tools/demo.sh" "$source/tools/smollm2.sh" "$work/tools"
printf '#!/bin/sh\n[ "$1" != generate ] || cat >/dev/null\n' >"$work/build/bin/convoy"
chmod +x "$work/build/bin/convoy"

escape=$(printf '\033')
"$work/tools/demo.sh" sums "$work/run" >"$work/out" 2>&1
grep -q '^5. The loss curve$' "$work/out" || fail "the demo's headings are plain lines: $(cat "$work/out")"
! grep -q "$escape" "$work/out" || fail "escape codes in a file: $(cat -v "$work/out")"

on_terminal() { script -qec "$*" /dev/null </dev/null; }
if command -v script >/dev/null; then
  on_terminal env -u NO_COLOR "$work/tools/demo.sh" sums "$work/run" >"$work/out"
  grep -q "$escape\\[1m" "$work/out" || fail "headings are bold on a terminal: $(cat -v "$work/out")"
  on_terminal env NO_COLOR=1 "$work/tools/demo.sh" sums "$work/run" >"$work/out"
  ! grep -q "$escape" "$work/out" || fail "NO_COLOR is not honoured: $(cat -v "$work/out")"
fi

# Only the script that first tests for a terminal has escape codes.
cd "$source"
found=$(grep -rlE '\\033\[|\\x1b\[|\\e\[' run tools bench examples .ci cmake rust/*/src 2>/dev/null || true)
[ "$found" = tools/demo.sh ] || fail "escape codes in: $found"
say "ok"

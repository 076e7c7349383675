#!/usr/bin/env bash
# Formatting of every C++ source. `tools/lint.sh --fix` rewrites them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t sources < <(git ls-files '*.cpp' '*.h' | grep -v '^tests/golden/')
if [ "${1:-}" = --fix ]; then
  clang-format-14 -i "${sources[@]}"
else
  clang-format-14 --dry-run --Werror "${sources[@]}"
fi

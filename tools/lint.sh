#!/usr/bin/env bash
# Formatting of every C++ source but the loop units, whose order of inclusion matters, and the words
# of comments and texts (tools/words_lint.py). `--fix` formats; words are fixed by hand.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t sources < <(git ls-files '*.cpp' '*.h' | grep -vE '^(tests/golden/|rust/|convoy/model/kernels/simd/simd_)')
if [ "${1:-}" = --fix ]; then
  clang-format-14 -i "${sources[@]}"
else
  clang-format-14 --dry-run --Werror "${sources[@]}"
fi
tools/words_lint.py

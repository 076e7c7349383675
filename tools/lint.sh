#!/usr/bin/env bash
# Checks the format of every C++ source (except loop files, whose order of inclusion matters), the
# format and faults of Python and of the page's JavaScript and CSS, and the words of comments and
# texts (tools/words_lint.py). `--fix` formats, and mends the faults that the tools can mend.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/setup.sh
setup_formatters
ruff=$(ls .deps/site/ruff-"$ruff_version".data/scripts/ruff)
biome=.deps/biome-$biome_version
chmod +x "$ruff"
mapfile -t sources < <(git ls-files '*.cpp' '*.h' | grep -vE '^(tests/golden/|rust/|convoy/model/kernels/simd/simd_)')
mapfile -t scripts < <(git ls-files '*.py')
if [ "${1:-}" = --fix ]; then
  clang-format-14 -i "${sources[@]}"
  "$ruff" format --quiet "${scripts[@]}"
  "$ruff" check --quiet --fix --unsafe-fixes "${scripts[@]}"
  "$ruff" format --quiet "${scripts[@]}"
  "$biome" check --write --unsafe
else
  clang-format-14 --dry-run --Werror "${sources[@]}"
  "$ruff" check --quiet "${scripts[@]}"
  "$ruff" format --quiet --check "${scripts[@]}"
  "$biome" check
fi
tools/words_lint.py

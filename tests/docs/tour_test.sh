#!/usr/bin/env bash
# Every file and function that docs/tour.md names exists.
#   tour_test.sh SOURCE_FOLDER
set -euo pipefail
cd "$1"
failed=0
complain() { printf 'FAILED: %s\n' "$*" >&2; failed=1; }
mapfile -t names < <(grep -v '^#' docs/tour.md | grep -oE '`(class )?[^` ]*`' | tr -d '\140' | sort -u)
[ "${#names[@]}" -ge 30 ] || complain "only ${#names[@]} names were found"
for name in "${names[@]}"; do
  case $name in
    */*.cpp | */*.h | *.inl | *.cpp | models/* | data/plugin | rust/text)
      [ -e "convoy/$name" ] || [ -e "$name" ] || find convoy -name "${name##*/}" | grep -q . || complain "no file $name" ;;
    class\ *) grep -rqE "\b$name\b" convoy --include=*.cpp --include=*.h || complain "no $name" ;;
    *::*)
      last=${name%%(*}; last=${last%%<*}
      grep -rqF "$last" convoy --include=*.cpp --include=*.h || complain "grep does not find $name" ;;
    *\(\) | run_* | load_* | encode_* | dispatch | train_command | packed_attention)
      last=${name##*::}; last=${last%%(*}; last=${last%%<*}
      grep -rqE "\b$last\b" convoy --include=*.cpp --include=*.h || complain "no function $name" ;;
  esac
done
exit "$failed"

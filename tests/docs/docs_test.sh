#!/usr/bin/env bash
# Runs every ```sh block of the documentation, file by file, each file in a folder of its own that
# has examples/. Environment variables limit training to four steps, as a user may do. The data sets
# have few sums, so that evaluations and automatic batches are small. Nothing else is changed, and
# no block is left out.
#   docs_test.sh SOURCE_FOLDER PROGRAM_FOLDER [FILE.md ...]
set -euo pipefail
source=$1 programs=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH=$programs:$PATH OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
export TRAIN_STEPS=4 TRAIN_EVAL_STEPS=4 TRAIN_SAVE_STEPS=1 TRAIN_TARGET_TOKENS_PER_DEVICE_STEP=500

cd "$source"
source tests/files/packages.sh
command -v curl >/dev/null || install_packages curl "the client of the page about serving"
[ $# -gt 0 ] || mapfile -t documents < <(find README.md CONTRIBUTING.md docs examples -name '*.md' | sort)
[ $# -eq 0 ] || documents=("$@")
failed=0 blocks=0
for document in "${documents[@]}"; do
  script=$(awk '/^```sh$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$document")
  [ -n "$script" ] || continue
  count=$(grep -c '^```sh$' "$document")
  folder=$work/${document//\//_}
  mkdir "$folder"
  cp -r examples "$folder"
  sed -i '41,$d' "$folder/examples/sums/test.jsonl"
  sed -i '201,$d' "$folder/examples/sums/train.jsonl"
  started=$(date +%s)
  # The rounds of `task: rejection` evaluate by answers, and refuse the key train.eval_steps.
  unread=TRAIN_EVAL_STEPS
  [[ $script == *rejection* ]] || unread=NONE
  if (cd "$folder" && unset "$unread" && bash -euo pipefail -xc "$script") >"$folder.log" 2>&1 </dev/null; then
    printf 'ok      %s: %d blocks, %d s\n' "$document" "$count" $(($(date +%s) - started))
    blocks=$((blocks + count))
  else
    printf 'FAILED  %s: the command above the error does not do what the page says\n' "$document"
    tail -n 30 "$folder.log"
    failed=1
  fi
done
[ $# -gt 0 ] || [ "$blocks" -ge 10 ] || { echo "FAILED  only $blocks blocks were found"; failed=1; }
exit "$failed"

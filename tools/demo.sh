#!/usr/bin/env bash
# The demo: a real small model that has never seen its chat template learns to answer in chat, with
# LoRA on two ranks.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
convoy=build/bin/convoy
run=${1:-runs/demo-$(date +%Y%m%d-%H%M%S)}

bold='' plain=''
[ ! -t 1 ] || [ -n "${NO_COLOR:-}" ] || { bold=$'\033[1m' plain=$'\033[0m'; }
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
answers() {  # share of right answers on the 500 test questions, through the chat template
  "$convoy" eval --model examples/tally-3m "$@" --data examples/sums/test.jsonl --generate --greedy --max-new-tokens 120 \
    --batch-size 64 --json | tail -n 1 | sed -n 's/.*"numeric_match":\([0-9.]*\).*/\1/p' | awk '{printf "%.1f %%", 100 * $1}'
}

step "1. Right answers before: the model can add, but cannot chat"
printf 'right: %s\n' "$(answers)"

step "2. LoRA on two ranks, two epochs of 1,000 sums"
started=$(date +%s)
"$convoy" train examples/sums/lora.yaml --ranks 2 --run-dir "$run"
printf 'trained in %d s\n' $(($(date +%s) - started))

step "3. Right answers after"
printf 'right: %s\n' "$(answers --adapter "$run/adapter")"

step "4. Ask it"
question="Hana has 9 balloons. Tia has 3 times as many balloons as Hana. How many balloons do they have together?"
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

#!/usr/bin/env bash
# Tries Convoy on this machine's GPUs, unpacked from the archive (checks/gpu_check.sh) or in a built
# checkout. No network, no compiler.
#   gpu_check.sh [--part NAME]... [--devices cuda|cpu] [--output FOLDER]
#                [--geometry NAME]... [--seq N] [--steps N]
#                [--peak-tflops N] [--peer-python PYTHON] [--predictions FILE]
# Parts (all of them unless named):
#   launcher  every GPU is found and gets a rank
#   ops       each op against its reference, by Convoy's own kernels and by LibTorch's
#   parity    training and scores against results of transformers and PEFT
#   ranks     two ranks train as one does (two GPUs are needed)
#   har       activity recognition trains as on the CPU; two replicas in threads (dp)
#             as two ranks (ddp; two GPUs are needed)
#   rewards   learning from rewards draws and trains; how far the log-probabilities of engine and
#             trainer are apart
#   sweep     the sweeps' kernels give the bits of the CPU
#   predict   the predictions of `convoy bench predict` beside what it measures on this GPU; more
#             than a fifth apart fails
#   bench     speed at the geometries of Qwen2.5-0.5B, 1.5B and 7B beside transformers and PEFT
# Writes a log for each part, bench.jsonl and table.txt into FOLDER (gpu-check). Ends with 1 if a
# part failed. Without a Python that has torch, transformers and peft the benchmarks run without a
# peer. --peak-tflops: the GPU's peak in dense bf16, to print the share of it that is reached. It is
# known for A100, H100, H200, L4, L40S and RTX 4090. --predictions FILE: part predict compares the
# lines of this file (a name, a tab, the JSON of `bench predict`) and runs nothing.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
usage() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }
wrong() {
  printf 'gpu_check: %s\n' "$1" >&2
  usage >&2
  exit 2
}
parts=() geometries=() devices=cuda output=gpu-check python=${CONVOY_PEER_PYTHON:-python3} seq=4096 steps=5 peak= predictions=
while [ $# -gt 0 ]; do
  [ "$1" != --help ] && [ "$1" != -h ] || { usage; exit 0; }
  [ $# -gt 1 ] || wrong "$1 wants a value"
  case "$1" in
    --part) parts+=("$2") ;;
    --geometry) geometries+=("$2") ;;
    --devices) devices=$2 ;;
    --output) output=$2 ;;
    --peer-python) python=$2 ;;
    --peak-tflops) peak=$2 ;;
    --predictions) predictions=$2 ;;
    --seq) seq=$2 ;;
    --steps) steps=$2 ;;
    *) wrong "there is no $1" ;;
  esac
  shift 2
done
[ "$devices" = cuda ] || [ "$devices" = cpu ] || wrong "--devices is cuda or cpu, not $devices"
[ ${#parts[@]} -gt 0 ] || parts=(launcher ops parity ranks har rewards sweep predict bench)
[ ${#geometries[@]} -gt 0 ] || geometries=(qwen05b qwen15b qwen7b)

if [ -d "$here/bin" ]; then  # the archive
  tests=$here/bin sources=$here programs=$(cd "$here/../bin" && pwd)
else
  sources=$(cd "$here/.." && pwd) tests=$(cd "$here/../build/bin" && pwd)
  programs=$tests
fi
export CONVOY_SOURCE_DIR=$sources CONVOY_BIN_DIR=$programs
convoy=$programs/convoy
# The tests load the LibTorch that `convoy` finds.
torch=$("$convoy" --version | sed -n 's/^LibTorch .* (\(.*\))$/\1/p')
export LD_LIBRARY_PATH=$torch/lib:$programs/../lib/convoy${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
mkdir -p "$output"
output=$(cd "$output" && pwd)
failed=0

say() { printf '%s\n' "$*"; }
failure() {  # part, why
  say "$1: FAILED: $2"
  failed=1
}
# judged NAME LOG COMMAND...: runs the command and records whether it failed.
judged() {
  local name=$1 log=$2
  shift 2
  if "$@" >"$log" 2>&1; then
    say "$name: $(grep -c '^\[       OK \]' "$log") tests passed"
  else
    failure "$name" "see $log"
    grep -m 1 -E '^convoy: |what\(\): |^.*Failure$' "$log" || true
    grep '^\[  FAILED  \]' "$log" | sort -u | head -n 20 || tail -n 5 "$log"
  fi
}

# Prints the number of GPUs; with --devices cpu, 2, so that two ranks can run.
gpus() { if [ "$devices" = cpu ]; then echo 2; else nvidia-smi -L 2>/dev/null | grep -c '^GPU' || true; fi; }

check_launcher() {
  local wanted=gpu log=$output/launcher.log ranks
  [ "$devices" = cuda ] || wanted=2
  if ! "$convoy" launch --ranks "$wanted" --no-python sh -c 'echo "started $RANK on ${CUDA_VISIBLE_DEVICES:-all}"' >"$log" 2>&1; then
    failure launcher "$(grep -m 1 '^convoy: ' "$log")"
    return
  fi
  ranks=$(grep -c 'started' "$log")
  if [ "$ranks" -ne "$(gpus)" ]; then
    failure launcher "$ranks ranks on $(gpus) GPUs that nvidia-smi shows, see $log"
  else
    say "launcher: a rank on each of $ranks devices"
  fi
}

check_ops() {
  local ops=$devices
  [ "$devices" != cpu ] || ops=
  judged ops "$output/ops.log" env CONVOY_TEST_OPS="$ops" timeout 600 "$tests/kernels_tests"
  [ "$devices" = cuda ] || return 0
  judged "ops by LibTorch's kernels" "$output/ops-aten.log" \
    env CONVOY_TEST_OPS="$ops" CONVOY_CUDA_KERNELS=aten timeout 600 "$tests/kernels_tests"
}

check_parity() {
  judged parity "$output/parity.log" env CONVOY_TEST_DEVICES="$devices" timeout 600 "$tests/parity_tests" --gtest_filter='*Family.*'
}

# trained_loss NAME ARGUMENTS...: the loss of the last evaluation of `convoy train ARGUMENTS` in the
# run folder NAME.
trained_loss() {
  local run=$output/$1 log=$output/$1.log
  shift
  rm -rf "$run"
  (cd "$sources" && timeout 300 "$convoy" train "$@" --run-dir "$run" train.save_strategy=no) >"$log" 2>&1 || return 1
  sed -n 's/.*"eval_loss":\([0-9.]*\).*/\1/p' "$run/events.jsonl" | tail -n 1
}

near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(d < 1e-3 && d > -1e-3) }'; }

# first_error NAME...: prints the first error in the logs of these runs.
first_error() { (cd "$output" && grep -h -m 1 '^convoy: ' "${@/%/.log}") || echo "see $output/$1.log"; }

# Runs a few steps of the demo on the given ranks, and prints the loss.
loss_of_ranks() {
  trained_loss "ranks-$1" examples/sums/lora.yaml --devices "$devices" --ranks "$1" train.steps=8 train.batch_size=$((8 / $1))
}

check_ranks() {
  if [ "$(gpus)" -lt 2 ]; then
    say "ranks: left out, there is one GPU"
    return
  fi
  local one two
  if ! one=$(loss_of_ranks 1) || ! two=$(loss_of_ranks 2) || [ -z "$one" ]; then
    failure ranks "$(first_error ranks-1 ranks-2)"
  elif near "$one" "$two"; then
    say "ranks: two reach the loss $two, one $one"
  else
    failure ranks "two reach the loss $two, one $one"
  fi
}

# har_loss NAME FLAGS...: prints the loss after a few steps in fp32, so that devices can be
# compared.
har_loss() {
  local name=$1
  shift
  trained_loss "har-$name" examples/har/har.yaml "$@" --no-amp train.steps=8
}

check_har() {
  local alone cpu ddp dp
  if ! alone=$(har_loss alone --devices "$devices" --ranks 1) || ! cpu=$(har_loss cpu --devices cpu --ranks 1) || [ -z "$alone" ]; then
    failure har "$(first_error har-alone har-cpu)"
    return
  fi
  if ! near "$alone" "$cpu"; then
    failure har "the loss is $alone, on the CPU $cpu"
  elif [ "$(gpus)" -lt 2 ]; then
    say "har: the loss is $alone, on the CPU $cpu; ddp and dp left out, there is one GPU"
  elif ! ddp=$(har_loss ddp --devices "$devices" --multi-gpu ddp --ranks 2) ||
    ! dp=$(har_loss dp --devices "$devices" --multi-gpu dp parallel.replicas=2) || [ -z "$dp" ]; then
    failure har "$(first_error har-ddp har-dp)"
  elif near "$ddp" "$dp"; then
    say "har: the loss is $alone, on the CPU $cpu; of two by ddp $ddp, by dp $dp"
  else
    failure har "the loss of two by ddp is $ddp, by dp $dp"
  fi
}

# Computes two small sweeps on the given devices and prints their tables.
sweep_on() {
  local store=$output/sweep-$1.db log=$output/sweep-$1.log workload flags
  rm -f "$store" "$log"
  for workload in ssm mf; do
    flags="--student-dims 30 60 --eps-train 0.001 --gnc-num-samples 5000000"
    [ "$workload" = ssm ] || flags="--widths 5 10 40 --gnc-eps-train 0.02 --no-gd --gnc-num-samples 2000000"
    # shellcheck disable=SC2086
    timeout 600 "$convoy" sweep "$workload" --num-seeds 2 $flags --devices "$1" \
      --store "$store" --results-dir "$output" >>"$log" 2>&1 && "$convoy" sweep export --store "$store" --format wide || return 1
  done
}

# figure NAME: the last value of a figure of the steps of the run `rewards`.
figure() { sed -n "s|.*\"$1\":\([-0-9.e]*\).*|\1|p" "$output/rewards/events.jsonl" | tail -n 1; }

# Engine and trainer are one program over one copy of the weights. On CPUs their log-probabilities
# are equal to the bit; on GPUs the kernels differ, and importance weights correct for it.
check_rewards() {
  rm -rf "$output/rewards"
  if ! (cd "$sources" && timeout 300 "$convoy" train examples/sums/grpo.yaml --devices "$devices" --ranks 1 --run-dir "$output/rewards" \
    train.steps=3 train.eval_strategy=no train.save_strategy=no) >"$output/rewards.log" 2>&1; then
    failure rewards "$(first_error rewards)"
    return
  fi
  say "rewards: engine and trainer are $(figure kl_engine_trainer) apart (k3), log-probabilities differ by $(figure logprob_difference), importance weights are $(figure sampling/importance_sampling_ratio/mean)"
}

check_sweep() {
  if ! sweep_on "$devices" >"$output/sweep-$devices.csv" || ! sweep_on cpu >"$output/sweep-of-cpu.csv"; then
    failure sweep "$(grep -h -m 1 '^convoy: ' "$output/sweep-$devices.log" "$output/sweep-cpu.log")"
  elif ! cmp "$output/sweep-$devices.csv" "$output/sweep-of-cpu.csv" >"$output/sweep.log"; then
    failure sweep "other results than the CPU's: $(cat "$output/sweep.log")"
  else
    say "sweep: the results of the CPU, to the bit"
  fi
}

# config_of GEOMETRY: prints its config.json.
config_of() {
  local hidden ffn layers heads kv_heads vocab tied
  case "$1" in
    qwen05b) read -r hidden ffn layers heads kv_heads vocab tied <<<"896 4864 24 14 2 151936 true" ;;
    qwen15b) read -r hidden ffn layers heads kv_heads vocab tied <<<"1536 8960 28 12 2 151936 true" ;;
    qwen7b) read -r hidden ffn layers heads kv_heads vocab tied <<<"3584 18944 28 28 4 152064 false" ;;
    *) return 1 ;;
  esac
  printf '{"model_type": "qwen2", "hidden_size": %s, "intermediate_size": %s, "num_hidden_layers": %s, "num_attention_heads": %s,
 "num_key_value_heads": %s, "vocab_size": %s, "tie_word_embeddings": %s, "max_position_embeddings": 32768, "rms_norm_eps": 1e-6,
 "hidden_act": "silu"}\n' "$hidden" "$ffn" "$layers" "$heads" "$kv_heads" "$vocab" "$tied"
}

# Prints the name of this GPU for `bench predict --device`.
predicted_gpu() {
  case "$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)" in
    *H200*) echo h200 ;;
    *H100*PCIe*) echo h100-pcie ;;
    *H100*) echo h100 ;;
    *A100*) echo a100 ;;
    *L40S*) echo l40s ;;
    *4090*) echo rtx4090 ;;
  esac
}

# prediction NAME FLAGS...: adds a line to the file `predictions`.
prediction() {
  local name=$1 line
  shift
  if line=$(timeout 300 "$convoy" bench predict "$@" --json 2>"$output/predict.err"); then
    printf '%s\t%s\n' "$name" "$line" >>"$predictions"
  else
    failure predict "$name: $(tail -n 1 "$output/predict.err")"
  fi
}

predict_steps() {
  local gpu geometry rows config
  gpu=$(predicted_gpu)
  if [ "$devices" = cpu ] || [ -z "$gpu" ]; then
    say "predict: left out, the speeds of this device are not known"
    return 1
  fi
  predictions=$output/predictions.tsv
  : >"$predictions"
  for geometry in "${geometries[@]}"; do
    config=$output/$geometry.json
    if ! config_of "$geometry" >"$config"; then
      say "predict: $geometry left out, its sizes are not known here"
      continue
    fi
    for rows in 1 16 64 200; do
      prediction "$geometry decode $rows" --device "$gpu" --config "$config" --decode --rows "$rows" --context 1024
    done
    prediction "$geometry decode 16 drawn" --device "$gpu" --config "$config" --decode --rows 16 --context 1024 --temperature 0.7 --top-p 0.9
    prediction "$geometry decode 16 int8 KV" --device "$gpu" --config "$config" --decode --rows 16 --context 1024 --kv-dtype int8
    prediction "$geometry decode 16 int8" --device "$gpu" --config "$config" --decode --rows 16 --context 1024 --weights int8
    prediction "$geometry decode 16 int4" --device "$gpu" --config "$config" --decode --rows 16 --context 1024 --weights int4
    prediction "$geometry prefill 2048" --device "$gpu" --config "$config" --prefill --tokens 2048
    prediction "$geometry train lora" --device "$gpu" --config "$config" --train --mode lora --tokens 4096
    # A full training of 7B is left out, because its tensors take 138 GB.
    [ "$geometry" = qwen7b ] || prediction "$geometry train full" --device "$gpu" --config "$config" --train --mode full --tokens 4096
  done
}

# Prints the table of `predictions`: predicted and measured ms and their ratio, for each step and
# for its ops that are predicted to take a tenth of the GPU's time or more. Ratios outside 0.8 to
# 1.2 are marked. Ends with 1 if a ratio is marked, with 2 if there is nothing to compare.
compare_predictions() {
  awk -F '\t' '
    function number(json, key,    at) {
      if (!match(json, "\"" key "\": *[-+0-9.eE]+")) return -1
      at = substr(json, RSTART, RLENGTH)
      sub(/^[^:]*: */, "", at)
      return at + 0
    }
    function compare(name, predicted, measured,    ratio, is_apart) {
      ratio = measured / predicted
      is_apart = ratio < 0.8 || ratio > 1.2
      apart = apart || is_apart
      compared++
      printf "%-34s %12.3f %12.3f %7.2f%s\n", name, predicted, measured, ratio, is_apart ? "  <- more than a fifth apart" : ""
    }
    BEGIN { printf "%-34s %12s %12s %7s\n", "step, op", "predicted ms", "measured ms", "ratio" }
    {
      if (number($2, "predicted_ms") <= 0 || number($2, "measured_ms") <= 0) {
        printf "%-34s was not measured\n", $1
        missing = 1
        next
      }
      compare($1, number($2, "predicted_ms"), number($2, "measured_ms"))
      count = split($2, ops, /{"op": */)
      for (i = 2; i <= count; i++) {
        name = ops[i]
        sub(/^"/, "", name)
        sub(/".*/, "", name)
        sub(/}.*/, "", ops[i])
        if (number(ops[i], "share") >= 0.1 && number(ops[i], "measured_device_ms") >= 0)
          compare("  " name, number(ops[i], "device_ms"), number(ops[i], "measured_device_ms"))
      }
    }
    END { exit missing || !compared ? 2 : apart ? 1 : 0 }' "$1"
}

check_predict() {
  [ -n "$predictions" ] || predict_steps || return 0
  local code=0
  compare_predictions "$predictions" | tee "$output/predict.txt" || code=$?
  case $code in
    0) say "predict: $(wc -l <"$predictions") steps and their ops are within a fifth of their predictions" ;;
    1) failure predict "marked times are more than a fifth apart from their predictions" ;;
    *) failure predict "a step was not measured" ;;
  esac
}

peak_tflops() {
  [ -z "$peak" ] || { echo "$peak"; return; }
  case "$(nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1)" in
    *H200* | *H100*SXM* | *H100*HBM3*) echo 989.4 ;;
    *H100*) echo 756 ;;
    *A100*) echo 312 ;;
    *L40S*) echo 362 ;;
    *L4*) echo 121 ;;
    *4090*) echo 165.2 ;;
  esac
}

# Prints "41.2 % of 989.4 TFLOP/s": tokens/s x FLOPs per token (docs/reference/job-figures.md).
share_of_peak() {
  local speed flops most
  most=$(peak_tflops)
  speed=$(grep -oE '"tokens_per_s":[0-9.e+]+' <<<"$1" | head -n 1 | cut -d: -f2)
  flops=$(grep -oE '"flops_per_token":[0-9.e+]+' <<<"$1" | head -n 1 | cut -d: -f2)
  [ -z "$most" ] || [ -z "$flops" ] || awk -v s="$speed" -v f="$flops" -v p="$most" 'BEGIN { printf "%.1f %% of %s TFLOP/s", 100 * s * f / (p * 1e12), p }'
}

# Runs one benchmark with Convoy and its peer, and adds a line to bench.jsonl and to the table.
bench() {
  local geometry=$1 kind=$2 kernels=${CONVOY_CUDA_KERNELS:+ $CONVOY_CUDA_KERNELS}
  shift 2
  local peer=(--peer-python "$python") line
  "$python" -c 'import torch, transformers, peft' 2>/dev/null || peer=(--no-peer)
  if line=$(timeout 300 "$convoy" bench "$kind" --devices "$devices" --geometry "$geometry" --dtype bf16 "${peer[@]}" --json "$@" 2>"$output/bench.err"); then
    printf '%s\n' "$line" >>"$output/bench.jsonl"
    say "$geometry$kernels $kind $*: $(grep -oE '"(batch|sampling|tokens_per_s|tokens_per_s_ratio|ratio|peak_device_mb)":("[a-z_]*"|[0-9.e+]+)' <<<"$line" |
      tr -d '"' | tr '\n' ' ')$(share_of_peak "$line")" | tee -a "$output/table.txt"
  else
    say "$geometry$kernels $kind $*: FAILED: $(tail -n 1 "$output/bench.err")" | tee -a "$output/table.txt"
    failed=1
  fi
}

check_bench() {
  : >"$output/bench.jsonl"
  : >"$output/table.txt"
  for geometry in "${geometries[@]}"; do
    bench "$geometry" train --mode lora --seq "$seq" --batch 1 --steps "$steps"
    bench "$geometry" train --mode full --seq "$seq" --batch 1 --steps "$steps"
    # The same benchmark with LibTorch's kernels in place of Convoy's.
    [ "$devices" != cuda ] || CONVOY_CUDA_KERNELS=aten bench "$geometry" train --mode lora --seq "$seq" --batch 1 --steps "$steps"
    bench "$geometry" generate --batches 1,32 --repeats 1
  done
}

"$convoy" --version
for part in "${parts[@]}"; do
  case "$part" in
    launcher | ops | parity | ranks | har | rewards | sweep | predict | bench) "check_$part" ;;
    *) wrong "there is no part $part" ;;
  esac
done
exit "$failed"

#!/usr/bin/env bash
# Runs every target of SFT-Play's Makefile, as its users type them, through
# examples/sft-play/Makefile: the small model, a few sums, two steps. tensorboard and nvidia-smi are
# replaced by programs that record how they were called.
#   targets_test.sh SOURCE_FOLDER PROGRAM_FOLDER
set -euo pipefail
source=$1 programs=$2
work=$(mktemp -d)
finish() {
  make -C "$work/play" --no-print-directory tb-stop >/dev/null 2>&1 || true
  rm -rf "$work"
}
trap finish EXIT
cp -r "$source/examples/sft-play" "$work/play"
mkdir "$work/bin"
export PATH=$work/bin:$programs:$PATH CALLS=$work/calls OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
export MODEL_LOCAL_DIR=$source/examples/tally-3m MODEL_MAX_SEQ_LEN=256
export TRAIN_STEPS=2 TRAIN_EVAL_STEPS=2 TRAIN_SAVE_STEPS=2 TRAIN_GRADIENT_CHECKPOINTING=false
export TRAIN_BATCH_SIZE=4 TRAIN_GRAD_ACCUM=1 HF_HOME=$work/hf
head -n 60 "$source/examples/sums/test.jsonl" >"$work/sums.jsonl"
cd "$work/play"

cat >"$work/bin/tensorboard" <<'STAND_IN'
#!/bin/sh
echo "tensorboard $*" >>"$CALLS"
trap 'echo "tensorboard ended" >>"$CALLS"; exit 0' TERM
[ -n "${ONCE-}" ] || while :; do sleep 0.1; done
STAND_IN
printf '#!/bin/sh\necho "nvidia-smi $*" | tee -a "$CALLS"\n' >"$work/bin/nvidia-smi"
chmod +x "$work/bin/"*

done_targets=()
fail() { printf 'FAILED  %s\n' "$*"; tail -n 30 "$work/log"; exit 1; }

# target NAME WANTED WORDS...: checks that make NAME WORDS succeeds and prints WANTED.
target() {
  local name=$1 wanted=$2
  shift 2
  make --no-print-directory "$name" "$@" >"$work/log" 2>&1 </dev/null || fail "make $name $*: exit code $?"
  [ -z "$wanted" ] || grep -qE -- "$wanted" "$work/log" || fail "make $name $*: does not say $wanted"
  done_targets+=("$name")
}

# watched NAME WORDS...: checks a target that starts TensorBoard beside the run. TensorBoard keeps
# running until make tb-stop.
watched() {
  : >"$CALLS"
  target "$1" 'TensorBoard of the runs in .*/outputs: http://localhost:16006/; `kill [0-9]+` ends it' TB_PORT=16006 "${@:2}"
  grep -q -- '--logdir .*/outputs --port 16006' "$CALLS" || fail "make $1 did not start TensorBoard: $(cat "$CALLS")"
  ! grep -q 'tensorboard ended' "$CALLS" || fail "make $1 ended TensorBoard"
  target tb-stop 'TensorBoard \(process [0-9]+, port 16006\) has ended'
  for _ in $(seq 100); do ! grep -q 'tensorboard ended' "$CALLS" || return 0; sleep 0.1; done
  fail "make tb-stop ended no TensorBoard"
}

refused() {
  ! make --no-print-directory "$@" >"$work/log" 2>&1 </dev/null || fail "make $* succeeds"
}

fresh() { rm -rf outputs; }

target help 'train-deepspeed'
target install 'convoy 0'
target setup-dirs ''
target setup-accelerate 'Nothing to set up'
[ "$(grep -cE '^[0-9]+ +[0-9]+ .* cpu ' "$work/log")" = 1 ] || fail "setup-accelerate plans other ranks than train-distributed starts"
target setup-accelerate 'make train-distributed starts here' NUM_GPUS=2
[ "$(grep -cE '^[0-9]+ +[0-9]+ .* cpu ' "$work/log")" = 2 ] || fail "setup-accelerate does not plan NUM_GPUS=2"
target setup-accelerate 'node 1 of 2, which meet at host-a:29501' NUM_GPUS=2 NNODES=2 NODE_RANK=1 MASTER_ADDR=host-a MASTER_PORT=29501
grep -qE '^3 +1 ' "$work/log" || fail "setup-accelerate does not number the ranks of node 1"
target setup-accelerate 'NODE_RANK=1 is not read without NNODES=N' NODE_RANK=1
# The file that accelerate config writes, with bf16 as in SFT-Play's guide.
mkdir -p "$HF_HOME/accelerate"
printf '%s\n' 'compute_environment: LOCAL_MACHINE' 'distributed_type: MULTI_GPU' 'machine_rank: 1' 'main_process_ip: host-b' \
  'main_process_port: 29502' 'mixed_precision: bf16' 'num_machines: 2' 'num_processes: 4' >"$HF_HOME/accelerate/default_config.yaml"
target setup-accelerate 'node 1 of 2, which meet at host-b:29502'
grep -q 'nproc-per-node 2: .*/hf/accelerate/default_config.yaml:8' "$work/log" || fail "accelerate's number of ranks is not read"
target setup-accelerate 'node 0 of 3, which meet at host-b:29502' NNODES=3 NODE_RANK=0
rm -r "$HF_HOME/accelerate"
mkfifo "$work/hub_ends"
python3 "$source/tests/sft_play/hub_of_one_model.py" "$source" "$MODEL_LOCAL_DIR" <"$work/hub_ends" >"$work/hub_url" &
exec 3>"$work/hub_ends"
for _ in $(seq 300); do [ -s "$work/hub_url" ] || sleep 0.1; done
HF_ENDPOINT=$(cat "$work/hub_url") NO_PROXY='*' target download-model 'Saved to: models/org-tiny' MODEL=org/tiny
exec 3>&-
[ -s models/org-tiny/model.safetensors ] || fail "download-model fetched no weights"
# refused_saying PATTERN WORDS...: checks that make WORDS fails with a message that matches PATTERN.
refused_saying() {
  refused "${@:2}"
  grep -qE -- "$1" "$work/log" || fail "make ${*:2} does not say $1"
}

refused_saying "Run 'make process' first" style
refused_saying 'data/raw is empty. Put raw rows there' process
for name in process check train train-distributed eval eval-test infer merge memory-check; do
  refused_saying 'there is no configuration configs/none.yaml. Say CONFIG=PATH; configs holds: .*run_bnb.yaml' $name CONFIG=configs/none.yaml
done
for name in check train train-bnb train-unsloth train-and-watch train-deepspeed train-distributed-tb; do
  refused_saying "data/processed/train.jsonl not found. Run 'make process' first, or set data.train_path" $name
done
refused_saying "data/processed/val.jsonl not found" eval-quick
refused_saying "data/processed/test.jsonl not found" eval-test
refused_saying 'no DeepSpeed configuration none.json' train-deepspeed DEEPSPEED_CONFIG=none.json
refused_saying "no adapter in outputs/run-bnb/adapter. Run 'make train' first" merge
refused_saying 'there is no program no-convoy' train CONVOY=no-convoy
printf 'train: {batchsize: 1}\n' >wrong.yaml
refused_saying 'wrong.yaml cannot be used' train CONFIG=wrong.yaml
grep -q 'did you mean `train.batch_size`' "$work/log" || fail "the key is not named"
target process '' RAW="$work/sums.jsonl" CONFIG=configs/multi_gpu_config.yaml
[ -s data/processed/train.jsonl ] && [ -s data/processed/val.jsonl ] || fail "process wrote no splits"
target style '' STYLE='Answer with a number.'
grep -q 'Answer with a number.' data/processed_with_style/train.jsonl || fail "style is not in its rows"
target render ''
grep -q '<|im_start|>' data/rendered/train.jsonl || fail "render did not render"
target full-pipeline '' RAW="$work/sums.jsonl"
target check 'ok'
MODEL_LOCAL_DIR='' refused_saying 'no model in models/Qwen-Qwen2.5-1.5B-Instruct. Say make download-model' train-unsloth
target gpu-info 'Number of GPUs'
target memory-check 'memory of a rank'

target train 'adapter written to .*outputs/run-bnb/adapter'
grep -q ',host,.*[0-9]$' outputs/run-bnb/devices.csv || fail "the run did not watch its host"
fresh
target train-bnb 'adapter written to .*outputs/run-bnb/adapter'
if convoy train configs/run_bnb.yaml tuning.backend=unsloth TRAIN_STEPS=3 >"$work/log" 2>&1 </dev/null; then
  fail "a run goes on under another backend"
fi
grep -q 'tuning.backend: the checkpoint has `bnb`, this run `unsloth`' "$work/log" || fail "the backend is not named"
convoy train configs/run_bnb.yaml tuning.backend=unsloth TRAIN_STEPS=3 --force-stamp tuning.backend >"$work/log" 2>&1 \
  </dev/null || fail "--force-stamp does not let the backend differ"
target train-unsloth 'adapter written to .*outputs/run-unsloth/adapter'
fresh
# SFT-Play's own batch size: the largest number of rows that fits, by measurement.
target train 'adapter written to .*outputs/run-bnb/adapter' TRAIN_BATCH_SIZE=auto TRAIN_GRAD_ACCUM=auto
grep -q '^  mode: qlora' outputs/run-bnb/config.yaml || fail "the run is not SFT-Play's"
fresh
target train-distributed 'x 2 ranks' CONFIG=configs/run_distributed.yaml NUM_GPUS=2
grep -q 'eval_loss decides which checkpoint is best' "$work/log" || fail "the fall back to the loss is not said"
[ "$(grep -c 'eval_loss decides' "$work/log")" = 1 ] || fail "the fall back to the loss is said more than once"
fresh
# A configuration without a data section trains on the rows of make process.
target train-distributed 'x 2 ranks' CONFIG=configs/multi_gpu_config.yaml NUM_GPUS=2 TRAIN_OUTPUT_DIR=outputs/multi TRAIN_PREDICT_WITH_GENERATE=false
grep -q '^  val_path: data/processed/val.jsonl' outputs/multi/config.yaml || fail "the rows of make process were not taken"
target eval-test 'exact_match' CONFIG=configs/multi_gpu_config.yaml TRAIN_OUTPUT_DIR=outputs/multi EVAL_FLAGS="--max-new-tokens 4 --limit 2"
fresh
target train-distributed '1 row per rank x 1 rank x 3 accumulation' NUM_GPUS=1 TRAIN_BATCH_SIZE=1 TRAIN_GRAD_ACCUM=3
fresh
target train-deepspeed 'x 2 ranks' NUM_GPUS=2
grep -q '^  strategy: zero2' outputs/run-bnb/config.yaml || fail "train-deepspeed is not ZeRO 2"
fresh
target train-deepspeed '' NUM_GPUS=2 DEEPSPEED_CONFIG=configs/deepspeed_custom.json
grep -q '^  strategy: zero3' outputs/run-bnb/config.yaml || fail "DEEPSPEED_CONFIG= was not read"

fresh
watched train-and-watch
fresh
target train-with-tb 'make tensorboard'
fresh
watched train-bnb-tb
watched train-unsloth-tb
fresh
watched train-distributed-tb NUM_GPUS=2
fresh
watched train-deepspeed-tb NUM_GPUS=2
: >"$CALLS"
ONCE=1 target tensorboard 'localhost:6007' TB_PORT=6007
grep -q 'tensorboard --logdir outputs --port 6007' "$CALLS" || fail "make tensorboard: $(cat "$CALLS")"
ONCE=1 target tb 'localhost:6006'
target tb-open 'outputs'
target tb-stop 'No TensorBoard of a watched run is there'
[ -d outputs/run-bnb/tb ] || fail "a run wrote no events"
target tb-clean ''
[ ! -d outputs/run-bnb/tb ] || fail "tb-clean left events"

# Like the demo of the guide. The training here has too few steps for the sums, so the answers are
# cut short and wrong.
short='--max-new-tokens 4'
for name in eval eval-val eval-test eval-quick eval-full; do
  target "$name" 'exact_match' EVAL_FLAGS="$short $([ $name = eval-quick ] || echo --limit 2)" LIMIT_QUICK=2
  [ -s outputs/metrics.json ] && [ -s outputs/samples.jsonl ] || fail "make $name wrote no metrics"
  rm outputs/metrics.json outputs/samples.jsonl
done
printf 'What is 2 + 3?\nSay "one\\two".\n' >demo_inputs.txt
target infer-batch 'preds.jsonl' INFER_FLAGS="$short"
[ "$(wc -l <outputs/preds.jsonl)" = 2 ] || fail "infer-batch answered $(wc -l <outputs/preds.jsonl) of 2"
target infer '' INFER_FLAGS="$short"
target infer-interactive '' INFER_FLAGS="$short"
refused merge-test
target merge ''
target merge-bf16 ''
target merge-test '' INFER_FLAGS=--greedy
[ -s outputs/merged_bf16/config.json ] || fail "merge-bf16 wrote no model"

printf '{"text": "Two and three are five."}\n%.0s' $(seq 20) >data/processed/cpt.jsonl
cp data/processed/val.jsonl data/processed/anchor_instr.jsonl
target dapt-train 'adapter written to .*outputs/run-dapt/adapter'
target clean ''
[ -z "$(ls outputs)" ] || fail "clean left outputs"

all=$(sed -n 's/^\.PHONY: //p' Makefile | tr ' ' '\n' | sort)
ran=$(printf '%s\n' "${done_targets[@]}" | sort -u)
[ "$all" = "$ran" ] || fail "not run: $(comm -23 <(echo "$all") <(echo "$ran") | tr '\n' ' ')"
printf 'ok      %d targets\n' "$(wc -l <<<"$all")"

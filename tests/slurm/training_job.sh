# Runs the demo's fine-tuning as a job of two nodes, which is preempted in the middle. It must end
# with the same weights as an undisturbed run. To be sourced by slurm_test.sh.

training_steps=24

has_trained() { grep -qs '"step":6[,}]' "$1"/events.jsonl; }

training_job() {
  cp -r "$source/examples" .
  local settings=(examples/sums/lora.yaml "train.steps=$training_steps" train.batch_size=4 train.save_steps=100
    train.logging_steps=2 train.eval_steps=100)
  export OMP_NUM_THREADS=1
  local travels=(--env OMP_NUM_THREADS)
  [ -z "${CONVOY_TORCH:-}" ] || travels+=(--env CONVOY_TORCH)
  convoy train "${settings[@]}" --nproc 2 --output-dir undisturbed --quiet >undisturbed.log 2>&1 ||
    fail "convoy train --nproc 2: $(tail -n 5 undisturbed.log)"
  job=$(submit --name training "${travels[@]}" -- convoy train "${settings[@]}" --output-dir trained)
  wait_until 60 has_trained trained || fail "job $job does not train: $(tail -n 5 logs/"$job"*.log)"
  sbatch --quiet --partition=high --nodes=2 --output=/dev/null --wrap='sleep 1' || fail "sbatch of the other job"
  wait_state "$job" COMPLETED 120
  [ "$(field "$job" Restarts)" = 1 ] || fail "job $job was restarted $(field "$job" Restarts) times"
  ls trained/checkpoints | grep -q . || fail "nothing was saved when job $job was preempted"
  cmp trained/adapter/adapter_model.safetensors undisturbed/adapter/adapter_model.safetensors ||
    fail "the preempted run ended with other weights than the undisturbed one"
  say "convoy train: preempted, saved, requeued, and ended with the undisturbed run's weights"
}

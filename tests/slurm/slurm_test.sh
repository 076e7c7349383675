#!/usr/bin/env bash
# Tests `convoy submit --engine slurm --go` with a real SLURM that runs for this test alone. A job
# of two nodes is preempted, reaches its time limit and is cancelled. Each time it continues from
# the state that it saved.
#   slurm_test.sh SOURCE_FOLDER PROGRAM_FOLDER
# Exit 77: skipped, with the reason.
set -uo pipefail
source=$1 programs=$2
here=$source/tests/slurm
source "$source/tests/files/packages.sh"
source "$here/private_slurm.sh"
require_root
require_programs "slurmctld slurmd slurm-client munge procps" slurmctld slurmd sbatch munged pgrep

source "$source/tests/files/frame.sh"
end_started() { stop_slurm; }
show_logs() { tail -n 40 "$work"/slurm/*.log "$work"/jobs/logs/* 2>/dev/null; }

start_slurm "$work/slurm" || fail "SLURM did not start here: $(tail -n 3 "$work"/slurm/*.out)"
say "SLURM $(slurmd -V | cut -d' ' -f2) is up: $(sinfo -h -o '%D nodes %N')"
mkdir "$work/jobs"
cd "$work/jobs" || exit 1
export PATH=$programs:$PATH

field() { scontrol -o show job "$1" 2>/dev/null | tr ' ' '\n' | sed -n "s/^$2=//p"; }
state_is() { [ "$(field "$1" JobState)" = "$2" ]; }
wait_state() {  # JOB STATE SECONDS
  wait_until "$3" state_is "$1" "$2" || fail "job $1 is $(field "$1" JobState) and not $2 after $3 s"
}
trace_has() { [ "$(cat "$1"/rank-*.trace 2>/dev/null | wc -l)" -ge "$2" ]; }
said() { grep -qs "$2" logs/"$1"*.log; }

# Checks that every rank did every step exactly once, over all starts of the job.
check_trace() {  # FOLDER STEPS
  local rank
  for rank in 0 1; do
    cmp -s <(cut -d' ' -f1 "$1/rank-$rank.trace") <(seq "$2") ||
      fail "rank $rank did not do each of $2 steps once: $(cut -d' ' -f1 "$1/rank-$rank.trace" | tr '\n' ' ')"
  done
}

submit() { # FLAGS... -- COMMAND...
  convoy submit --engine slurm --nodes 2 --nproc-per-node 1 --go "$@" || fail "convoy submit $*"
}

preempted_job() {
  mkdir preempted
  job=$(ALLOWED=yes HIDDEN=no submit --name preempted --env ALLOWED --env "GREETING=it's \"me\"" -- \
    convoy launch "$here/saving_rank.sh" "$work/jobs/preempted" 60)
  wait_until 30 trace_has preempted 8 || fail "job $job does no step"
  local tasks
  tasks=$(pgrep -f "saving_rank.sh $work/jobs/preempted" | head -n 1)
  tr '\0' '\n' <"/proc/$tasks/environ" >environment
  grep -qx "ALLOWED=yes" environment || fail "an allowed variable did not travel"
  grep -qx "GREETING=it's \"me\"" environment || fail "a given variable did not travel"
  ! grep -q "^HIDDEN=" environment || fail "a variable travelled that was not allowed"
  local secret
  secret=$(cat "logs/$job.token") || fail "there is no token in the log folder"
  [ "$(stat -c %a "logs/$job.token")" = 600 ] || fail "others can read the token"
  ! grep -qs -- "$secret" /proc/[0-9]*/cmdline logs/*.log || fail "the token stands in a command line or log"
  ! scontrol write batch_script "$job" - | grep -q -- "$secret" || fail "the token stands in the script"
  sbatch --quiet --partition=high --nodes=2 --output=/dev/null --wrap='sleep 2' || fail "sbatch of the other job"
  wait_until 20 said "$job" "rank 1: saved step" || fail "rank 1 did not save when job $job was preempted"
  wait_until 20 said "$job" "rank 0: saved step" || fail "rank 0 did not save when job $job was preempted"
  ! said "$job" "hosts the rendezvous has ended" || fail "a launcher left before the other had saved"
  wait_state "$job" COMPLETED 60
  [ "$(field "$job" Restarts)" = 1 ] || fail "job $job was restarted $(field "$job" Restarts) times"
  check_trace preempted 60
  [ ! -e "logs/$job.token" ] || fail "the token is still there"
  say "preempted: saved, requeued by SLURM, finished"
}

# With a GraceTime SLURM signals only the step and leaves the batch shell running, so the job
# requeues itself.
graced_job() {
  mkdir graced
  job=$(submit --name graced --partition graced -- convoy launch "$here/saving_rank.sh" "$work/jobs/graced" 40)
  wait_until 30 trace_has graced 8 || fail "job $job does no step"
  sbatch --quiet --partition=high --nodes=2 --output=/dev/null --wrap='sleep 2' || fail "sbatch of the other job"
  wait_until 20 said "$job" "state saved; requeued, start 2 follows" || fail "job $job did not requeue itself"
  wait_state "$job" COMPLETED 60
  [ "$(field "$job" Restarts)" = 1 ] || fail "job $job was restarted $(field "$job" Restarts) times"
  check_trace graced 40
  say "preempted with a grace time: saved, requeued itself, finished"
}

overdue_job() {
  mkdir overdue
  # SLURM may signal up to a minute early, here within the first 20 s of the two minutes.
  job=$(submit --name overdue --time 2 --signal-before 100 --max-requeues 1 -- \
    convoy launch "$here/saving_rank.sh" "$work/jobs/overdue" 3000)
  wait_until 60 said "$job" "state saved; requeued, start 2 follows" || fail "job $job did not requeue itself"
  wait_until 60 said "$job" "not requeued: that was start 2" || fail "job $job was requeued more often than allowed"
  wait_state "$job" FAILED 20
  [ "$(field "$job" ExitCode)" = 75:0 ] || fail "job $job ended with $(field "$job" ExitCode)"
  local step
  for step in 0 1; do
    [ "$(tail -n 1 "overdue/rank-$step.trace" | cut -d' ' -f1)" = "$(cat "overdue/rank-$step.steps")" ] ||
      fail "rank $step saved another step than its last"
  done
  [ "$(cut -d' ' -f2 overdue/rank-0.trace | sort -u | tr '\n' ' ')" = "0 1 " ] || fail "not two starts"
  say "time limit: warned ahead, saved, requeued itself once, then ended with 75"
}

cancelled_job() {
  mkdir cancelled
  job=$(submit --name cancelled -- convoy launch "$here/saving_rank.sh" "$work/jobs/cancelled" 3000)
  wait_until 30 trace_has cancelled 4 || fail "job $job does no step"
  scancel "$job"
  wait_until 20 said "$job" "rank 1: saved step" || fail "rank 1 did not save when job $job was cancelled"
  wait_state "$job" CANCELLED 20
  wait_until 30 no_jobs || fail "a cancelled job came back: $(squeue -h)"
  say "cancelled: saved and not brought back"
}

failed_job() {
  job=$(submit --name failed -- convoy launch -- bash -c 'exit 16')
  wait_state "$job" FAILED 30
  [ "$(field "$job" ExitCode)" = 16:0 ] || fail "job $job ended with $(field "$job" ExitCode)"
  [ "$(field "$job" Restarts)" = 0 ] || fail "exit 16 was requeued"
  say "exit 16: reported and not requeued"
}

# A job submits another job, and they request memory in two ways that srun refuses to combine.
nested_job() {
  sbatch --quiet --mem-per-cpu=150 --ntasks=1 --threads-per-core=1 --output=outer.log --export=ALL --wrap \
    "srun convoy submit --engine slurm --nodes 2 --ranks 1 --mem 300M --time 5 --name nested --go -- \
      convoy launch -- sh -c 'echo rank \$RANK of \$WORLD_SIZE'" || fail "sbatch of the outer job"
  wait_until 60 grep -qs '^[0-9]' outer.log || fail "the outer job submitted nothing: $(cat outer.log)"
  job=$(grep -m 1 '^[0-9]' outer.log)
  wait_state "$job" COMPLETED 60
  local rank
  for rank in 0 1; do
    said "$job" "rank $rank of 2" || fail "rank $rank did not run: $(cat logs/"$job"*.log)"
  done
  say "submitted within a job: ran with its own memory"
}

ranks_as_tasks() {
  cat >adopted.sh <<'END'
#!/bin/bash
echo "rank $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE task $SLURM_PROCID $MASTER_ADDR:$MASTER_PORT"
END
  chmod +x adopted.sh
  job=$(submit --name adopted --task-per-rank -- convoy launch "$PWD/adopted.sh")
  wait_state "$job" COMPLETED 30
  local rank
  for rank in 0 1; do
    [ "$(cat logs/"$job"*.log | grep -c "rank $rank/2 local 0/1 task $rank 127.0.0.1:$((15000 + job % 10000))")" = 1 ] ||
      fail "rank $rank was not adopted once: $(cat logs/"$job"*.log)"
  done
  say "one task per rank: adopted, none started twice"
}

for part in preempted_job graced_job cancelled_job failed_job ranks_as_tasks nested_job overdue_job; do "$part"; done
if [ -x "$programs/convoy-worker" ]; then
  source "$here/training_job.sh"
  training_job
else
  say "skipped: convoy train under SLURM, there is no convoy-worker beside convoy"
fi

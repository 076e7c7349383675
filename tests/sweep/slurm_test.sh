#!/usr/bin/env bash
# A sweep as a SLURM array with one PostgreSQL store. A real slurmctld, slurmd and server run for
# this test alone. The tasks do not communicate, one task is cancelled, and the results equal the
# results of one host.
#   slurm_test.sh SOURCE_FOLDER PROGRAM_FOLDER
# Exit 77: skipped, with the reason.
set -uo pipefail
source=$1 programs=$2
source "$source/tests/files/packages.sh"
source "$source/tests/slurm/private_slurm.sh"
source "$source/tests/jobs/private_postgres.sh"
require_root
require_programs "slurmctld slurmd slurm-client munge procps" slurmctld slurmd sbatch munged pgrep
start_private_postgres

source "$source/tests/files/frame.sh"
end_started() {
  stop_slurm
  stop_private_postgres
}
show_logs() { tail -n 20 "$work"/jobs/*.log; }

start_slurm "$work/slurm" || fail "SLURM did not start here: $(tail -n 3 "$work"/slurm/*.out)"
mkdir "$work/jobs"
cd "$work/jobs" || exit 1
export PATH=$programs:$PATH

# A sweep whose guesses take some seconds on one core.
sweep=(convoy sweep ssm --num-seeds 2 --student-dims 30 60 --eps-train 0.001 --gnc-num-samples 15000000 --gd
  --gd-epochs 200 --lease 4 --workers 1)
results() {
  convoy sweep export --format wide --store "$1" || fail "no results in $1"
}
"${sweep[@]}" --store one.db >one.log 2>&1 || fail "one host could not do it"
results one.db >one.csv

job=$(sbatch --parsable --array=0-2 --output='task-%a.log' --wrap="exec ${sweep[*]} --store '$POSTGRES_URL' --results-dir task-\$SLURM_ARRAY_TASK_ID") ||
  fail "sbatch"
begun() { grep -qs guess task-*.log; }
wait_until 60 begun || fail "no task of the array began"
sleep 1
scancel --signal=KILL "${job}_0"
no_tasks() { [ -z "$(squeue -h -j "$job" 2>/dev/null)" ]; }
wait_until 120 no_tasks || fail "the array did not end"
results "$POSTGRES_URL" >many.csv
cmp one.csv many.csv || fail "the array has other results"
[ "$(grep -ls '^8 cells: 7 values, 1 censored' task-[12].log | wc -l)" = 2 ] || fail "not every task saw the end"
printf 'passed: %s\n' "$(grep -hs 'values' task-*.log | tail -n 1)"

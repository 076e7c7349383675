#!/bin/bash
# One rank of a job that saves: counts steps in a file of its own, and when it is told to stop,
# finishes the step, saves and leaves with 75. The second of two requests to stop from the same
# sender would be a hurry that this rank does not know.
#   saving_rank.sh FOLDER STEPS
folder=$1 steps=$2
state=$folder/rank-$RANK.steps
stop=0
trap 'stop=1' USR1 TERM
done_before=$(cat "$state" 2>/dev/null || echo 0)
echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME, restart ${SLURM_RESTART_COUNT:-0}: from step $done_before"
for ((step = done_before + 1; step <= steps; ++step)); do
  sleep 0.1 &
  wait $! 2>/dev/null  # a foreground child would be waited for before the trap runs
  echo "$step ${SLURM_RESTART_COUNT:-0}" >>"$folder/rank-$RANK.trace"
  if [ "$stop" = 1 ]; then
    trap '' USR1 TERM        # SLURM signals every process of the step, so mv too would be ended by what comes again
    sleep "0.$((RANK * 5))"  # ranks save at different speed
    echo "$step" >"$state.part" && mv "$state.part" "$state"
    echo "rank $RANK: saved step $step"
    exit 75
  fi
done
echo "rank $RANK: finished $steps steps"

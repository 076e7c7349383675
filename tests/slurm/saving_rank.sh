#!/bin/bash
# One rank of a job that saves. It counts steps in a file of its own. When a signal requests a stop,
# it finishes the step, saves and ends with 75. Unlike Convoy's ranks it does not end at once after
# a second request from the same sender.
#   saving_rank.sh FOLDER STEPS
folder=$1 steps=$2
state=$folder/rank-$RANK.steps
stop=0
trap 'stop=1' USR1 TERM
done_before=$(cat "$state" 2>/dev/null || echo 0)
echo "rank $RANK of $WORLD_SIZE on $SLURMD_NODENAME, restart ${SLURM_RESTART_COUNT:-0}: from step $done_before"
for ((step = done_before + 1; step <= steps; ++step)); do
  sleep 0.1 &
  wait $! 2>/dev/null  # the trap runs during `wait`, but not before a foreground child has ended
  echo "$step ${SLURM_RESTART_COUNT:-0}" >>"$folder/rank-$RANK.trace"
  if [ "$stop" = 1 ]; then
    trap '' USR1 TERM        # SLURM signals every process of the step: a second signal would end mv
    sleep "0.$((RANK * 5))"  # ranks save at different speed
    echo "$step" >"$state.part" && mv "$state.part" "$state"
    echo "rank $RANK: saved step $step"
    exit 75
  fi
done
echo "rank $RANK: finished $steps steps"

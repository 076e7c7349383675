#!/usr/bin/env bash
# Starts PROGRAM as two ranks of one job: examples/library/run.sh PROGRAM [ARGUMENTS...]
# The ranks meet through a file; MASTER_ADDR and MASTER_PORT, as torchrun sets them, do as well.
set -u
meeting=$(mktemp -d)
trap 'rm -rf "$meeting"' EXIT
export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 CONVOY_STORE_FILE=$meeting/store
RANK=1 LOCAL_RANK=1 "$@" &
second=$!
RANK=0 LOCAL_RANK=0 "$@"
first_code=$?
[ "$first_code" -eq 0 ] || kill "$second" 2>/dev/null
wait "$second"
second_code=$?
exit $((first_code != 0 ? first_code : second_code))

#!/usr/bin/env bash
# Tests `convoy submit --engine mpi --go` with a real mpirun. mpirun starts the ranks, or one
# launcher that starts them. A request to stop lets every rank save, and exit codes are passed on.
#   mpi_test.sh SOURCE_FOLDER PROGRAM_FOLDER
# Exit 77: skipped, with the reason.
set -uo pipefail
source=$1 programs=$2
source "$source/tests/files/packages.sh"
require_programs "openmpi-bin" mpirun

source "$source/tests/files/frame.sh"
job=
# After a second request the job's script ends mpirun, and mpirun ends its tasks.
end_started() { [ -z "$job" ] || { kill -TERM "$job"; sleep 0.2; kill -TERM "$job"; wait "$job"; } 2>/dev/null; }

cd "$work" || exit 1
export PATH=$programs:$PATH
# Containers run as root, and two ranks may share one CPU.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

cat >probe.sh <<'E2'
#!/bin/bash
echo "rank $RANK/$WORLD_SIZE local $LOCAL_RANK/$LOCAL_WORLD_SIZE greeting <$GREETING> <$1>" >>seen
[ "$MASTER_PORT" -gt 0 ] && [ -n "$MASTER_ADDR" ] || exit 3
exit "${2:-0}"
E2
cat >saving.sh <<'E2'
#!/bin/bash
trap 'sleep "1.$((RANK * 5))"; echo "saved $RANK" >>saved; exit 75' USR1 TERM
echo "$RANK $$" >>ready
while :; do sleep 0.1 & wait $!; done
E2
chmod +x probe.sh saving.sh

stopped_job() {  # FLAGS...
  rm -f ready saved
  "${mpi[@]}" "$@" -- convoy launch "$PWD/saving.sh" >out 2>&1 &
  job=$!
  wait_until 20 eval '[ "$(cat ready 2>/dev/null | wc -l)" = 2 ]' || fail "no ranks: $(cat out)"
  kill -TERM "$job"
  wait "$job"
  code=$?
  job=
  [ "$(sort saved | tr '\n' ' ')" = "saved 0 saved 1 " ] || fail "not every rank saved: $(cat saved out)"
  [ "$code" = 75 ] || fail "a stopped job ended with $code: $(cat out)"
  local pid
  for pid in $(cut -d' ' -f2 ready); do
    ! kill -0 "$pid" 2>/dev/null || fail "rank $pid lives on"
  done
}

whole_test() {
  rm -f seen
  "${mpi[@]}" --task-per-rank --nproc-per-node 2 --env "GREETING=it's \$HOME" -- convoy launch "$PWD/probe.sh" "a  b" >out 2>&1 ||
    fail "ranks as tasks: $(cat out)"
  [ "$(sort seen)" = "$(printf "rank %s/2 local %s/2 greeting <it's \$HOME> <a  b>\n" 0 0 1 1)" ] ||
    fail "not each rank once: $(cat seen)"
  say "one task per rank: adopted, none started twice"

  rm seen
  "${mpi[@]}" --nproc-per-node 3 -- convoy launch "$PWD/probe.sh" x >out 2>&1 || fail "one launcher: $(cat out)"
  [ "$(sort seen)" = "$(printf "rank %s/3 local %s/3 greeting <> <x>\n" 0 0 1 1 2 2)" ] || fail "not each rank once: $(cat seen)"
  [ -z "$(ls logs | grep token)" ] || fail "the token is still there"
  say "one task per node: it started its ranks"

  "${mpi[@]}" --task-per-rank --nproc-per-node 2 -- convoy launch "$PWD/probe.sh" x 16 >out 2>&1
  code=$?
  [ "$code" = 16 ] || fail "a rank's exit code 16 arrived as $code: $(cat out)"
  say "exit code: 16 arrived"
  stopped_job --task-per-rank --nproc-per-node 2
  say "told to stop: both tasks saved, 75"
  stopped_job --nproc-per-node 2
  say "told to stop: both ranks of the launcher saved, 75"
}

# Runs the tests with every MPI of the machine; Debian gives each mpirun a name of its own.
mkdir bin
export PATH=$work/bin:$PATH
for kind in mpirun.openmpi mpirun.mpich mpirun; do
  program=$(command -v "$kind") || continue
  [ "$kind" != mpirun ] || [ ! -e bin/mpirun ] || continue
  ln -sf "$program" bin/mpirun
  hash -r
  mpi=(convoy submit --engine mpi --go)
  case $(mpirun --version 2>&1) in *'Open MPI'*) mpi+=(--extra --oversubscribe) ;; esac
  say "$(mpirun --version 2>&1 | head -n 2 | tr -s '\n ' ' ')"
  whole_test
done

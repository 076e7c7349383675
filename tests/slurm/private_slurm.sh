# A real SLURM of this host's packages for one test: munge, a controller and two nodes, all on
# loopback, with configuration, state, sockets and logs in one folder. To be sourced, with
# tests/files/frame.sh; the caller's end_started() calls stop_slurm.
#   start_slurm FOLDER     exports SLURM_CONF; returns when both nodes are idle
#   stop_slurm             ends SLURM, and all jobs that still run

slurm_started=()

# Runs a program that is killed when the script ends, however it ends.
bound_to_script() {
  if command -v setpriv >/dev/null; then exec setpriv --pdeathsig TERM "$@"; else exec "$@"; fi
}

# Prints the first of three neighbouring ports on which nobody listens.
free_ports() {
  local port
  for port in $(shuf -i 20000-29000 -n 50); do
    ss -Hltn "sport >= $port and sport <= $((port + 2))" | grep -q . || { echo "$port"; return; }
  done
  return 1
}

write_slurm_conf() {
  local folder=$1 port=$2 host
  host=$(hostname -s)
  cat >"$folder/slurm.conf" <<END
ClusterName=private
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$port
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# Credentials expire soon, because a requeued job starts again only when its old ones have expired.
AuthInfo=socket=$folder/munge/socket,cred_expire=5
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool-%n
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd-%n.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
# A setting that needs neither cgroups nor systemd.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=1
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
KillWait=20
ReturnToService=2
NodeName=node1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 1)) CPUs=1 RealMemory=1000
NodeName=node2 NodeHostname=$host NodeAddr=127.0.0.1 Port=$((port + 2)) CPUs=1 RealMemory=1000
PartitionName=low Nodes=ALL Default=YES PriorityTier=1 MaxTime=10 State=UP
PartitionName=graced Nodes=ALL PriorityTier=1 GraceTime=20 MaxTime=10 State=UP
PartitionName=high Nodes=ALL PriorityTier=10 MaxTime=10 State=UP
END
}

nodes_are_idle() { [ "$(sinfo -h -p low -t idle -o %D 2>/dev/null)" = 2 ]; }

start_slurm() {
  local folder=$1
  mkdir -p "$folder/munge" "$folder/state" "$folder/spool-node1" "$folder/spool-node2"
  chmod 700 "$folder/munge"
  head -c 128 /dev/urandom >"$folder/munge/key"
  chmod 400 "$folder/munge/key"
  bound_to_script munged --foreground --force --socket="$folder/munge/socket" --key-file="$folder/munge/key" \
    --pid-file="$folder/munge/pid" --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" \
    >"$folder/munge/out" 2>&1 &
  slurm_started+=($!)
  wait_until 10 test -S "$folder/munge/socket" || return 1
  write_slurm_conf "$folder" "$(free_ports)"
  export SLURM_CONF=$folder/slurm.conf
  bound_to_script slurmctld -D >"$folder/slurmctld.out" 2>&1 &
  slurm_started+=($!)
  local node
  for node in node1 node2; do
    bound_to_script slurmd -D -N "$node" >"$folder/$node.out" 2>&1 &
    slurm_started+=($!)
  done
  wait_until 30 nodes_are_idle
}

no_jobs() { [ -z "$(squeue -h 2>/dev/null)" ]; }

stop_slurm() {
  local pid
  [ ${#slurm_started[@]} -gt 0 ] || return 0
  if [ -n "${SLURM_CONF:-}" ] && scontrol ping >/dev/null 2>&1; then
    scancel --quiet --user="$(id -un)" 2>/dev/null
    wait_until 30 no_jobs || squeue
  fi
  # The last one started is ended first. munge is ended last, because the other programs request
  # credentials from it while they end.
  for ((at = ${#slurm_started[@]} - 1; at >= 0; --at)); do
    pid=${slurm_started[at]}
    kill -TERM "$pid" 2>/dev/null
    wait_until 10 process_is_gone "$pid" || kill -KILL "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  slurm_started=()
}

process_is_gone() { ! kill -0 "$1" 2>/dev/null || [ "$(ps -o stat= -p "$1" | cut -c1)" = Z ]; }

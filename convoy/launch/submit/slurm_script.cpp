// SPDX-License-Identifier: Apache-2.0
//
// The script follows the way in which SLURM treats a batch job (22.05, measured;
// convoy/launch/supervisor/NOTES.md):
// - `--signal=B:` signals the batch shell alone, and bash runs a trap only while it waits for a
//   background child.
// - A cancelled, preempted or overdue job: SLURM sends TERM to the steps and to the batch shell.
//   The shell survives it, so that it can wait for the save. It then must not requeue: that would
//   restart a cancelled job.
// - With --kill-on-bad-exit srun ends the others when the first task leaves, with 75 too, so it
//   would cut the save of slower nodes. Launchers of Convoy end each other.
// - srun takes neither the job's --cpus-per-task nor, after `sbatch --export`, the environment
//   unless flags pass them.
#include <fmt/format.h>

#include <filesystem>

#include "convoy/launch/submit/bash_text.h"
#include "convoy/launch/submit/job_text.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::launch {
namespace {

class DirectiveList {
 public:
  void add(std::string_view name, const std::string& value) {
    if (!value.empty()) text_ += fmt::format("#SBATCH --{}={}\n", name, value);
  }
  void add_count(std::string_view name, int64_t value) {
    if (value > 0) add(name, std::to_string(value));
  }
  void add_line(std::string_view line) {
    const std::string_view prefix = "#SBATCH ";
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
    text_ += fmt::format("#SBATCH {}\n", line);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string directives(const SubmitSettings& settings) {
  DirectiveList list;
  list.add("job-name", settings.name.empty() ? "convoy" : settings.name);
  list.add_count("nodes", settings.nodes);
  list.add("ntasks-per-node", settings.task_per_rank ? settings.nproc_per_node : "1");
  list.add_count("gpus-per-node", settings.gpus_per_node);
  list.add_count("cpus-per-task", settings.cpus_per_task);
  list.add("mem", settings.mem);
  list.add("time", settings.time);
  list.add("partition", settings.partition);
  list.add("account", settings.account);
  list.add("qos", settings.qos);
  list.add("output", fmt::format("\"{}/%j.log\"", settings.log_dir));
  list.add("open-mode", "append");
  if (signal_before_seconds(settings) > 0)
    list.add("signal", fmt::format("B:USR1@{}", signal_before_seconds(settings)));
  list.add_line(max_requeues(settings) > 0 ? "--requeue" : "--no-requeue");
  std::string names = "PATH";
  for (const TravellingVariable& variable : travelling_variables(settings))
    if (!variable.has_value && variable.name != "PATH") names += "," + variable.name;
  list.add("export", names);
  for (const std::string& line : settings.extra.names) list.add_line(line);
  return list.text();
}

// The address at which the launchers (or the ranks) meet: one that SLURM itself uses, so no name
// needs to resolve.
std::string slurm_meeting_point(const SubmitSettings& settings) {
  if (settings.nodes == 1 && !settings.task_per_rank) return "";
  const std::string port = settings.port.is_auto() ? "$((15000 + SLURM_JOB_ID % 10000))"
                                                   : std::to_string(*settings.port.value);
  const std::string_view prefix = settings.task_per_rank ? "MASTER" : "PET_MASTER";
  return fmt::format(
      "first_node=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "first_address=$(scontrol -o show node \"$first_node\" | sed -n 's/.* NodeAddr=\\([^ ]*\\) "
      ".*/\\1/p')\n"
      "export {0}_ADDR=${{first_address:-$first_node}} {0}_PORT={1}\n",
      prefix, port);
}

bool is_convoy(const std::vector<std::string>& command) {
  return std::filesystem::path(command[0]).filename() == "convoy";
}

std::string step(const SubmitSettings& settings, const std::vector<std::string>& command) {
  std::string options = "--export=ALL --open-mode=append --output=\"$log_dir/%j-%N.log\"";
  if (settings.cpus_per_task > 0)
    options += fmt::format(" --cpus-per-task={}", settings.cpus_per_task);
  options += is_convoy(command) ? " --kill-on-bad-exit=0 --wait=120" : " --kill-on-bad-exit=1";
  if (settings.task_per_rank) return fmt::format("srun {} \\\n  \"${{command[@]}}\" &", options);
  // The launcher places its ranks and connects them, so SLURM shall not bind it to a core nor play
  // MPI.
  return fmt::format(
      "srun {} --ntasks-per-node=1 --cpu-bind=none --mpi=none \\\n"
      "  bash -c 'PET_NODE_RANK=$SLURM_NODEID exec \"$@\"' node \"${{command[@]}}\" &",
      options);
}

std::string launch_variables(const SubmitSettings& settings) {
  if (settings.task_per_rank) return "";
  return fmt::format("export PET_NNODES={} PET_NPROC_PER_NODE={}\n", settings.nodes,
                     settings.nproc_per_node);
}

constexpr std::string_view kSlurmSecret = R"sh(
# Whoever joins this job proves that it can read this file.
mkdir -p "$log_dir" && log_dir=$(cd "$log_dir" && pwd) || exit 12
export CONVOY_JOB_TOKEN_FILE=$log_dir/$SLURM_JOB_ID.token
rm -f "$CONVOY_JOB_TOKEN_FILE"
(umask 077; set -C; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$CONVOY_JOB_TOKEN_FILE") || exit 12
trap 'rm -f "$CONVOY_JOB_TOKEN_FILE"' EXIT

)sh";

constexpr std::string_view kSignals = R"sh(
step='' warned=0 told=0 slurm_ends_it=0
tell_step() {  # once, however early the warning came
  [ -n "$step" ] && [ "$warned" = 1 ] && [ "$told" = 0 ] || return 0
  told=1
  kill -USR1 "$step"
}
# Ahead of the time limit: the ranks save and leave with 75.
trap 'warned=1; tell_step' USR1
# Cancelled, preempted or over the limit: SLURM tells the step itself; stay until it has saved.
trap 'slurm_ends_it=1' TERM
)sh";

constexpr std::string_view kSlurmEnding = R"sh(
case $code in
  75) reason='stopped on request, state saved' ;;
  13) reason='a peer was lost' ;;
  *) exit "$code" ;;
esac
[ "$slurm_ends_it" = 0 ] || exit "$code"
restarts=${SLURM_RESTART_COUNT:-0}
if [ "$restarts" -ge "$max_requeues" ]; then
  echo "convoy: $reason; not requeued: that was start $((restarts + 1)) and at most $max_requeues may follow the first" >&2
  exit "$code"
fi
echo "convoy: $reason; requeued, start $((restarts + 2)) follows" >&2
scontrol requeue "$SLURM_JOB_ID"
exit "$code"
)sh";

}  // namespace

std::string slurm_script(const SubmitSettings& settings, const std::vector<std::string>& command) {
  std::string text = "#!/bin/bash\n" + directives(settings);
  text += "# Written by `convoy submit`; for sbatch.\nset -u\n";
  text += fmt::format("log_dir={}\nmax_requeues={}\ncommand=({})\n", shell_word(settings.log_dir),
                      max_requeues(settings), shell_words(command));
  text += shell_exports(settings);
  text += kSlurmSecret;
  text += slurm_meeting_point(settings);
  text += launch_variables(settings);
  text += kSignals;
  text += "\n" + step(settings, command) + "\n";
  text += "step=$!\ntell_step\n" + wait_for("step");
  text += kSlurmEnding;
  return text;
}

}  // namespace convoy::launch

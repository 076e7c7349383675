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
// - A job that is submitted within another one inherits its SLURM_* variables, whatever --export
//   says; sbatch replaces only the variables of options that the new job was given. srun takes the
//   rest for its own options, and refuses the step or places it as the other job's.
// - srun takes neither the job's --cpus-per-task nor, after `sbatch --export`, the environment
//   unless flags pass them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <sstream>

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

// Environment variables that srun reads as options, and the name of each option at sbatch. Names,
// lists and counts, which sbatch sets for every job, are not included.
struct StepOption {
  std::string_view variables;
  std::string_view option;
  std::string_view letter = {};
};
constexpr std::array kStepOptions = {
    StepOption{"SLURM_CONSTRAINT SLURM_CLUSTER_CONSTRAINT", "constraint", "C"},
    StepOption{"SLURM_CORE_SPEC", "core-spec", "S"},
    StepOption{"SLURM_THREAD_SPEC", "thread-spec"},
    StepOption{"SLURM_CPU_FREQ_REQ", "cpu-freq"},
    StepOption{"SLURM_CPUS_PER_TASK SRUN_CPUS_PER_TASK", "cpus-per-task", "c"},
    StepOption{"SLURM_CPUS_PER_GPU", "cpus-per-gpu"},
    StepOption{"SLURM_DISTRIBUTION SLURM_DIST_PLANESIZE", "distribution", "m"},
    StepOption{"SLURM_EXCLUSIVE SLURM_EXACT SLURM_OVERLAP SLURM_WHOLE", "exclusive"},
    StepOption{"SLURM_GPUS", "gpus", "G"},
    StepOption{"SLURM_GPUS_PER_NODE", "gpus-per-node"},
    StepOption{"SLURM_GPUS_PER_SOCKET", "gpus-per-socket"},
    StepOption{"SLURM_GPUS_PER_TASK", "gpus-per-task"},
    StepOption{"SLURM_GPU_BIND", "gpu-bind"},
    StepOption{"SLURM_GPU_FREQ", "gpu-freq"},
    StepOption{"SLURM_GRES SLURM_STEP_GRES", "gres"},
    StepOption{"SLURM_GRES_FLAGS", "gres-flags"},
    StepOption{"SLURM_HINT", "hint"},
    StepOption{"SLURM_MEM_PER_CPU", "mem-per-cpu"},
    StepOption{"SLURM_MEM_PER_GPU", "mem-per-gpu"},
    StepOption{"SLURM_MEM_PER_NODE", "mem"},
    StepOption{"SLURM_NETWORK", "network"},
    StepOption{"SLURM_NTASKS_PER_CORE", "ntasks-per-core"},
    StepOption{"SLURM_NTASKS_PER_GPU", "ntasks-per-gpu"},
    StepOption{"SLURM_NTASKS_PER_SOCKET", "ntasks-per-socket"},
    StepOption{"SLURM_NTASKS_PER_TRES", "ntasks-per-tres"},
    StepOption{"SLURM_OVERCOMMIT", "overcommit", "O"},
    StepOption{"SLURM_POWER", "power"},
    StepOption{"SLURM_PROFILE", "profile"},
    StepOption{"SLURM_REQ_SWITCH SLURM_WAIT4SWITCH", "switches"},
    StepOption{"SLURM_RESERVATION", "reservation"},
    StepOption{"SLURM_SPREAD_JOB", "spread-job"},
    StepOption{"SLURM_THREADS_PER_CORE", "threads-per-core"},
    StepOption{"SLURM_TRES_BIND", "tres-bind"},
    StepOption{"SLURM_TRES_PER_TASK", "tres-per-task"},
    StepOption{"SLURM_USE_MIN_NODES", "use-min-nodes"},
    StepOption{"SLURM_WCKEY", "wckey"},
    // Variables without an option at sbatch.
    StepOption{"SLURM_ACCTG_FREQ SLURM_BCAST SLURM_COMPRESS SLURM_CPU_BIND SLURM_CPU_BIND_LIST "
               "SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_VERBOSE SLURM_DELAY_BOOT SLURM_DEPENDENCY "
               "SLURM_EPILOG SLURM_HET_SIZE SLURM_IMMEDIATE SLURM_KILL_BAD_EXIT SLURM_LABELIO "
               "SLURM_MEM_BIND SLURM_MEM_BIND_LIST SLURM_MEM_BIND_PREFER SLURM_MEM_BIND_SORT "
               "SLURM_MEM_BIND_TYPE SLURM_MEM_BIND_VERBOSE SLURM_MPI_TYPE SLURM_MULTI_PROG "
               "SLURM_NO_KILL SLURM_PROLOG SLURM_REMOTE_CWD SLURM_RESV_PORTS SLURM_SIGNAL "
               "SLURM_STDERRMODE SLURM_STDINMODE SLURM_STDOUTMODE SLURM_TASK_EPILOG "
               "SLURM_TASK_PROLOG SLURM_TEST_EXEC SLURM_THREADS SLURM_TIMELIMIT "
               "SLURM_UNBUFFEREDIO SLURM_WAIT SLURM_WORKING_DIR SRUN_CONTAINER SRUN_ERROR "
               "SRUN_EXPORT_ENV SRUN_INPUT SRUN_OUTPUT",
               ""},
};

// `line`: what follows "#SBATCH ", such as "--gres=gpu:2" or "-C a100".
bool asks_for(std::string_view line, const StepOption& option) {
  const auto begins_with = [&](const std::string& flag, std::string_view ends) {
    return line.starts_with(flag) &&
           (line.size() == flag.size() || ends.find(line[flag.size()]) != std::string_view::npos);
  };
  if (option.option.empty()) return false;
  if (begins_with(fmt::format("--{}", option.option), "= ")) return true;
  return !option.letter.empty() && line.starts_with(fmt::format("-{}", option.letter));
}

// Shell lines that unset inherited variables of srun. The variable of an option in `directives` is
// kept, since sbatch sets it for this job.
std::string forgotten_options(std::string_view directives) {
  constexpr std::string_view kPrefix = "#SBATCH ";
  constexpr size_t kWidth = 100;
  std::vector<std::string_view> lines;
  for (size_t begin = 0; begin < directives.size();) {
    const size_t end = std::min(directives.find('\n', begin), directives.size());
    lines.push_back(directives.substr(begin, end - begin).substr(kPrefix.size()));
    begin = end + 1;
  }
  std::string text = "# Inherited from a job in which this one was submitted: srun would obey.\n";
  size_t width = kWidth;
  for (const StepOption& option : kStepOptions) {
    if (std::any_of(lines.begin(), lines.end(),
                    [&](std::string_view line) { return asks_for(line, option); }))
      continue;
    std::istringstream names{std::string(option.variables)};
    for (std::string name; names >> name;) {
      const bool begins = width + 1 + name.size() > kWidth;
      if (begins) text += text.ends_with('\n') ? "unset" : "\nunset";
      width = begins ? 5 : width;
      text += " " + name;
      width += 1 + name.size();
    }
  }
  return text + "\n";
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
  // The launcher places its ranks and connects them, so SLURM must neither bind it to a core nor
  // set up MPI.
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
  const std::string asked = directives(settings);
  std::string text = "#!/bin/bash\n" + asked;
  text += "# Written by `convoy submit`; for sbatch.\nset -u\n";
  text += forgotten_options(asked);
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

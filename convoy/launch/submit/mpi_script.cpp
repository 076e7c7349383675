// SPDX-License-Identifier: Apache-2.0
//
// The script follows the way in which mpirun treats its tasks (Open MPI 4.1, MPICH 4, measured;
// convoy/launch/supervisor/NOTES.md):
// - TERM and INT to mpirun kill the tasks after one second, so a request to stop is sent as USR1,
//   which mpirun passes on to the tasks.
// - mpirun ends the others when a task leaves with another code than 0, with 75 too, which would
//   cut a save; with the option that prevents this, Open MPI ends with 0 itself. So a task that
//   saved leaves with 0, and a file holds the reason.
// - Signals reach the process group of a task: its shell and the command in it.
// - No MPI names the host of rank 0 in advance, so the script asks mpirun.
#include <fmt/format.h>

#include "convoy/launch/submit/bash_text.h"
#include "convoy/launch/submit/job_text.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::launch {
namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  for (size_t begin = 0; begin < line.size();) {
    const size_t end = std::min(line.find(' ', begin), line.size());
    if (end > begin) words.push_back(line.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

std::string travelling_names(const SubmitSettings& settings) {
  std::string names = "PATH CONVOY_JOB_TOKEN_FILE";
  names += settings.task_per_rank ? " MASTER_ADDR MASTER_PORT"
                                  : " PET_NNODES PET_NPROC_PER_NODE "
                                    "PET_MASTER_ADDR PET_MASTER_PORT";
  for (const TravellingVariable& variable : travelling_variables(settings))
    if (variable.name != "PATH") names += " " + variable.name;
  return names;
}

std::string settings_text(const SubmitSettings& settings, const std::vector<std::string>& command) {
  std::vector<std::string> extra;
  for (const std::string& line : settings.extra.names)
    for (std::string& word : words_of(line)) extra.push_back(std::move(word));
  return fmt::format(
      "log_dir={}\nhostfile={}\nnodes={}\nper_node={}\nextra=({})\ncommand=({})\n"
      "names=({})\n",
      shell_word(settings.log_dir), shell_word(settings.hostfile), settings.nodes,
      settings.task_per_rank ? settings.nproc_per_node : "1", shell_words(extra),
      shell_words(command), travelling_names(settings));
}

std::string mpi_meeting_point(const SubmitSettings& settings) {
  const std::string port =
      settings.port.is_auto() ? "$((15000 + $$ % 10000))" : std::to_string(*settings.port.value);
  if (settings.task_per_rank) {
    return settings.nodes == 1 ? fmt::format("export MASTER_ADDR=127.0.0.1 MASTER_PORT={}\n", port)
                               : fmt::format(
                                     "MASTER_ADDR=$(first_host) || exit 13\n"
                                     "export MASTER_ADDR MASTER_PORT={}\n",
                                     port);
  }
  std::string text = fmt::format("export PET_NNODES={} PET_NPROC_PER_NODE={}\n", settings.nodes,
                                 settings.nproc_per_node);
  if (settings.nodes > 1)
    text += fmt::format(
        "PET_MASTER_ADDR=$(first_host) || exit 13\n"
        "export PET_MASTER_ADDR PET_MASTER_PORT={}\n",
        port);
  return text;
}

constexpr std::string_view kMpiSecret = R"sh(
# Whoever joins this job proves that it can read this file.
mkdir -p "$log_dir" && log_dir=$(cd "$log_dir" && pwd) || exit 12
export CONVOY_JOB_TOKEN_FILE=$log_dir/mpi-$$.token
stopped=${CONVOY_JOB_TOKEN_FILE%.token}.stopped
rm -f "$CONVOY_JOB_TOKEN_FILE" "$stopped"
(umask 077; set -C; head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$CONVOY_JOB_TOKEN_FILE") || exit 12
trap 'rm -f "$CONVOY_JOB_TOKEN_FILE" "$stopped"' EXIT

)sh";

constexpr std::string_view kWhichMpi = R"sh(where=()
case $(mpirun --version 2>&1) in
  *'Open MPI'*)
    mpi=open
    [ -z "$hostfile" ] || where=(--hostfile "$hostfile")
    where+=(--map-by "ppr:$per_node:node")
    ;;
  *HYDRA* | *'Intel(R) MPI'*)
    mpi=hydra
    [ -z "$hostfile" ] || where=(-f "$hostfile")
    where+=(-ppn "$per_node")
    ;;
  *)
    echo 'convoy: no mpirun of Open MPI, MPICH or Intel MPI was found; load one' >&2
    exit 2
    ;;
esac

# Where launchers or ranks meet.
first_host() { mpirun "${where[@]}" "${extra[@]}" -np 1 hostname; }
)sh";

constexpr std::string_view kTravel = R"sh(
# Nothing else travels to other hosts.
travels=()
for name in "${names[@]}"; do
  [ -n "${!name+set}" ] || continue
  case $mpi in
    open) travels+=(-x "$name") ;;
    hydra) travels=(-genvlist "${travels[1]:+${travels[1]},}$name") ;;
  esac
done
)sh";

// Shell code that every task runs.
constexpr std::string_view kTask = R"sh(
task='
  trap : TERM INT HUP USR1 USR2
  [ -z "${PET_NNODES:-}" ] || export PET_NODE_RANK=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
  "$@"
  code=$?
  [ "$code" != 75 ] || { : >"${CONVOY_JOB_TOKEN_FILE%.token}.stopped" && exit 0; }
  exit "$code"'
)sh";

constexpr std::string_view kStart = R"sh(
tasks='' asked=0 told=0
pass_on() {  # the first request is for saving; also of those that came before there was anybody to tell
  [ -n "$tasks" ] || return 0
  while [ "$told" -lt "$asked" ]; do
    told=$((told + 1))
    if [ "$told" = 1 ]; then kill -USR1 "$tasks"; else kill -TERM "$tasks"; fi
  done
}
trap 'asked=$((asked + 1)); pass_on' TERM INT HUP USR1
set -m  # a process group of its own: Ctrl-C reaches this script alone
mpirun "${where[@]}" "${travels[@]}" "${extra[@]}" -np $((nodes * per_node)) \
  bash -c "$task" task "${command[@]}" </dev/null &
)sh";

constexpr std::string_view kMpiEnding = R"sh([ "$code" != 0 ] || [ ! -e "$stopped" ] || code=75
exit "$code"
)sh";

}  // namespace

std::string mpi_script(const SubmitSettings& settings, const std::vector<std::string>& command) {
  std::string text = "#!/bin/bash\n# Written by `convoy submit`; run it with bash.\nset -u\n";
  text += settings_text(settings, command);
  text += shell_exports(settings);
  text += kMpiSecret;
  text += kWhichMpi;
  text += mpi_meeting_point(settings);
  text += kTravel;
  text += kTask;
  text += kStart;
  text += "tasks=$!\nset +m\npass_on\n" + wait_for("tasks");
  text += kMpiEnding;
  return text;
}

}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
//
// The start of an attempt: what each rank is given.
#include <fmt/format.h>
#include <unistd.h>

#include "convoy/core/base/terminal_size.h"
#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/supervisor/attempt.h"

namespace convoy::launch {
namespace {

// Lets a rank draw on the launcher's terminal, although the rank writes to a pipe.
std::map<std::string, std::string> terminal_environment() {
  std::map<std::string, std::string> environment = {{"CONVOY_PROGRESS", "bar"}};
  if (const int64_t columns = terminal_size(STDERR_FILENO).columns; columns > 0)
    environment["COLUMNS"] = std::to_string(columns);
  return environment;
}

// Fills in torchrun's only macro.
std::vector<std::string> with_local_rank(const std::vector<std::string>& program, int local_rank) {
  constexpr std::string_view kMacro = "${local_rank}";
  std::vector<std::string> filled = program;
  for (size_t word = 1; word < filled.size(); ++word)
    for (size_t at = 0; (at = filled[word].find(kMacro, at)) != std::string::npos;)
      filled[word].replace(at, kMacro.size(), std::to_string(local_rank));
  return filled;
}

}  // namespace

std::map<std::string, std::string> Attempt::environment_of(int local_rank,
                                                           const JobLayout& job) const {
  std::map<std::string, std::string> environment = worker_environment(job, local_rank);
  environment["TORCHELASTIC_ERROR_FILE"] = ranks_.back().error_file;
  environment[telemetry::kFlightVariable] = std::to_string(pages_.descriptor(local_rank));
  if (job.all_ranks_here()) environment["CONVOY_STORE_FILE"] = scratch_.store_file();
  if (timers_) environment["TORCHELASTIC_TIMER_FILE"] = timers_->path();
  environment.merge(library_defaults(process_environment()));
  const size_t equals = mark_.find('=');
  environment[mark_.substr(0, equals)] = mark_.substr(equals + 1);
  if (spec_.logs.console == Console::RankZeroPlain && job.first_rank + local_rank == 0 &&
      ::isatty(STDERR_FILENO))
    environment.merge(terminal_environment());
  for (const auto& [name, value] : spec_.environment) environment[name] = value;
  if (!spec_.ranks.empty())
    for (const auto& [name, value] : spec_.ranks[static_cast<size_t>(local_rank)].environment)
      environment[name] = value;
  return environment;
}

// The error file is beside the logs when they are in torchrun's folders, which exist by now.
// Otherwise it is in the scratch folder.
std::filesystem::path Attempt::error_file_of(int local_rank) const {
  const int attempt = spec_.job.restart_count;
  if (spec_.logs.layout != LogLayout::Torchrun) return scratch_.error_file(attempt, local_rank);
  const std::filesystem::path folder =
      spec_.logs.folder / fmt::format("attempt_{}", attempt) / std::to_string(local_rank);
  if (!std::filesystem::is_directory(folder)) return scratch_.error_file(attempt, local_rank);
  return folder / "error.json";
}

void Attempt::start_ranks() {
  JobLayout job = spec_.job;
  if (job.master_port == 0) {
    port_.emplace();
    job.master_port = port_->number();
  }
  for (int local_rank = 0; local_rank < job.num_local_ranks; ++local_rank) {
    ranks_.emplace_back();
    Rank& rank = ranks_.back();
    rank.running = false;
    rank.error_file = error_file_of(local_rank);
    processes::ChildStart start;
    start.program = with_local_rank(spec_.program, local_rank);
    start.environment = environment_of(local_rank, job);
    start.signals = signals_.mask_for_ranks();
    if (!spec_.ranks.empty()) start.cpus = spec_.ranks[static_cast<size_t>(local_rank)].cpus;
    start.descriptors = descriptor_limit_.before();
    start.inherited = pages_.descriptor(local_rank);
    if (reads_stdin_ && local_rank == 0) start.input = STDIN_FILENO;
    rank.process = processes::start_child(start);
    rank.running = true;
    guard_.watch(rank.process.pid);
    health_.started(local_rank, rank.process.pid);
  }
}

}  // namespace convoy::launch

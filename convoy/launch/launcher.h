// SPDX-License-Identifier: Apache-2.0
//
// Starts the ranks of a program on this host with torchrun's worker environment, stores their
// output, ends all of them when one fails, and says which failed first. Knows nothing of what the
// ranks do. One run() per process at a time: it owns the signals TERM, INT, HUP, QUIT, USR1 and
// USR2 while it runs.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convoy/launch/logs/log_options.h"

namespace convoy::launch {

struct LaunchPlan {
  std::vector<std::string> program;  // argv; the first is looked up in PATH unless it has a '/'
  int num_ranks = 1;
  std::map<std::string, std::string> environment;  // added to this process's own
  std::filesystem::path log_folder;                // rank-00.log ...; empty = no files
  std::string run_id;                              // empty = made up
  Console console = Console::Prefixed;
  bool early_exit_is_failure = true;  // a rank that ends with 0 while others run on: 13
  std::chrono::milliseconds early_exit_wait{10'000};  // ranks do not end in the same instant
  std::chrono::milliseconds stop_grace{60'000};       // between a stop request and KILL: ranks save
  std::chrono::milliseconds failure_grace{
      1'000};  // between the first failure and KILL for the others
};

struct RankEnd {
  int rank = -1;
  int exit_code = 0;  // 128 + n for signal n
  int signal = 0;
  std::string sentence;    // the rank's own error, from its error file; else empty
  std::string json_line;   // the same for scripts; else empty
  std::string last_lines;  // the last lines it wrote
  std::filesystem::path log_file;
  bool after_first_failure = false;  // by then it had been told to end
};

struct LaunchReport {
  int exit_code = 0;            // the root cause's
  int stop_signal = 0;          // the signal that asked the launcher to stop, if any
  std::vector<RankEnd> ends;    // in the order in which ranks ended
  bool killed_by_stop = false;  // a second stop signal, or ranks that needed longer than the grace
  bool ended_early = false;  // the first to end did so in good order, but the others did not follow
  int root_cause = -1;       // index into ends; -1 = no failure
};

// Blocks until every rank and everything it started in its process group is gone. Throws
// ConfigError when the program can not be started, IoError when a log file can not be made.
LaunchReport run_ranks(const LaunchPlan& plan);

// What a person reads after a failure, the first failing rank's own words last. Empty without a
// failure.
std::string failure_text(const LaunchReport& report);

// {"code","kind","rank",...}, the last stderr line of a failed command. Empty without a failure.
std::string failure_json(const LaunchReport& report);

}  // namespace convoy::launch

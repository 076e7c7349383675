// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/root_cause.h"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/milliseconds.h"
#include "convoy/launch/supervisor/health/flight_text.h"

namespace convoy::launch {
namespace {

constexpr int kOwnError = 3;

// Rates how likely this end caused the others; 0 = it is no failure. A rank's own error rates
// higher than the loss of a peer, whichever was seen first: both ends of a broken connection fail
// at once. An end after the first failure, when the rank was asked to end, rates lowest unless the
// rank left an error of its own.
int blame(const RankEnd& end, const LaunchReport& report) {
  if (ended_as_asked(end, report)) return 0;
  if (end.still_ran()) return kOwnError;
  const bool own_error = !end.json_line.empty() && end.exit_code != kPeerLost;
  if (end.after_first_failure) return own_error ? kOwnError : 1;
  return end.exit_code == kPeerLost ? 2 : 4;
}

// Programs that handle the signal often leave with the code that a shell gives for it.
bool ended_by_stop_signal(const RankEnd& end, const LaunchReport& report) {
  return end.exit_code == 128 + SIGTERM ||
         (report.stop_signal != 0 && end.exit_code == 128 + report.stop_signal);
}

int stop_code(const LaunchReport& report) {
  if (report.killed_by_stop) return 128 + report.stop_signal;
  int code = 0;
  for (const RankEnd& end : report.ends) {
    if (ended_by_stop_signal(end, report))
      return report.stop_signal != 0 ? 128 + report.stop_signal : end.exit_code;
    if (end.exit_code == kStopped) code = kStopped;
  }
  return code;
}

std::string way_of_ending(const RankEnd& end) {
  if (end.out_of_memory)
    return "was killed by the kernel because memory ran out (give the job more memory, fewer ranks "
           "or smaller batches)";
  if (end.signal != 0)
    return fmt::format("was killed by signal {} ({})", end.signal, ::strsignal(end.signal));
  return fmt::format("ended with exit code {}", end.exit_code);
}

// A sentence about ranks that were asked to end after the first failure, and went on.
std::string killed_after_grace(const std::vector<int>& ranks, const LaunchReport& report) {
  return fmt::format("{} did not end within {:g} s (--failure-grace); convoy killed {}\n",
                     rank_list(ranks), seconds_of(report.failure_grace),
                     ranks.size() == 1 ? "it" : "them");
}

// Indents lines for a person. Long lines are cut, and characters that would disturb a terminal are
// left out.
std::string indented(const std::string& lines) {
  constexpr size_t kLongestLine = 400;
  std::string text;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    std::erase_if(line, [](char byte) {
      return static_cast<unsigned char>(byte) < 32 && byte != '\t' && byte != '\x1b';
    });
    if (line.size() > kLongestLine) line = line.substr(0, kLongestLine) + "...";
    text += "  | " + line + "\n";
  }
  return text;
}

std::string who_failed(const LaunchReport& report) {
  if (report.root_cause < 0) return "another node";
  return fmt::format("rank {}", report.ends[static_cast<size_t>(report.root_cause)].rank);
}

// Lists each way of ending and its ranks, in the order of report.ends. A silent rank has two ends:
// it is killed afterwards, which is no second failure.
std::string later_ends_text(const LaunchReport& report) {
  std::vector<std::pair<std::string, std::vector<int>>> ways;
  std::vector<int> killed;
  const int cause =
      report.root_cause >= 0 ? report.ends[static_cast<size_t>(report.root_cause)].rank : -1;
  for (const RankEnd& end : report.ends) {
    if (end.rank == cause || end.exit_code == 0) continue;
    if (end.killed_for == KilledFor::FailureGrace) killed.push_back(end.rank);
    // Ranks that were killed after a stop were named when it happened. Ranks that ended because
    // they were asked to need no line.
    if (report.ended_early || end.killed_for != KilledFor::Nothing || end.signal == SIGTERM)
      continue;
    const std::string way = way_of_ending(end);
    const auto known = std::find_if(ways.begin(), ways.end(),
                                    [&way](const auto& one) { return one.first == way; });
    if (known != ways.end())
      known->second.push_back(end.rank);
    else
      ways.push_back({way, {end.rank}});
  }
  std::string text;
  for (auto& [way, ranks] : ways) {
    if (ranks.size() > 1 && way.starts_with("was ")) way.replace(0, 3, "were");
    text += fmt::format("{} {} after {} had failed\n", rank_list(ranks), way, who_failed(report));
  }
  if (!killed.empty()) text += killed_after_grace(killed, report);
  return text;
}

// Leaves out the lines that repeat the error. When the rank is a Convoy program, its own output
// ends with the error for people and for programs, and the report adds both again.
std::string lines_before_error(const RankEnd& cause) {
  if (cause.json_line.empty()) return cause.last_lines;
  constexpr std::string_view kName = "convoy: ";
  std::string text;
  std::istringstream stream(cause.last_lines);
  for (std::string line; std::getline(stream, line);) {
    std::string_view words = line;
    if (words.starts_with(kName)) words.remove_prefix(kName.size());
    const bool is_error = words.starts_with("{\"code\":") ||
                          (!words.empty() && cause.sentence.find(words) != std::string::npos);
    if (!is_error) text += line + "\n";
  }
  return text;
}

std::string last_lines_text(int rank, const std::string& lines) {
  if (lines.empty()) return {};
  return fmt::format("rank {} failed first; its last lines:\n{}", rank, indented(lines));
}

// The traces of the rank that failed first: its last lines, its error file and its log.
std::string cause_text(const LaunchReport& report) {
  const RankEnd& cause = report.ends[static_cast<size_t>(report.root_cause)];
  std::string text;
  const bool alone = report.ends.size() == 1;
  if (!alone || cause.sentence.empty())
    text += last_lines_text(cause.rank, lines_before_error(cause));
  if (!cause.error_file.empty()) text += fmt::format("error file: {}\n", cause.error_file.string());
  if (!cause.log_file.empty()) text += fmt::format("log: {}\n", cause.log_file.string());
  return text;
}

// The root cause in one line.
std::string cause_sentence(const LaunchReport& report) {
  if (report.root_cause < 0) return report.peer_failure->sentence;
  const RankEnd& cause = report.ends[static_cast<size_t>(report.root_cause)];
  // A single rank needs no number before its sentence. Sentences about ranks that still ran contain
  // the number already.
  if (!cause.sentence.empty() && (cause.still_ran() || report.ends.size() == 1))
    return cause.sentence;
  if (!cause.sentence.empty()) return fmt::format("rank {}: {}", cause.rank, cause.sentence);
  if (report.ended_early)
    return fmt::format("rank {} ended with exit code {} while other ranks were still running",
                       cause.rank, cause.exit_code);
  return fmt::format("rank {} {}", cause.rank, way_of_ending(cause));
}

// True when restarts were given up: the exit code says so, the cause is that of the last attempt.
bool made_no_progress(const LaunchReport& report) {
  constexpr auto kNoProgress = static_cast<int>(ExitCode::NoProgress);
  const int cause_code = report.root_cause >= 0
                             ? report.ends[static_cast<size_t>(report.root_cause)].exit_code
                             : report.peer_failure->exit_code;
  return report.exit_code == kNoProgress && cause_code != kNoProgress;
}

std::string last_sentence(const LaunchReport& report) {
  return (made_no_progress(report) ? "no attempt makes progress, the last one ended so: " : "") +
         cause_sentence(report);
}

// The JSON line, with the diagnosis of collectives added.
std::string rendered(nlohmann::ordered_json line, const LaunchReport& report) {
  if (made_no_progress(report)) {
    line["code"] = report.exit_code;
    line["kind"] = "no_progress";
    line["message"] = last_sentence(report);
  }
  if (!report.diagnosis_json.empty())
    line["collective"] = nlohmann::ordered_json::parse(report.diagnosis_json, nullptr, false);
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string peer_json(const LaunchReport& report) {
  nlohmann::ordered_json line;
  line["code"] = report.exit_code;
  line["kind"] = "node";
  for (const char* unknown : {"rank", "step", "file", "hint"}) line[unknown] = nullptr;
  if (report.peer_failure->rank >= 0) line["rank"] = report.peer_failure->rank;
  line["message"] = report.peer_failure->sentence;
  return rendered(std::move(line), report);
}

}  // namespace

bool ended_as_asked(const RankEnd& end, const LaunchReport& report) {
  if (end.exit_code == 0 || end.exit_code == kStopped) return true;
  if (report.resized && end.after_stop) return true;
  return (report.stop_signal != 0 || report.resized) && ended_by_stop_signal(end, report);
}

void conclude(LaunchReport& report) {
  report.root_cause = -1;
  if (report.ended_early) {
    report.root_cause = 0;
    report.exit_code = kPeerLost;
    return;
  }
  int most = 0;
  for (size_t index = 0; index < report.ends.size(); ++index) {
    const RankEnd& end = report.ends[index];
    // The message about killed ranks covers this end.
    if (report.killed_by_stop && end.after_first_failure) continue;
    const int found = blame(end, report);
    if (found <= most) continue;
    most = found;
    report.root_cause = static_cast<int>(index);
  }
  // An earlier failure on another node is the cause, unless a rank here left an error of its own.
  if (report.peer_failure && most < kOwnError) report.root_cause = -1;
  if (report.root_cause >= 0)
    report.exit_code = report.ends[static_cast<size_t>(report.root_cause)].exit_code;
  else
    report.exit_code = report.peer_failure ? report.peer_failure->exit_code : stop_code(report);
}

std::string failure_text(const LaunchReport& report) {
  if (!report.failed()) return {};
  std::string text;
  // For a rank of another node only its last lines are available: its files are on that node.
  text += report.root_cause >= 0
              ? cause_text(report)
              : last_lines_text(report.peer_failure->rank, report.peer_failure->last_lines);
  if (!report.diagnosis.empty()) text += report.diagnosis + "\n";
  text += later_ends_text(report);
  for (const int rank : report.unkillable)
    text += fmt::format("rank {} could not be killed and is left behind\n", rank);
  return text + fmt::format("convoy: {}\n", last_sentence(report));
}

std::string failure_sentence(const LaunchReport& report) {
  return report.failed() ? cause_sentence(report) : std::string();
}

std::string failure_json(const LaunchReport& report) {
  if (!report.failed()) return {};
  if (report.root_cause < 0) return peer_json(report);
  const RankEnd& cause = report.ends[static_cast<size_t>(report.root_cause)];
  if (!report.ended_early && !cause.json_line.empty()) {
    auto line = nlohmann::ordered_json::parse(cause.json_line, nullptr, false);
    if (line.is_object()) {
      line["rank"] = cause.rank;
      return rendered(std::move(line), report);
    }
  }
  nlohmann::ordered_json line;
  line["code"] = report.exit_code;
  line["kind"] = report.ended_early || cause.stuck ? "comm"
                 : cause.silent                    ? "silent"
                 : cause.timed_out                 ? "timer"
                 : cause.device_fault              ? "device"
                 : cause.signal != 0               ? "signal"
                                                   : "rank";
  line["rank"] = cause.rank;
  line["step"] = nullptr;
  for (const telemetry::RankFlight& flight : report.flights)
    if (flight.rank == cause.rank && flight.step >= 0) line["step"] = step_of(flight);
  line["file"] = nullptr;
  line["hint"] = nullptr;
  if (!cause.hint.empty())
    line["hint"] = cause.hint;
  else if (!cause.log_file.empty())
    line["hint"] = fmt::format("read {}", cause.log_file.string());
  line["message"] = cause_sentence(report);
  return rendered(std::move(line), report);
}

}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/worker_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>
#include <utility>

namespace convoy::sweep {
namespace {

// The kinds of messages that have a text.
constexpr std::array<std::pair<WorkerMessage::Kind, std::string_view>, 4> kTexts = {
    {{WorkerMessage::Kind::Note, "note "},
     {WorkerMessage::Kind::Warning, "warning "},
     {WorkerMessage::Kind::Failure, "failure "},
     {WorkerMessage::Kind::CellFailed, "cell_failed "}}};

}  // namespace

std::string way_of(const jobs::Failure& failure) {
  return fmt::format("{} {} {}", failure.kind, failure.exit_code, failure.signal);
}

std::string WorkerMessage::line() const {
  switch (kind) {
    case Kind::Begin: {
      std::string text_line = "begin";
      for (const int64_t lease : leases) text_line += fmt::format(" {}", lease);
      return text_line + "\n";
    }
    case Kind::Computed:
      return fmt::format("computed {} {} {} {} {}\n", guesses, accepted, cells, microseconds,
                         expected_microseconds);
    case Kind::Stored:
      return fmt::format("stored {} {} {}\n", guesses, accepted, cells);
    case Kind::Note:
    case Kind::Warning:
    case Kind::Failure:
    case Kind::CellFailed:
    case Kind::Idle:
      break;
  }
  for (const auto& [one, word] : kTexts) {
    if (one != kind) continue;
    std::string one_line = text;
    std::replace(one_line.begin(), one_line.end(), '\n', ' ');
    return fmt::format("{}{}\n", word, one_line);
  }
  return "idle\n";
}

std::optional<WorkerMessage> WorkerMessage::parse(const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  WorkerMessage message;
  if (kind == "begin") {
    message.kind = Kind::Begin;
    for (int64_t lease = 0; words >> lease;) message.leases.push_back(lease);
    return message;
  }
  if (kind == "computed" || kind == "stored") {
    message.kind = kind == "stored" ? Kind::Stored : Kind::Computed;
    words >> message.guesses >> message.accepted >> message.cells;
    if (kind == "computed") words >> message.microseconds >> message.expected_microseconds;
    return words.fail() ? std::nullopt : std::optional(message);
  }
  for (const auto& [one, word] : kTexts) {
    if (kind + " " != word) continue;
    message.kind = one;
    message.text = line.size() > word.size() ? line.substr(word.size()) : "";
    return message;
  }
  return kind == "idle" ? std::optional(message) : std::nullopt;
}

}  // namespace convoy::sweep

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/help/exit_codes.h"

#include <fmt/format.h>

namespace convoy::apps {

const std::vector<ExitMeaning>& exit_meanings() {
  static const std::vector<ExitMeaning> meanings = {
      {ExitCode::Done, "done"},
      {ExitCode::Usage, "usage or config"},
      {ExitCode::BadInput, "bad input"},
      {ExitCode::NoCheckpoint, "no usable checkpoint"},
      {ExitCode::Resources, "disk or memory"},
      {ExitCode::PeerLost, "peer lost"},
      {ExitCode::Device, "device"},
      {ExitCode::Numeric, "numeric or failed cells"},
      {ExitCode::NoProgress, "no progress"},
      {ExitCode::Unreachable, "no network"},
      {ExitCode::Bug, "bug"},
      {ExitCode::Stopped, "stopped with state saved"},
  };
  return meanings;
}

std::string exit_code_sentence() {
  constexpr size_t kColumns = 80;
  std::string text;
  std::string line = "Exit codes:";
  for (const ExitMeaning& meaning : exit_meanings()) {
    const char* const end = &meaning == &exit_meanings().back() ? "." : ",";
    const std::string part =
        fmt::format("{} {}{}", static_cast<int>(meaning.code), meaning.text, end);
    if (line.size() + 1 + part.size() <= kColumns) {
      line += " " + part;
      continue;
    }
    text += line + "\n";
    line = part;
  }
  return text + line + "\n";
}

std::string exit_code_lines() {
  std::string text;
  for (const ExitMeaning& meaning : exit_meanings())
    text += fmt::format("{:<3} {}\n", static_cast<int>(meaning.code), meaning.text);
  return text;
}

}  // namespace convoy::apps

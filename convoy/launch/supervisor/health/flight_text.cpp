// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/flight_text.h"

#include <fmt/format.h>

#include <algorithm>

namespace convoy::launch {
namespace {

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto place = std::ssize(digits) - 3; place > (number < 0 ? 1 : 0); place -= 3)
    digits.insert(static_cast<size_t>(place), ",");
  return digits;
}

std::string size_words(int64_t bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB"};
  if (bytes < 1024) return fmt::format("{} B", bytes);
  double size = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; size >= 1024 && unit < 2; ++unit) size /= 1024;
  return fmt::format("{:.1f} {}", size, kUnits[unit]);
}

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (size_t index = 0; index < parts.size(); ++index)
    text += (index == 0 ? "" : index + 1 == parts.size() ? " and " : ", ") + parts[index];
  return text;
}

std::string state_words(const telemetry::CollectiveRecord& record) {
  switch (record.state) {
    case telemetry::CollectiveState::Done:
      return fmt::format("done {} ago", seconds_text(record.left_us_ago));
    case telemetry::CollectiveState::Failed:
      return fmt::format("failed {} ago", seconds_text(record.left_us_ago));
    case telemetry::CollectiveState::Waited:
      return fmt::format("waited for since {} ago", seconds_text(record.waited_us_ago));
    case telemetry::CollectiveState::Entered:
      break;
  }
  return fmt::format("started {} ago", seconds_text(record.entered_us_ago));
}

}  // namespace

std::string rank_list(std::vector<int> ranks) {
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  std::vector<std::string> parts;
  for (size_t first = 0; first < ranks.size();) {
    size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last < first + 2) last = first;  // a pair is not worth a range
    parts.push_back(last == first ? std::to_string(ranks[first])
                                  : fmt::format("{}-{}", ranks[first], ranks[last]));
    first = last + 1;
  }
  return (ranks.size() == 1 ? "rank " : "ranks ") + joined(parts);
}

std::string collective_name(const telemetry::CollectiveRecord& record) {
  return fmt::format("{} #{} on group {}", record.operation, record.sequence, record.group);
}

std::string collective_size(const telemetry::CollectiveRecord& record) {
  if (record.num_elements == 0) return "";
  std::string shape;
  if (record.num_dims == 2 || record.num_dims == 3) {
    for (int dim = 0; dim < record.num_dims; ++dim)
      shape += fmt::format("{}{}", dim == 0 ? " [" : ", ", record.shape[static_cast<size_t>(dim)]);
    shape += ']';
  }
  return fmt::format(" ({}{}, {} element{}, {})", record.dtype, shape, grouped(record.num_elements),
                     record.num_elements == 1 ? "" : "s", size_words(record.bytes));
}

std::string seconds_text(int64_t microseconds) {
  return fmt::format("{:.1f} s", static_cast<double>(microseconds) / 1e6);
}

int64_t step_of(const telemetry::RankFlight& flight) {
  if (flight.step < 0) return -1;
  const bool follows = flight.phase == "evaluate" || flight.phase == "save" ||
                       flight.phase == "export" || flight.phase == "end";
  return follows ? flight.step : flight.step + 1;
}

std::string last_activity(const telemetry::RankFlight& flight) {
  std::string text = flight.records.empty()
                         ? std::string("no collective at all")
                         : fmt::format("{}, {}", collective_name(flight.records.back()),
                                       state_words(flight.records.back()));
  if (!flight.phase.empty()) text += fmt::format(", in phase '{}'", flight.phase);
  if (flight.step >= 0)
    text += fmt::format("{} step {}", flight.phase.empty() ? ", in" : " of", step_of(flight));
  return text;
}

}  // namespace convoy::launch

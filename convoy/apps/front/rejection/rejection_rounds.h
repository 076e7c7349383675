// SPDX-License-Identifier: Apache-2.0
//
// The record of task rejection: what each round made and gained, and when the rounds end. Plain
// data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/settings/rejection_settings.h"
#include "convoy/farm/process/results/kept_solutions.h"

namespace convoy::apps {

struct RoundRecord {
  int64_t round = 0;  // 0: the model as it starts, which is only evaluated
  process::AnswerCounts generated = {};
  process::KeptCounts kept = {};
  std::optional<process::AnswerCounts> evaluated = {};  // none: nothing was kept, so none trained
  // By phase, over all starts; what a kill cost is not in it.
  std::map<std::string, double> seconds = {};
};

// Oldest first; none where the file is missing. Throws DataError for a damaged one.
std::vector<RoundRecord> read_rounds(const std::filesystem::path& file);
// One JSON object a line. Throws IoError.
void write_rounds(const std::filesystem::path& file, const std::vector<RoundRecord>& rounds);
nlohmann::ordered_json rounds_json(const std::vector<RoundRecord>& rounds);

// The trained round with the most right answers, the first of equal ones; null: none was trained.
const RoundRecord* best_round(const std::vector<RoundRecord>& rounds);

// Why no round follows the last of `rounds`, as a sentence; empty: one does. `rounds` has round 0.
std::string why_ended(const std::vector<RoundRecord>& rounds,
                      const settings::RejectionSettings& settings);

// Tells people what the round made and gained.
std::string round_line(const RoundRecord& round);
// The same for the rounds in metrics.json.
std::vector<std::string> round_lines(const nlohmann::ordered_json& rounds);

// Time between the start rows of events.jsonl and the last row before the next start.
double worked_seconds(const std::filesystem::path& events);

}  // namespace convoy::apps

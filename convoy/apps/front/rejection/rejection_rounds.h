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
  std::optional<process::AnswerCounts> evaluated = {};  // empty: nothing was kept to train on
  // Seconds by phase, over all starts, without work that was lost by a kill.
  std::map<std::string, double> seconds = {};
};

// Returns the rounds, oldest first; none when the file is missing. Throws DataError for a damaged
// file.
std::vector<RoundRecord> read_rounds(const std::filesystem::path& file);
// Writes one JSON object per line. Throws IoError.
void write_rounds(const std::filesystem::path& file, const std::vector<RoundRecord>& rounds);
nlohmann::ordered_json rounds_json(const std::vector<RoundRecord>& rounds);

// Returns the trained round with the most correct answers, and the first of equally good rounds.
// Null when no round was trained.
const RoundRecord* best_round(const std::vector<RoundRecord>& rounds);

// Returns the reason why no round follows the last of `rounds`, as a sentence; empty when another
// round follows. `rounds` contains round 0.
std::string why_ended(const std::vector<RoundRecord>& rounds,
                      const settings::RejectionSettings& settings);

// A line for people: the samples, kept rows and gain of the round.
std::string round_line(const RoundRecord& round);
// round_line() of each of the rounds in metrics.json.
std::vector<std::string> round_lines(const nlohmann::ordered_json& rounds);

// Seconds of work in events.jsonl: the sum, over all starts, of the time from the start row to the
// last row before the next start.
double worked_seconds(const std::filesystem::path& events);

}  // namespace convoy::apps

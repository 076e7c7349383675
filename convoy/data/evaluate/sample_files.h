// SPDX-License-Identifier: Apache-2.0
//
// samples.jsonl: rows {"input", "pred", "ref"}; "input" may be missing, "ref" is a text or a list
// of correct texts.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/data/evaluate/scored_answer.h"

namespace convoy::evaluate {

// Writes the file atomically. Throws IoError.
void write_samples(const std::filesystem::path& path, const std::vector<ScoredAnswer>& samples);

// Throws DataError with file, line and key.
std::vector<ScoredAnswer> read_samples(const std::filesystem::path& path);

// The JSON object of one row.
nlohmann::ordered_json sample_row(const ScoredAnswer& sample);

}  // namespace convoy::evaluate

// SPDX-License-Identifier: Apache-2.0
//
// samples.jsonl (rows {"input","pred","ref"}) and metrics.json.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "convoy/evaluate/text_match.h"

namespace convoy::evaluate {

// Atomic. Throws IoError.
void write_samples(const std::filesystem::path& path, const std::vector<Sample>& samples);

// Throws DataError with file, line and key.
std::vector<Sample> read_samples(const std::filesystem::path& path);

// Writes text figures and `others` (loss, perplexity, ...) as one JSON object, keys sorted. Atomic.
// Throws IoError.
void write_metrics(const std::filesystem::path& path, const TextFigures& text,
                   const std::map<std::string, double>& others);

}  // namespace convoy::evaluate

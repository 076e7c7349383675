// SPDX-License-Identifier: Apache-2.0
//
// samples.jsonl: rows {"input", "pred", "ref"}; "input" may be missing, "ref" is a text or a list
// of correct texts.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "convoy/data/evaluate/sample.h"

namespace convoy::evaluate {

// Atomic. Throws IoError.
void write_samples(const std::filesystem::path& path, const std::vector<Sample>& samples);

// Throws DataError with file, line and key.
std::vector<Sample> read_samples(const std::filesystem::path& path);

// One row of the file.
nlohmann::ordered_json sample_row(const Sample& sample);

}  // namespace convoy::evaluate

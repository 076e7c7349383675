// SPDX-License-Identifier: Apache-2.0
//
// Writes a model in another layout as a model folder of safetensors.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "convoy/core/io/model_folder.h"

namespace convoy::models {

// Converts piece by piece: only a part of one weight is in memory. `dtype`: the type of every
// weight; none: as stored, fp32 for codes. A tied head is left out. Throws NumericError where a
// value is lost, DataError, IoError.
void convert_model(const io::ModelFolder& source, const std::filesystem::path& folder,
                   std::optional<at::ScalarType> dtype,
                   const std::function<void(int64_t done, int64_t total)>& advance,
                   int64_t max_shard_bytes = 5'000'000'000);

}  // namespace convoy::models

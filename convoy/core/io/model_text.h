// SPDX-License-Identifier: Apache-2.0
//
// The small files of a model by its path alone: a folder's files, or files made from a GGUF file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace convoy::io {

// `model`: a folder or a GGUF file. Empty when there is no file of this name. Throws DataError,
// also for a file of more than `max_bytes`.
std::optional<std::string> find_model_text(const std::filesystem::path& model,
                                           const std::string& name, int64_t max_bytes);
// The path to name in errors about that text.
std::filesystem::path place_of_model_text(const std::filesystem::path& model,
                                          const std::string& name);

}  // namespace convoy::io

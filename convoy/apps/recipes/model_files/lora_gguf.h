// SPDX-License-Identifier: Apache-2.0
//
// A LoRA adapter alone as a GGUF file, which llama.cpp adds to its base at run time (--lora).
#pragma once

#include <filesystem>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/io/gguf/file_type.h"

namespace convoy::recipes {

// Writes the adapter of `loaded`, which must not be merged. Throws DataError for what llama.cpp
// does not support: DoRA, modules that are saved whole, embeddings.
void write_lora_gguf(const LoadedModel& loaded, const gguf::FileType& type,
                     const std::filesystem::path& path);

// Converts a LoRA file in GGUF into a PEFT adapter of `base`, in fp32. Throws DataError naming the
// tensor.
void convert_lora_gguf(const std::filesystem::path& file, const io::ModelFolder& base,
                       const std::filesystem::path& folder);

}  // namespace convoy::recipes

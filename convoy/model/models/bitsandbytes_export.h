// SPDX-License-Identifier: Apache-2.0
//
// Quantises and dequantises model folders and files of tensors, one tensor at a time: neither the
// source nor the result is ever whole in memory.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/models/advance.h"
#include "convoy/model/models/checkpoint_rest.h"
#include "convoy/model/models/quantization_config.h"

namespace convoy::models {

// Writes the files of transformers' save_pretrained for the model in `coding`, which has a format:
// linear maps of its blocks are quantised, and everything else is as the source stores it; the rest
// of a checkpoint that holds more than a text model is named as not quantised. Throws DataError
// naming a value that is not finite, before anything is written; ConfigError when the source is
// quantised already.
void write_bitsandbytes_model(const io::ModelFolder& source, const std::filesystem::path& folder,
                              const WeightCoding& coding, const Advance& advance,
                              Extent extent = Extent::Whole);
// Writes the model in numbers again. `dtype`: the type of every weight of the text model; none:
// each weight gets its original type, and tensors that are no codes stay as the source stores them.
// Throws ConfigError where there are no codes.
void write_decoded_model(const io::ModelFolder& source, const std::filesystem::path& folder,
                         std::optional<at::ScalarType> dtype, const Advance& advance,
                         Extent extent = Extent::Whole);

// The same for a .safetensors file. Every tensor of floats that has elements is coded (int8: only
// tensors of two dimensions), any other tensor is copied.
void write_bitsandbytes_tensors(const std::filesystem::path& source,
                                const std::filesystem::path& output,
                                const kernels::BitsandbytesFormat& format, const Advance& advance);
void write_decoded_tensors(const std::filesystem::path& source, const std::filesystem::path& output,
                           std::optional<at::ScalarType> dtype, const Advance& advance);

}  // namespace convoy::models

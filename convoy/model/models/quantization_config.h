// SPDX-License-Identifier: Apache-2.0
//
// Weights in bitsandbytes' formats as config.json speaks of them, and which of a model's weights
// are held so.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/kernels/coded_weight/coded_weight.h"

namespace convoy::models {

// How linear maps of a model's blocks are held. Embedding, norms and head stay whole.
struct WeightCoding {
  std::optional<kernels::CodedFormat> format = {};  // none: as the files have them
  std::vector<std::string> skip_modules = {};  // stay whole: names, or their beginnings or ends
};

// quantization_config of a folder whose weights are quantised; none where it has no such key.
// Throws DataError for methods other than bitsandbytes'.
std::optional<WeightCoding> read_quantization_config(const io::JsonReader& config);

// The same as transformers writes it.
nlohmann::json quantization_config_json(const WeightCoding& coding);

// The weight of a linear map in a block.
bool is_block_map(const architecture::ParameterDeclaration& parameter);
// `weight`: "model.layers.0.self_attn.q_proj.weight".
bool is_skipped(const WeightCoding& coding, const std::string& weight);

}  // namespace convoy::models

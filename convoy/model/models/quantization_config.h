// SPDX-License-Identifier: Apache-2.0
//
// The description of weights in bitsandbytes' formats in config.json, and the set of a model's
// weights in these formats.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"

namespace convoy::models {

// The format of the linear maps of a model's blocks. Embedding, norms and head are not quantised.
struct WeightCoding {
  std::optional<kernels::BitsandbytesFormat> format = {};  // none: as the files have them
  // Modules that are not quantised: names, or their beginnings or ends.
  std::vector<std::string> skip_modules = {};
};

// The quantization_config of a folder with quantised weights; none when it has no such key. Throws
// DataError for methods other than bitsandbytes'.
std::optional<WeightCoding> read_quantization_config(const io::JsonReader& config);

// The quantization_config for `coding`, as transformers writes it.
nlohmann::json quantization_config_json(const WeightCoding& coding);

// `weight`: "model.layers.0.self_attn.q_proj.weight".
bool is_skipped(const WeightCoding& coding, const std::string& weight);

}  // namespace convoy::models

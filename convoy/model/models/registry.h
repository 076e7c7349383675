// SPDX-License-Identifier: Apache-2.0
//
// Loads a model from a model folder in Hugging Face layout.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/models/advance.h"
#include "convoy/model/models/quantization_config.h"
#include "convoy/model/models/weights.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/deferred_values.h"

namespace convoy::models {

// Reads weights from the mapped files, converting fp32, bf16 and fp16 to `dtype` (fp32 or bf16).
// Nothing requires grad. Throws DataError naming file and key for settings that are wrong or not
// supported, and listing every tensor that is missing, unexpected or of another shape; all of it
// before anything is allocated. Throws ConfigError for other dtypes. Weights that are stored as
// codes, or that `coding` selects, are held as codes; only one weight at a time is whole, while it
// is encoded. `advance` is called after each parameter that is read.
std::unique_ptr<nn::CausalLm> load_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                             at::Device device = at::kCPU,
                                             const WeightCoding& coding = {},
                                             const Advance& advance = {});

// The same model without memory for its parameters: `values` gets the source of each parameter, and
// keeps the files open.
std::unique_ptr<nn::CausalLm> declare_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                                at::Device device, nn::DeferredValues& values,
                                                const WeightCoding& coding = {});

// The weight files, matched with what the folder's model declares. Throws as load_causal_lm does.
CheckpointWeights open_weights(const io::ModelFolder& folder, const WeightCoding& coding = {});

// The type in which the files store each parameter, by the model's own names. Throws DataError as
// load_causal_lm does.
std::map<std::string, at::ScalarType> stored_dtypes(const io::ModelFolder& folder);

}  // namespace convoy::models

// SPDX-License-Identifier: Apache-2.0
//
// From a model folder in Hugging Face layout to a model. Adding a family is one folder and one line
// in registry.cpp.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "convoy/io/model_folder.h"
#include "convoy/nn/causal_lm.h"
#include "convoy/nn/decoder_spec.h"
#include "convoy/nn/deferred_values.h"

namespace convoy::models {

// Reads weights from the mapped files, converting fp32, bf16 and fp16 to `dtype` (fp32 or bf16).
// Nothing requires grad. Throws DataError naming file and key for settings that are wrong or not
// supported, and listing every tensor that is missing, unexpected or of another shape; all of it
// before anything is allocated. Throws ConfigError for other dtypes.
std::unique_ptr<nn::CausalLm> load_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                             at::Device device = at::kCPU);

// The same model without memory for its parameters: `values` tells where each of them is read from.
// It keeps the files open.
std::unique_ptr<nn::CausalLm> declare_causal_lm(const io::ModelFolder& folder, at::ScalarType dtype,
                                                at::Device device, nn::DeferredValues& values);

// What config.json says, without the weights. Throws DataError.
nn::DecoderSpec read_decoder_spec(const io::ModelFolder& folder);

// The type in which the files store each parameter, by the model's own name of it. Throws DataError
// as load_causal_lm does.
std::map<std::string, at::ScalarType> stored_dtypes(const io::ModelFolder& folder);

// The text model is one part of a larger one (Gemma-3 4B and up): its settings are config.json's
// text_config.
bool text_model_is_nested(const io::ModelFolder& folder);

// Ids that end a text: eos_token_id of generation_config.json and of config.json, sorted, without
// repeats.
std::vector<int32_t> end_token_ids(const io::ModelFolder& folder);

// transformers' class of the text model: "Qwen2ForCausalLM". Throws DataError.
std::string architecture_name(const io::ModelFolder& folder);

std::vector<std::string> supported_model_types();

}  // namespace convoy::models

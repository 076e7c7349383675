// SPDX-License-Identifier: Apache-2.0
//
// Gemma 4 and Muse Glimmer as llama.cpp has them: what it does not compute, the metadata of their
// layers, and the tensors in which it keeps numbers that config.json has.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/io/gguf/writer.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::models {

// Why llama.cpp would compute something else than this model; empty when it does not.
std::string gemma4_refusal(const architecture::DecoderSpec& spec);
std::string glimmer_refusal(const architecture::DecoderSpec& spec);

// Keys after `prefix`, the architecture's name and a point.
void add_gemma4_layers(const std::string& prefix, const architecture::DecoderSpec& spec,
                       gguf::Metadata& metadata);
void add_glimmer_layers(const std::string& prefix, const architecture::DecoderSpec& spec,
                        gguf::Metadata& metadata);

struct NumbersAsTensor {
  std::string name;
  std::vector<float> values;
};
// Gemma 4: the divisors of the rotation of layers that see all keys.
NumbersAsTensor gemma4_divisors(const architecture::DecoderSpec& spec);
// Glimmer: the weights of the norms of queries and keys; the first are the scale of scores.
std::vector<NumbersAsTensor> glimmer_norms(const architecture::DecoderSpec& spec);

}  // namespace convoy::models

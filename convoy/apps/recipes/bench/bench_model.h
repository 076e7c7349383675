// SPDX-License-Identifier: Apache-2.0
//
// The model that benchmarks run: the sizes of a named geometry, with random weights.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/settings/command_flags.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/deferred_values.h"

namespace convoy::recipes {

// Sets the compute threads when `flags` give a number, then makes the model on `device`, with the
// same weights each time. With `values` its parameters are created without memory. Throws
// ConfigError.
std::unique_ptr<nn::CausalLm> bench_model(const settings::BenchFlags& flags, at::Device device,
                                          nn::DeferredValues* values = nullptr);

// One word per id and no end token, so every row takes all its new tokens.
text::Tokenizer word_tokenizer(int64_t vocab_size);

// Throws ConfigError, naming `flag`, when the model has too few positions for a row of `tokens`
// tokens.
void require_positions(const nn::CausalLm& model, int64_t tokens, const std::string& flag);

// {"peak_rss_mb"} of this process; on a device also {"peak_device_mb"} of its tensors.
nlohmann::ordered_json bench_memory(at::Device device);

}  // namespace convoy::recipes

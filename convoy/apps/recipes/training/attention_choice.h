// SPDX-License-Identifier: Apache-2.0
//
// The kernel of attention that a training asks for, on a model that takes it.
#pragma once

#include <string>

#include "convoy/model/nn/causal_lm.h"

namespace convoy::recipes {

// `attention`: value of the setting `key`, auto, flash or cudnn. Throws ConfigError where cuDNN's
// kernel does not take the model.
void choose_attention(nn::CausalLm& model, const std::string& attention, const char* key);

}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
//
// The forms of a model in words, for people who ask what a checkpoint is.
#pragma once

#include <string>
#include <vector>

#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::architecture {

// All that sets the model apart from a plain decoder: norms before attention and feed-forward,
// SiLU, heads that are rotated whole, no biases, no scales. Sliding windows are not listed.
std::vector<std::string> forms_of(const DecoderSpec& spec);

}  // namespace convoy::architecture

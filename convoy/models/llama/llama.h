// SPDX-License-Identifier: Apache-2.0
//
// Llama 3.x and earlier: from config.json to a DecoderSpec. Throws DataError naming file and key.
#pragma once

#include "convoy/io/json_reader.h"
#include "convoy/nn/decoder_spec.h"

namespace convoy::models {

nn::DecoderSpec read_llama_spec(const io::JsonReader& config);

}  // namespace convoy::models

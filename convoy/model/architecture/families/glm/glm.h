// SPDX-License-Identifier: Apache-2.0
//
// GLM-4 in transformers' two spellings: from config.json to a DecoderSpec. Throws DataError naming
// file and key.
#pragma once

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

architecture::DecoderSpec read_glm_spec(const io::JsonReader& config);   // glm-4-9b-chat-hf
architecture::DecoderSpec read_glm4_spec(const io::JsonReader& config);  // GLM-4-0414

}  // namespace convoy::families

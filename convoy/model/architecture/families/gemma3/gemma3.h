// SPDX-License-Identifier: Apache-2.0
//
// The text model of Gemma-3, alone or nested in a multimodal one: from config.json to a
// DecoderSpec. Throws DataError naming file and key.
#pragma once

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

architecture::DecoderSpec read_gemma3_spec(const io::JsonReader& config);
// The text model under `text_config` of Gemma-3 4B and larger.
architecture::DecoderSpec read_nested_gemma3_spec(const io::JsonReader& config);

}  // namespace convoy::families

// SPDX-License-Identifier: Apache-2.0
//
// The text model of Gemma 4 (dense), alone or nested in a multimodal one: from config.json to a
// DecoderSpec. Throws DataError naming file and key.
#pragma once

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

// E2B, E4B and 31B; the second reads the text model under `text_config`.
architecture::DecoderSpec read_gemma4_spec(const io::JsonReader& config);
architecture::DecoderSpec read_nested_gemma4_spec(const io::JsonReader& config);

// The same for 12B, which has other defaults and no embeddings for each layer.
architecture::DecoderSpec read_gemma4_unified_spec(const io::JsonReader& config);
architecture::DecoderSpec read_nested_gemma4_unified_spec(const io::JsonReader& config);

}  // namespace convoy::families

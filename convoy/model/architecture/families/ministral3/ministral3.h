// SPDX-License-Identifier: Apache-2.0
//
// Ministral 3, and the text model of Mistral3 checkpoints (Mistral Small 3.1 and later, Ministral
// 3): from config.json to a DecoderSpec. Throws DataError naming file and key.
#pragma once

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

architecture::DecoderSpec read_ministral3_spec(const io::JsonReader& config);
// The text model under `text_config`: a model of Mistral or of Ministral 3.
architecture::DecoderSpec read_nested_mistral3_spec(const io::JsonReader& config);

}  // namespace convoy::families

// SPDX-License-Identifier: Apache-2.0
//
// Qwen3.5 and 3.6 (dense): from config.json to a DecoderSpec. Throws DataError naming file and key.
#pragma once

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

architecture::DecoderSpec read_qwen3_5_spec(const io::JsonReader& config);
// The language model of a checkpoint that also has a vision tower.
architecture::DecoderSpec read_nested_qwen3_5_spec(const io::JsonReader& config);

}  // namespace convoy::families

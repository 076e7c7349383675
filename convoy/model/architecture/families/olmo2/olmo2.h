// SPDX-License-Identifier: Apache-2.0
//
// OLMo 2: from config.json to a DecoderSpec. Throws DataError naming file and key.
#pragma once

#include <string>

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

architecture::DecoderSpec read_olmo2_spec(const io::JsonReader& config);

// All that OLMo 2 and OLMo 3 have in common, without rotations and windows. Attention and
// feed-forward read the hidden states without a norm, and their outputs are normalised.
architecture::DecoderSpec read_olmo_layers(const io::JsonReader& config, const std::string& family);

}  // namespace convoy::families

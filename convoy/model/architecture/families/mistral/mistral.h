// SPDX-License-Identifier: Apache-2.0
//
// Mistral 7B v0.1 to v0.3, Nemo, Small (text): from config.json to a DecoderSpec. Throws DataError
// naming file and key.
#pragma once

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

architecture::DecoderSpec read_mistral_spec(const io::JsonReader& config);

}  // namespace convoy::families

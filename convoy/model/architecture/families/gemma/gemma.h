// SPDX-License-Identifier: Apache-2.0
//
// Gemma, the first: from config.json to a DecoderSpec. Throws DataError naming file and key.
#pragma once

#include "convoy/core/io/json_reader.h"
#include "convoy/model/architecture/decoder_spec.h"

namespace convoy::families {

architecture::DecoderSpec read_gemma_spec(const io::JsonReader& config);

}  // namespace convoy::families

// SPDX-License-Identifier: Apache-2.0
//
// The tokens with which the texts of a trained model end, in the small files of its folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/model_folder.h"

namespace convoy::models {

struct ResultEnds {
  std::vector<int32_t> ids = {};  // end ids to list before the end ids of the source
  // The EOS, ids[0] as text, that replaces the EOS of the source's tokenizer. Empty: the EOS stays.
  std::string eos_token = {};
};

// The ids of `ends` that the files of `source` do not name.
std::vector<int32_t> unnamed_ends(const io::ModelFolder& source, const ResultEnds& ends);

// generation_config.json of `source` with its ends and the ids of `ends`: the ids of `ends` come
// first, as in transformers. Nothing if the source needs no change.
std::optional<std::string> generation_config_text(const io::ModelFolder& source,
                                                  const ResultEnds& ends);

// Puts the ends into the files of an export of `source`.
void name_ends(const io::ModelFolder& source, const ResultEnds& ends,
               std::map<std::string, std::string>& files);

}  // namespace convoy::models

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
  std::vector<int32_t> ids = {};  // ends that stand before the ones that the source names
  // The tokenizer's EOS in place of the source's: ids[0]. Empty: it stays.
  std::string eos_token = {};
};

// The ids of `ends` that the files of `source` do not name.
std::vector<int32_t> unnamed_ends(const io::ModelFolder& source, const ResultEnds& ends);

// generation_config.json with the ends of `source` and the ids of `ends`, as transformers aligns
// it: the new ones first. Nothing where the source names them all.
std::optional<std::string> generation_config_text(const io::ModelFolder& source,
                                                  const ResultEnds& ends);

// Puts the ends into the files of an export of `source`.
void name_ends(const io::ModelFolder& source, const ResultEnds& ends,
               std::map<std::string, std::string>& files);

}  // namespace convoy::models

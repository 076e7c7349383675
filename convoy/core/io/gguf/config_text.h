// SPDX-License-Identifier: Apache-2.0
//
// Makes config.json and generation_config.json from the metadata of a GGUF file.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/gguf/gguf_family.h"
#include "convoy/core/io/gguf/value_heads.h"

namespace convoy::gguf {

// Finds a tensor in the file or, if the model is in several files, in any of them.
using FindPlace = std::function<const TensorPlace*(const std::string& name)>;
// Reads the values of a tensor as fp32.
using ReadValues = std::function<std::vector<float>(const std::string& name)>;

struct Sizes {
  int64_t num_layers = 0;      // without the further layers
  int64_t further_layers = 0;  // layers after these, which predict further tokens; not read
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  ValueHeads value_heads = {};  // where layers have Gated DeltaNet
};

// Throws DataError, naming the kind of the file, for a file that is no supported language model.
const Family& require_family(const File& file);

Sizes read_sizes(const File& file);

// Throws DataError naming the key that is missing, wrong, or changes the maths in a way that Convoy
// does not compute.
std::string config_text(const File& file, const Family& family, const FindPlace& find,
                        const ReadValues& read);

std::string generation_config_text(const File& file);

// Keys of the architecture that Convoy does not read.
std::vector<std::string> unread_keys(const File& file);

}  // namespace convoy::gguf

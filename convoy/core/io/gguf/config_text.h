// SPDX-License-Identifier: Apache-2.0
//
// The model of a GGUF file as config.json and generation_config.json.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "convoy/core/io/gguf/family.h"
#include "convoy/core/io/gguf/file.h"

namespace convoy::gguf {

// Where a tensor is: in the file or, of a model in several files, in one of the others.
using FindPlace = std::function<const TensorPlace*(const std::string& name)>;
// The tensor's values in fp32.
using ReadValues = std::function<std::vector<float>(const std::string& name)>;

struct Sizes {
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
};

// Throws DataError for a file that is no language model, naming the kind it is.
const Family& require_family(const File& file);

Sizes read_sizes(const File& file);

// Throws DataError naming the key that is missing, wrong, or changes the maths in a way that Convoy
// does not compute.
std::string config_text(const File& file, const Family& family, const FindPlace& find,
                        const ReadValues& read);

std::string generation_config_text(const File& file);

// Keys of the architecture that are read by nobody here.
std::vector<std::string> unread_keys(const File& file);

}  // namespace convoy::gguf

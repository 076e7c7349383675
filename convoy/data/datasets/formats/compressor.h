// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "convoy/data/datasets/formats/byte_stream.h"

namespace convoy::data {

// Compresses a stream piece by piece; equal input gives equal output. One thread. Throws IoError.
class Compressor {
 public:
  virtual ~Compressor() = default;
  // Compresses `bytes`, and appends the output that is ready to `packed`.
  virtual void add(std::string_view bytes, std::string& packed) = 0;
  // Appends the rest; must be the last call.
  virtual void finish(std::string& packed) = 0;
};

// `compression` must not be None. Throws IoError when the plugin is missing.
std::unique_ptr<Compressor> make_compressor(Compression compression);

}  // namespace convoy::data

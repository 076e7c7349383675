// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "convoy/data/datasets/byte_stream.h"

namespace convoy::data {

// Packs a stream piece by piece; the same bytes in, the same bytes out. One thread. Throws IoError.
class Compressor {
 public:
  virtual ~Compressor() = default;
  // Appends to `packed` what is ready.
  virtual void add(std::string_view bytes, std::string& packed) = 0;
  // Appends the rest; the last call.
  virtual void finish(std::string& packed) = 0;
};

// Not for Compression::None. Throws IoError when the plugin is missing.
std::unique_ptr<Compressor> make_compressor(Compression compression);

}  // namespace convoy::data

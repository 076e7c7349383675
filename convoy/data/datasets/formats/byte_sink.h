// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace convoy::data {

// Receives bytes in order. Throws IoError.
class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual void write(std::string_view bytes) = 0;
};

}  // namespace convoy::data

// SPDX-License-Identifier: Apache-2.0
//
// Which table of ops the tests of this process run: CONVOY_TEST_OPS=aten takes the ATen calls of
// other devices on CPU tensors.
#pragma once

#include <cstdlib>
#include <string_view>

namespace convoy::testing {

inline bool runs_aten() {
  const char* wanted = std::getenv("CONVOY_TEST_OPS");
  return wanted != nullptr && std::string_view(wanted) == "aten";
}

}  // namespace convoy::testing

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/error.h"
#include "convoy/core/pictures/drawing.h"

namespace convoy::pictures {

bool has_drawing() { return false; }

std::string drawn(Drawn /*what*/, const std::string& /*svg*/) {
  CONVOY_INVARIANT(has_drawing(), "this build draws no PNG and PDF");
  return {};
}

}  // namespace convoy::pictures

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/json_reason.h"

namespace convoy {

std::string json_reason(std::string_view what) {
  what.remove_prefix(what.find("] ") + 2);
  if (what.starts_with("parse error at")) what.remove_prefix(what.find(": ") + 2);
  return std::string(what.substr(0, what.find("; last read")));
}

}  // namespace convoy

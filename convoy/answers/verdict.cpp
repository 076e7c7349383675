// SPDX-License-Identifier: Apache-2.0
#include "convoy/answers/equivalence.h"

namespace convoy::answers {

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::Yes:
      return "yes";
    case Verdict::No:
      return "no";
    case Verdict::Unknown:
      break;
  }
  return "unknown";
}

}  // namespace convoy::answers

// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/gloo/bounded_wait.h"

namespace convoy::comm {

bool done_within(c10d::Work& work, std::chrono::milliseconds limit) {
  try {
    return work.wait(limit);
  } catch (const c10::Error&) {
    if (!work.isCompleted()) return false;
  }
  // c10d throws the same exception for an expired limit and for a failed collective. A collective
  // may also end between that exception and the check above. A second wait ends at once then: it
  // returns, or throws the collective's own error.
  return work.wait(limit);
}

}  // namespace convoy::comm

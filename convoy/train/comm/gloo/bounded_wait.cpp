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
  // may also end between that exception and the check above. A second wait returns or throws what
  // the collective's own end was, at once.
  return work.wait(limit);
}

}  // namespace convoy::comm

// SPDX-License-Identifier: Apache-2.0
//
// The budget of one check. Work is counted, not timed, so that a verdict does not depend on the
// machine.
#pragma once

#include <cstdint>

namespace convoy::answers {

class Steps {
 public:
  explicit Steps(int64_t allowed) : left_(allowed) {}
  // Takes `count` steps from the budget. Returns false when the budget is spent; the caller must
  // then stop.
  bool take(int64_t count = 1) {
    left_ = count > left_ ? -1 : left_ - count;
    return left_ >= 0;
  }
  bool spent() const { return left_ < 0; }

 private:
  int64_t left_;
};

}  // namespace convoy::answers

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/failing_start.h"

#include <algorithm>

namespace convoy::sweep {
namespace {

constexpr int64_t kFew = 3;

}  // namespace

void FailingStart::add(size_t worker, const WorkerMessage& message, Clock::time_point now) {
  using Kind = WorkerMessage::Kind;
  if (message.kind == Kind::Note || message.kind == Kind::Warning) return;
  began_.erase(worker);
  if (message.kind == Kind::Begin) began_[worker] = now;
  if (message.kind == Kind::Stored && message.guesses + message.cells > 0) works_ = true;
  if (message.kind != Kind::CellFailed) return;
  if (message.text.starts_with("non_finite ")) {
    works_ = true;
    return;
  }
  differ_ = differ_ || (num_failed_ > 0 && message.text != way_);
  way_ = message.text;
  if (++num_failed_ == kFew) decided_ = now;
}

bool FailingStart::found() const {
  return !works_ && !differ_ && num_failed_ >= kFew &&
         std::all_of(began_.begin(), began_.end(),
                     [&](const auto& one) { return one.second > decided_; });
}

}  // namespace convoy::sweep

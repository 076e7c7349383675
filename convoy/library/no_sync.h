// SPDX-License-Identifier: Apache-2.0
//
// A scope whose backward passes only add to the gradients of this rank, as PyTorch's no_sync():
//
//   for (size_t at = 0; at < batches.size(); ++at) {
//     const auto unsynchronised = model.no_sync(/*active=*/at + 1 < batches.size());
//     loss_of(model(batches[at])).backward();   // the last one averages all of them
//   }
#pragma once

#include <utility>

#include "convoy/library/detail/sharing.h"

namespace convoy {

// Must not outlive its wrapper. The scope ends when the object is destroyed.
class NoSync {
 public:
  NoSync(NoSync&& other) noexcept
      : sharing_(std::exchange(other.sharing_, nullptr)), before_(other.before_) {}
  NoSync& operator=(NoSync&&) = delete;
  ~NoSync() {
    if (sharing_ != nullptr) sharing_->set_synchronised(before_);
  }

 private:
  template <class Holder>
  friend class DistributedDataParallel;
  template <class Holder>
  friend class FullyShardedDataParallel;
  NoSync(detail::Sharing& sharing, bool active)
      : sharing_(&sharing), before_(sharing.synchronised()) {
    if (active) sharing.set_synchronised(false);
  }

  detail::Sharing* sharing_;  // nullptr after a move
  bool before_;
};

}  // namespace convoy

// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/single/single_group.h"

#include "convoy/core/base/error.h"

namespace convoy::comm {
namespace {

class DoneWork : public Work {
 public:
  void wait() override {}
};

// Copies nothing when both are the same memory.
std::unique_ptr<Work> copied(const at::Tensor& from, const at::Tensor& to) {
  const at::NoGradGuard no_grad;
  if (from.data_ptr() != to.data_ptr()) to.copy_(from);
  return std::make_unique<DoneWork>();
}

}  // namespace

std::unique_ptr<Work> SingleGroup::start_all_reduce(at::Tensor, Reduction) {
  return std::make_unique<DoneWork>();
}

std::unique_ptr<Work> SingleGroup::start_reduce_scatter(at::Tensor whole, at::Tensor own,
                                                        Reduction) {
  return copied(whole, own);
}

std::unique_ptr<Work> SingleGroup::start_all_gather(at::Tensor own, at::Tensor whole) {
  return copied(own, whole);
}

std::unique_ptr<Group> SingleGroup::split(int, std::string_view) {
  return std::make_unique<SingleGroup>();
}

void SingleGroup::broadcast(at::Tensor, int root) {
  CONVOY_INVARIANT(root == 0, "root {} of a group of one", root);
}

std::vector<std::string> SingleGroup::all_gather_bytes(std::string_view bytes) {
  return {std::string(bytes)};
}

void SingleGroup::barrier() {}

void SingleGroup::abort() {}

}  // namespace convoy::comm

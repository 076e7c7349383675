// SPDX-License-Identifier: Apache-2.0
#include "convoy/comm/single/single_group.h"

#include "convoy/base/error.h"

namespace convoy::comm {
namespace {

class DoneWork : public Work {
 public:
  void wait() override {}
};

}  // namespace

std::unique_ptr<Work> SingleGroup::start_all_reduce_sum(at::Tensor) {
  return std::make_unique<DoneWork>();
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

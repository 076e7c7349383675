// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/internal/coalesced.h"

#include <ATen/ATen.h>

#include <map>

namespace convoy::detail {

void broadcast_coalesced(comm::Group& group, const std::vector<at::Tensor>& tensors, int root) {
  const at::NoGradGuard no_grad;
  std::map<at::ScalarType, std::vector<at::Tensor>> by_type;
  for (const at::Tensor& tensor : tensors)
    by_type[tensor.scalar_type()].push_back(tensor.variable_data());
  for (const auto& [type, same] : by_type) {
    std::vector<at::Tensor> pieces;
    for (const at::Tensor& tensor : same) pieces.push_back(tensor.reshape({-1}));
    const at::Tensor flat = at::cat(pieces);
    group.broadcast(flat, root);
    if (group.rank() == root) continue;
    int64_t begin = 0;
    for (const at::Tensor& tensor : same) {
      tensor.copy_(flat.narrow(0, begin, tensor.numel()).view(tensor.sizes()));
      begin += tensor.numel();
    }
  }
}

}  // namespace convoy::detail

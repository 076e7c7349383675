// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/simd/panel_memory.h"

#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/accumulate.h>

#include <mutex>

#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

// A block may be larger than what it will hold: pages that are never touched cost no memory.
constexpr int64_t kPanelBlockBytes = 16 << 20;
// Tensors above this size get memory of their own, which is large enough for huge pages.
constexpr int64_t kLargestBytes = kPanelBlockBytes / 2;
constexpr int64_t kAlignmentBytes = 64;

class PanelBlocks {
 public:
  at::Tensor take(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (!block_.defined() || used_bytes_ + bytes > kPanelBlockBytes) {
      const c10::InferenceMode normal(false);  // the next caller may be outside of that mode
      block_ = at::empty({kPanelBlockBytes}, at::kByte);
      used_bytes_ = 0;
    }
    at::Tensor taken = block_.narrow(0, used_bytes_, bytes);
    used_bytes_ += round_up(bytes, kAlignmentBytes);
    return taken;
  }

 private:
  std::mutex mutex_;
  at::Tensor block_;
  int64_t used_bytes_ = 0;
};

}  // namespace

at::Tensor empty_panels(at::IntArrayRef sizes, at::ScalarType dtype) {
  const int64_t bytes =
      c10::multiply_integers(sizes) * static_cast<int64_t>(c10::elementSize(dtype));
  if (bytes == 0 || bytes > kLargestBytes) return at::empty(sizes, dtype);
  static auto* const blocks = new PanelBlocks;  // outlives every static tensor
  return blocks->take(bytes).view(dtype).view(sizes);
}

}  // namespace convoy::kernels

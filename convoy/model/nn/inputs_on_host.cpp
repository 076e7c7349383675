// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/inputs_on_host.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

namespace convoy::nn {
namespace {

c10::Stream stream_of_blocks(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device);
}

}  // namespace

InputsOnHost::InputsOnHost(at::Device device)
    : device_(device),
      stream_(c10::impl::VirtualGuardImpl(device.type()).getStreamFromGlobalPool(device)) {}

size_t InputsOnHost::keep(const at::Tensor& x) {
  const auto options = at::TensorOptions().dtype(x.scalar_type()).pinned_memory(true);
  Kept& kept = kept_.emplace_back(Kept{.host = at::empty(x.sizes(), options)});
  c10::Event made(device_.type());
  made.record(stream_of_blocks(device_));
  made.block(stream_);
  const c10::StreamGuard guard(stream_);
  kept.host.copy_(x.detach(), /*non_blocking=*/true);
  x.record_stream(stream_);
  return kept_.size() - 1;
}

void InputsOnHost::bring(Kept& kept) {
  const c10::StreamGuard guard(stream_);
  kept.back = kept.host.to(device_, /*non_blocking=*/true);
  kept.host = at::Tensor();
  kept.is_back.emplace(device_.type());
  kept.is_back->record(stream_);
}

at::Tensor InputsOnHost::take(size_t number) {
  Kept& kept = kept_.at(number);
  if (!kept.back.defined()) bring(kept);
  const c10::Stream current = stream_of_blocks(device_);
  kept.is_back->block(current);
  kept.back.record_stream(current);
  if (number > 0) bring(kept_[number - 1]);
  return std::exchange(kept.back, at::Tensor());
}

}  // namespace convoy::nn

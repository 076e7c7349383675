// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/device/piece_reader.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace convoy::device {
namespace {

std::span<const std::byte> bytes_of(const at::Tensor& host, int64_t count) {
  return {static_cast<const std::byte*>(host.const_data_ptr()), static_cast<size_t>(count)};
}

}  // namespace

void PieceReader::start(Buffer& buffer, const at::Tensor& piece) {
  if (!buffer.host.defined() || buffer.host.numel() < piece.numel())
    buffer.host = at::empty({piece.numel()}, at::TensorOptions(at::kByte).pinned_memory(true));
  const c10::StreamGuard guard(*stream_);
  buffer.host.narrow(0, 0, piece.numel()).copy_(piece, /*non_blocking=*/true);
  buffer.copied.emplace(stream_->device_type());
  buffer.copied->record(*stream_);
}

void PieceReader::read(const at::Tensor& tensor, const Use& use) {
  const at::NoGradGuard no_grad;
  const at::Tensor whole = tensor.detach().contiguous();
  if (whole.is_cpu()) return use(bytes_of(whole, static_cast<int64_t>(whole.nbytes())));
  if (whole.numel() == 0) return;
  const c10::DeviceGuard guard(whole.device());
  const c10::impl::VirtualGuardImpl device(whole.device().type());
  if (!stream_) stream_ = device.getStreamFromGlobalPool(whole.device());
  c10::Event made_contiguous(whole.device().type());
  made_contiguous.record(device.getStream(whole.device()));
  made_contiguous.block(*stream_);
  const at::Tensor bytes = whole.view({-1}).view(at::kByte);
  const auto piece_from = [&](int64_t begin) {
    return bytes.narrow(0, begin, std::min(piece_bytes_, bytes.numel() - begin));
  };
  start(buffers_[0], piece_from(0));
  size_t own = 0;
  for (int64_t begin = 0; begin < bytes.numel(); begin += piece_bytes_, own = 1 - own) {
    if (begin + piece_bytes_ < bytes.numel())
      start(buffers_[1 - own], piece_from(begin + piece_bytes_));
    buffers_[own].copied->synchronize();
    use(bytes_of(buffers_[own].host, std::min(piece_bytes_, bytes.numel() - begin)));
  }
}

}  // namespace convoy::device

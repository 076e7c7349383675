// SPDX-License-Identifier: Apache-2.0
//
// Copies tensors of a device to the host in pieces, through two pinned buffers, whatever the size
// of the tensor. While the caller uses one piece, the next is copied on a separate stream.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

namespace convoy::device {

// One thread. Keeps its buffers until its end.
class PieceReader {
 public:
  using Use = std::function<void(std::span<const std::byte>)>;

  explicit PieceReader(int64_t piece_bytes = int64_t{32} << 20) : piece_bytes_(piece_bytes) {}

  // Passes the bytes of `tensor`, row-major, to `use`. Blocks. Work that wrote the bytes on another
  // stream than the current one must have ended. A CPU tensor is one piece.
  void read(const at::Tensor& tensor, const Use& use);

 private:
  struct Buffer {
    at::Tensor host;
    std::optional<c10::Event> copied;
  };
  void start(Buffer& buffer, const at::Tensor& piece);

  const int64_t piece_bytes_;
  std::optional<c10::Stream> stream_;
  std::array<Buffer, 2> buffers_;
};

}  // namespace convoy::device

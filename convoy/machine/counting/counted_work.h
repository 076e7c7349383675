// SPDX-License-Identifier: Apache-2.0
//
// One thing that the host asked of a device.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace convoy::counting {

// The kind of data that work moves. States: what training keeps from step to step besides the
// weights.
enum class Content { Other, Weights, KeysAndValues, States };
inline constexpr size_t kContents = 4;

enum class WorkKind {
  Host,       // views and allocations: the device does nothing
  Op,         // an op of LibTorch that the device computes
  OwnKernel,  // a kernel of Convoy
  Upload,
  Download,
  Collective,      // between ranks: starts after all earlier work and runs beside later work
  CollectiveWait,  // the device waits for the end of a collective
};

// The tiles of FlashAttention are blocks of queries (backward: of keys), which are never split.
enum class ProductKind {
  Matrix,
  Attention,
  AttentionBackward,
  CudnnAttention,
  CudnnAttentionBackward,
};

// Sizes of one matrix product. The work is `batch` such products.
struct ProductShape {
  int64_t batch = 0;  // 0: the work is no product
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t inner = 0;             // elements of each sum
  bool on_tensor_cores = false;  // 16-bit elements
  ProductKind kind = ProductKind::Matrix;

  bool operator==(const ProductShape&) const = default;
};

struct Work {
  std::string name;  // "mm", "rms_norm_bf16"
  WorkKind kind = WorkKind::Host;
  int64_t launches = 0;             // kernels, fills and copies within the device
  bool host_waits = false;          // until the device has done all earlier work
  bool host_reads_earlier = false;  // the host waits only for work before the recorded work
  std::array<double, kContents> bytes = {};  // read and written, by Content
  double flops = 0;
  ProductShape product = {};
  int64_t collective = 0;  // number of the collective that this work starts or waits for
  double link_bytes = 0;   // bytes that each rank sends in that collective

  double& bytes_of(Content content) { return bytes[static_cast<size_t>(content)]; }
  double bytes_of(Content content) const { return bytes[static_cast<size_t>(content)]; }
  double total_bytes() const { return bytes[0] + bytes[1] + bytes[2] + bytes[3]; }
};

}  // namespace convoy::counting

// SPDX-License-Identifier: Apache-2.0
//
// How fast GPUs are, by their makers' figures, and what is assumed of programs on them. All
// predictions use this table.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace convoy::counting {

struct GpuSpeed {
  const char* name;
  const char* words;
  double tensor_flops;     // per second: bf16, dense, fp32 sums
  double fp32_flops;       // per second, without tensor cores: LibTorch's fp32 products
  double bytes;            // per second, of its memory
  int64_t memory_bytes;    // as its driver reports them
  int64_t processors;      // SMs
  double host_bytes;       // per second, over the bus, one way
  double link_bytes;       // per second, to the other GPUs of the host, one way
  double attention_share;  // share of `tensor_flops` that FlashAttention-2 reaches
  double attention_backward_share;
  double cudnn_share;  // share that cuDNN's attention reaches
  double cudnn_backward_share;
};

std::span<const GpuSpeed> gpu_speeds();
// Throws ConfigError.
const GpuSpeed& gpu_speed(const std::string& name);

struct Assumptions {
  // Constants of the device.
  double bytes_share = 0.90;       // share of `bytes` that a kernel reaches
  double product_share = 0.71;     // share of the peak that a large product reaches
  double kernel_seconds = 4.5e-6;  // added to each kernel's time for bytes and sums
  int64_t tile_rows = 128;         // part of a product's result that one SM computes
  int64_t tile_columns = 128;
  double link_share = 0.80;       // share of `link_bytes` that a collective reaches
  double link_seconds = 20.0e-6;  // time that the smallest collective takes
  // Constants of the host.
  double op_seconds = 17.0e-6;          // an op of LibTorch with its first launch
  double more_launch_seconds = 8.5e-6;  // each further launch of an op, and of Convoy's own kernels
  double view_seconds = 2.4e-6;         // a view, or memory from the caching allocator
  double copy_seconds = 6.0e-6;         // time to request a copy between host and device
  double wait_seconds = 10.0e-6;  // time from the end of the device's work until the host goes on
};

const Assumptions& assumptions();

}  // namespace convoy::counting

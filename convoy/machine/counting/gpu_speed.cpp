// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/counting/gpu_speed.h"

#include <fmt/ranges.h>

#include <array>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::counting {
namespace {

// NVIDIA's data sheets: H100 (SXM and PCIe), H200 (SXM), A100 80 GB (SXM), L40S, and the Ada
// architecture's white paper for RTX 4090 (bf16 with fp32 sums). Figures with sparsity are halved.
// Bus: PCIe 5 x16 reaches about 55 of 64 GB/s, PCIe 4 x16 about 25 of 32 GB/s.
// Links: half of NVLink's 900 GB/s (H100, H200) and 600 GB/s (A100), which count both directions.
// GPUs without NVLink use the bus.
// Attention: 4 FLOPs for each feature of a visible pair of query and key. FlashAttention-2, which
// LibTorch has, reaches 50 to 73 % of an A100's peak in forward passes (arXiv:2307.08691), and 35 %
// of an H100's, whose tensor cores its instructions do not fill (arXiv:2407.08608). Backward passes
// take 2.5 times the operations, five products instead of two. They reach up to 63 % of an A100's
// peak (50 % is taken here, as 60 % is forward), and 310 TFLOP/s on an H100 for heads of 128 and
// rows of 4,096 (279 for heads of 64; figure 6 of the second paper). L40S and RTX 4090 are assumed
// to be like the A100. cuDNN's attention reaches 500 to 600 TFLOP/s forward and 400 to 500 backward
// on an H100 for such rows (figures 5 and 6 there); this was not measured here. On the other GPUs
// it is assumed to be as fast as FlashAttention-2.
// Memory: MiB that nvidia-smi shows.
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr std::array kSpeeds{
    GpuSpeed{"h100", "H100 SXM", 989.4e12, 66.9e12, 3.35e12, 81559 * kMiB, 132, 55e9, 450e9, 0.35,
             0.31, 0.55, 0.45},
    GpuSpeed{"h200", "H200 SXM", 989.4e12, 66.9e12, 4.8e12, 143771 * kMiB, 132, 55e9, 450e9, 0.35,
             0.31, 0.55, 0.45},
    GpuSpeed{"h100-pcie", "H100 PCIe", 756e12, 51.2e12, 2.0e12, 81559 * kMiB, 114, 55e9, 55e9, 0.35,
             0.31, 0.55, 0.45},
    GpuSpeed{"a100", "A100 SXM 80 GB", 312e12, 19.5e12, 2.039e12, 81920 * kMiB, 108, 25e9, 300e9,
             0.60, 0.50, 0.60, 0.50},
    GpuSpeed{"l40s", "L40S", 362e12, 91.6e12, 0.864e12, 46068 * kMiB, 142, 25e9, 25e9, 0.60, 0.50,
             0.60, 0.50},
    GpuSpeed{"rtx4090", "RTX 4090", 165.2e12, 82.6e12, 1.008e12, 24564 * kMiB, 128, 25e9, 25e9,
             0.60, 0.50, 0.60, 0.50},
};

}  // namespace

std::span<const GpuSpeed> gpu_speeds() { return kSpeeds; }

const GpuSpeed& gpu_speed(const std::string& name) {
  std::vector<std::string> names;
  for (const GpuSpeed& speed : kSpeeds) {
    if (name == speed.name) return speed;
    names.emplace_back(speed.name);
  }
  throw ConfigError(fmt::format("no speed of a GPU `{}` is known{}; there are {}", name,
                                did_you_mean(name, names), fmt::join(names, ", ")),
                    {.key = "device"});
}

// - bytes_share: device-to-device copies and STREAM reach 88 to 92 % on A100 and H100.
// - product_share: 700 of 989 TFLOP/s for cuBLAS at the sizes of language models; the best shape
//   reaches 80 % (MAMF table of github.com/stas00/ml-engineering).
// - kernel_seconds: measured on an H200 (docs/benchmarks-log.md). Decode steps as CUDA graphs took
//   4.4 to 5.8 us a kernel more than their bytes at 90 %, trainings about as much: the gap between
//   kernels that wait for each other, and the time in which a kernel's first and last blocks leave
//   the memory idle.
// - link_share: nccl-tests' bus bandwidth of large messages, 230 to 250 GB/s on eight A100s of 300,
//   35 to 45 GB/s over PCIe 5 of 55. Switches that add up (NVLS) reach 460 to 480 in sums on H100.
// - op_seconds, more_launch_seconds, view_seconds: the host of that H200, a virtual machine, needed
//   18 us a launch in decoding and in training of Qwen2.5-0.5B. Shared out in the proportions of 5,
//   2.5 and 0.7 us that are usual for LibTorch's dispatcher, allocator and launches.
const Assumptions& assumptions() {
  static constexpr Assumptions kAssumed;
  return kAssumed;
}

}  // namespace convoy::counting

// SPDX-License-Identifier: Apache-2.0
//
// Predicts the time that recorded work would take. The host makes one request after another, and
// the device does them in order. Where the host waits, it goes on when the device has done all
// requests, or all requests before this one.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "convoy/machine/counting/counted_work.h"
#include "convoy/machine/counting/gpu_speed.h"

namespace convoy::counting {

// All work of one name.
struct WorkTotal {
  std::string name;
  int64_t calls = 0;
  int64_t launches = 0;
  double bytes = 0;
  double flops = 0;
  double device_seconds = 0;
};

// All products of one shape.
struct ProductTotal {
  std::string name;
  ProductShape shape;
  int64_t calls = 0;
  double flops = 0;
  double device_seconds = 0;
};

// All collectives of one name.
struct LinkTotal {
  std::string name;
  int64_t calls = 0;
  double link_bytes = 0;  // bytes that each rank sends
  double seconds = 0;
};

struct Prediction {
  int64_t launches = 0;
  int64_t uploads = 0;
  int64_t downloads = 0;
  int64_t host_waits = 0;
  int64_t host_ops = 0;  // views and allocations
  std::array<double, kContents> bytes = {};
  double flops = 0;
  double host_seconds = 0;    // time that the host launches, without waits
  double device_seconds = 0;  // time that the device works, without gaps
  // The time from the first request until host and device are done. If the host reads earlier
  // results and the same work repeats: the time from one end of the device's work to the next one.
  double seconds = 0;
  double link_bytes = 0;       // bytes that each rank sends
  double link_seconds = 0;     // time that collectives take, beside the device's work
  double exposed_seconds = 0;  // part of `seconds` that would go away if collectives took no time
  std::vector<LinkTotal> collectives;
  std::vector<WorkTotal> totals;       // the device's work, the longest first
  std::vector<ProductTotal> products;  // products, the longest first
};

// AsAGraph: one CUDA graph, which the host starts in microseconds whatever its length (2.5 us plus
// 1 ns for each kernel:
// developer.nvidia.com/blog/constant-time-launch-for-straight-line-cuda-graphs).
enum class Launching { OneByOne, AsAGraph };

double device_seconds(const Work& work, const GpuSpeed& gpu);
Prediction predict(std::span<const Work> work, const GpuSpeed& gpu,
                   Launching launching = Launching::OneByOne);

}  // namespace convoy::counting

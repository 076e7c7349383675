// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/measure_peak.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"
#include "convoy/model/kernels/frozen_linear/frozen_linear.h"
#include "convoy/model/sizing/known_peak.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

// Sides of the matrices: too large for a CPU's caches, large enough to use a whole GPU.
constexpr int64_t kCpuSide = 2048;
constexpr int64_t kGpuSide = 8192;
constexpr int64_t kGpuProducts = 16;  // products per measurement: launches cost time too
constexpr std::chrono::milliseconds kTime{1500};

// Reading a number of the result waits until the device has finished.
void wait_for(const at::Tensor& result) { result.flatten()[0].item<float>(); }

double seconds_on(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Processor time of each thread that computes a part of a product.
std::vector<double> processor_seconds_by_thread() {
  std::vector<double> seconds(static_cast<size_t>(at::get_num_threads()));
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t begin, int64_t end) {
    for (int64_t thread = begin; thread < end; ++thread)
      seconds[static_cast<size_t>(thread)] = seconds_on(CLOCK_THREAD_CPUTIME_ID);
  });
  return seconds;
}

// The time that `work` needs. On CPUs that is the processor time of the busiest thread: a product
// takes longer than a core's time slice, so on a busy machine other programs interrupt every
// product.
double needed_seconds(bool on_cpus, const std::function<void()>& work) {
  if (!on_cpus) {
    const Clock::time_point begin = Clock::now();
    work();
    return seconds_since(begin);
  }
  const std::vector<double> before = processor_seconds_by_thread();
  const double all_before = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
  work();
  const double all = seconds_on(CLOCK_PROCESS_CPUTIME_ID) - all_before;
  const std::vector<double> after = processor_seconds_by_thread();
  // Threads that a library started itself are counted only in the time of the process.
  double needed = all / static_cast<double>(after.size());
  for (size_t thread = 0; thread < after.size(); ++thread)
    needed = std::max(needed, after[thread] - before[thread]);
  return needed;
}

// The rate of the fastest product within kTime. Slower products were disturbed by other programs.
double best_flops(bool on_cpus, const std::function<at::Tensor()>& product, double flops,
                  int64_t products) {
  wait_for(product());
  double best = 0;
  const Clock::time_point end = Clock::now() + kTime;
  do {
    const double seconds = needed_seconds(on_cpus, [&] {
      at::Tensor result;
      for (int64_t number = 0; number < products; ++number) result = product();
      wait_for(result);
    });
    best = std::max(best, flops * static_cast<double>(products) / seconds);
  } while (Clock::now() < end);
  return best;
}

struct Peak {
  double flops = 0;
  std::string by;
};

// Convoy's product with a packed weight, or LibTorch's: the faster one.
Peak measured(at::Device device, at::ScalarType dtype) {
  const at::NoGradGuard no_grad;
  const int64_t side = device.is_cpu() ? kCpuSide : kGpuSide;
  const int64_t products = device.is_cpu() ? 1 : kGpuProducts;
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  const at::Tensor x = at::randn({side, side}, options);
  const at::Tensor weight = at::randn({side, side}, options);
  const double flops =
      2.0 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side);
  const kernels::FrozenLinear packed(weight, {});
  const auto best = [&](const std::function<at::Tensor()>& product) {
    return best_flops(device.is_cpu(), product, flops, products);
  };
  const Peak own{best([&] { return packed.product(x); }), "convoy"};
  const Peak library{best([&] { return at::mm(x, weight); }), "libtorch"};
  return own.flops > library.flops ? own : library;
}

}  // namespace

nlohmann::ordered_json measure_peak(const std::string& devices, const Log& log) {
  const device::RankDevice rank_device = device::take_rank_device(devices, 0);
  device::share_cpu_threads(1);
  const std::string kind = at::DeviceTypeName(rank_device.device.type(), /*lower_case=*/true);
  std::filesystem::path file = device::chosen_threads() > 0 ? "" : sizing::peaks_file();
  nlohmann::ordered_json result = {
      {"bench", "peak"}, {"device", kind}, {"peaks", nlohmann::ordered_json::array()}};
  for (const std::string dtype : {"fp32", "bf16"}) {
    if (dtype == "bf16" && !rank_device.has_bf16) continue;
    const Peak peak = measured(rank_device.device, device::parse_dtype(dtype));
    result["peaks"].push_back(
        {{"dtype", dtype}, {"flops_per_second", peak.flops}, {"by", peak.by}});
    if (file.empty()) continue;
    try {
      sizing::remember_peak(file, sizing::peak_owner(kind, dtype), peak.flops);
    } catch (const IoError& error) {
      log.warning(fmt::format("the figures are not kept for trainings: {}", error.sentence()));
      file.clear();
    }
  }
  result["file"] = file.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(file.string());
  if (!file.empty()) log.info(fmt::format("kept in {}", file.string()));
  return result;
}

}  // namespace convoy::recipes

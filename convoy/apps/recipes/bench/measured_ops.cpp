// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/measured_ops.h"

#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "convoy/core/base/seconds_since.h"

namespace convoy::recipes {
namespace {

using Clock = std::chrono::steady_clock;

// Global, because LibTorch's callbacks get no object.
struct Meter {
  at::Device device = at::kCPU;
  double own_seconds = 0;  // the cost of a call that does next to nothing
  int64_t begun = 0;
  std::map<std::string, std::vector<double>> found = {};
};
Meter* meter = nullptr;

struct Begun : at::ObserverContext {
  int64_t before = 0;  // calls that began before this one
  Clock::time_point start;
};

void wait_for(at::Device device) {
  if (!device.is_cpu())
    c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

std::unique_ptr<at::ObserverContext> begin(const at::RecordFunction&) {
  auto begun = std::make_unique<Begun>();
  begun->before = meter->begun++;
  wait_for(meter->device);
  begun->start = Clock::now();
  return begun;
}

void end(const at::RecordFunction& called, at::ObserverContext* context) {
  wait_for(meter->device);
  const auto* const begun = static_cast<const Begun*>(context);
  const double seconds = seconds_since(begun->start);
  // Number of calls: this call and the calls within it.
  const auto calls = static_cast<double>(meter->begun - begun->before);
  std::string_view name = called.name();
  if (name.starts_with("aten::")) name.remove_prefix(6);
  meter->found[std::string(name == "copy_" ? "copy" : name)].push_back(
      std::max(seconds - calls * meter->own_seconds, 0.0));
}

class Metering {
 public:
  explicit Metering(Meter& with) {
    meter = &with;
    handle_ = at::addGlobalCallback(
        at::RecordFunctionCallback(&begin, &end).scopes({at::RecordScope::FUNCTION}));
  }
  Metering(const Metering&) = delete;
  Metering& operator=(const Metering&) = delete;
  ~Metering() {
    at::removeCallback(handle_);
    meter = nullptr;
  }

 private:
  at::CallbackHandle handle_ = 0;
};

double seconds_of_the_smallest_op(at::Device device) {
  constexpr int kCalls = 25;
  at::Tensor one = at::zeros({1}, device);
  Meter of_fills{.device = device};
  {
    const Metering metering(of_fills);
    for (int call = 0; call < kCalls; ++call) one.fill_(1);
  }
  std::vector<double>& fills = of_fills.found["fill_"];
  std::nth_element(fills.begin(), fills.begin() + kCalls / 2, fills.end());
  return fills[kCalls / 2];
}

}  // namespace

std::map<std::string, double> measure_ops(at::Device device, const std::function<void()>& work) {
  Meter of_work{.device = device, .own_seconds = seconds_of_the_smallest_op(device)};
  {
    const Metering metering(of_work);
    work();
  }
  std::map<std::string, double> seconds;
  for (const auto& [name, calls] : of_work.found)
    for (const double call : calls) seconds[name] += call;
  return seconds;
}

}  // namespace convoy::recipes

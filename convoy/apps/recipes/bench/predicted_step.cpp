// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/predicted_step.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/counting/counting_device.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/ops/cuda_devices.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kListedProducts = 12;

Json ops_of(const counting::Prediction& predicted) {
  Json ops = Json::array();
  for (const counting::WorkTotal& total : predicted.totals)
    ops.push_back({{"op", total.name},
                   {"calls", total.calls},
                   {"launches", total.launches},
                   {"bytes", std::llround(total.bytes)},
                   {"device_ms", total.device_seconds * 1e3},
                   {"share", total.device_seconds / predicted.device_seconds}});
  return ops;
}

Json assumed_of(const counting::GpuSpeed& gpu) {
  const counting::Assumptions& assumed = counting::assumptions();
  return {{"gpu", gpu.words},
          {"tensor_tflops", gpu.tensor_flops / 1e12},
          {"fp32_tflops", gpu.fp32_flops / 1e12},
          {"terabytes_per_s", gpu.bytes / 1e12},
          {"bytes_share", assumed.bytes_share},
          {"product_share", assumed.product_share},
          {"attention_share", gpu.attention_share},
          {"attention_backward_share", gpu.attention_backward_share},
          {"cudnn_share", gpu.cudnn_share},
          {"cudnn_backward_share", gpu.cudnn_backward_share},
          {"kernel_us", assumed.kernel_seconds * 1e6},
          {"link_gigabytes_per_s", gpu.link_bytes / 1e9},
          {"link_share", assumed.link_share},
          {"link_us", assumed.link_seconds * 1e6},
          {"op_us", assumed.op_seconds * 1e6},
          {"more_launch_us", assumed.more_launch_seconds * 1e6},
          {"view_us", assumed.view_seconds * 1e6},
          {"copy_us", assumed.copy_seconds * 1e6},
          {"wait_us", assumed.wait_seconds * 1e6}};
}

Json products_of(const counting::Prediction& predicted) {
  Json products = Json::array();
  for (const counting::ProductTotal& total : predicted.products) {
    if (products.size() == kListedProducts) break;
    products.push_back({{"op", total.name},
                        {"batch", total.shape.batch},
                        {"rows", total.shape.rows},
                        {"inner", total.shape.inner},
                        {"columns", total.shape.columns},
                        {"calls", total.calls},
                        {"flops", total.flops},
                        {"device_ms", total.device_seconds * 1e3}});
  }
  return products;
}

Json collectives_of(const counting::Prediction& predicted) {
  Json collectives = Json::array();
  for (const counting::LinkTotal& total : predicted.collectives)
    collectives.push_back({{"op", total.name},
                           {"calls", total.calls},
                           {"link_bytes", std::llround(total.link_bytes)},
                           {"link_ms", total.seconds * 1e3}});
  return collectives;
}

void put_moved_bytes(const std::vector<MovedBytes>& all, const counting::Prediction& predicted,
                     Json& result) {
  for (const MovedBytes& moved : all) {
    result[moved.name + "_bytes"] =
        std::llround(predicted.bytes[static_cast<size_t>(moved.content)]);
    if (moved.least) result["least_" + moved.name + "_bytes"] = std::llround(*moved.least);
  }
}

}  // namespace

void install_counting_gpu() {
  counting::install();
  kernels::use_cuda_ops_on_private_device();
  kernels::take_launches(&counting::count_launch);
}

Json report_of(const CountedStep& counted, const counting::GpuSpeed& gpu,
               const std::string& dtype) {
  const counting::Prediction predicted = counting::predict(counted.work, gpu, counted.launching);
  const double peak = dtype == "bf16" ? gpu.tensor_flops : gpu.fp32_flops;
  const double roofline = std::max(counted.least_bytes / gpu.bytes, counted.flops / peak);
  Json result = {{"tool", "convoy"}, {"device", gpu.name}};
  result.update(counted.described);
  result.update({{"launches", predicted.launches},
                 {"uploads", predicted.uploads},
                 {"downloads", predicted.downloads},
                 {"host_waits", predicted.host_waits},
                 {"host_ops", predicted.host_ops}});
  put_moved_bytes(counted.moved, predicted, result);
  result.update(counted.memory);
  if (!predicted.collectives.empty())
    result.update({{"link_bytes", std::llround(predicted.link_bytes)},
                   {"link_ms", predicted.link_seconds * 1e3},
                   {"exposed_ms", predicted.exposed_seconds * 1e3},
                   {"collectives", collectives_of(predicted)}});
  result.update({{"flops", predicted.flops},
                 {"least_flops", counted.flops},
                 {"cuda_graph", counted.launching == counting::Launching::AsAGraph},
                 {"host_ms", predicted.host_seconds * 1e3},
                 {"device_ms", predicted.device_seconds * 1e3},
                 {"predicted_ms", predicted.seconds * 1e3},
                 {"roofline_ms", roofline * 1e3},
                 {"roofline_share", roofline / predicted.seconds},
                 {"tokens_per_s", static_cast<double>(counted.tokens) / predicted.seconds},
                 {"mfu", counted.flops / (peak * predicted.seconds)},
                 {"ops", ops_of(predicted)},
                 {"products", products_of(predicted)},
                 {"assumed", assumed_of(gpu)}});
  return result;
}

double time_steps(at::Device device, int64_t steps, const std::function<void()>& step) {
  const auto wait = [&] {
    if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(0);
  };
  wait();
  const auto start = std::chrono::steady_clock::now();
  for (int64_t count = 0; count < steps; ++count) step();
  wait();
  return seconds_since(start) / static_cast<double>(steps);
}

}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cuda/cuda_descents.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "convoy/farm/experiments/cuda/descent_launch.h"

namespace convoy::experiments::cuda {
namespace {

// A launch takes milliseconds, so that a screen on the same GPU does not stand still.
constexpr int64_t kMostSteps = 1000;

DescentPlaces places_of(const DescentBatch& batch) {
  DescentPlaces places;
  uint32_t next = 0;
  const auto place = [&](size_t count) {
    return std::exchange(next, next + static_cast<uint32_t>(count));
  };
  places.weights = place(batch.weights.size());
  places.gradients = place(batch.gradients.size());
  places.velocity = place(batch.velocity.size());
  places.outputs = place(batch.outputs.size());
  places.slopes = place(batch.slopes.size());
  places.measurements = place(batch.measurements.size());
  places.targets = place(batch.targets.size());
  places.residuals = place(batch.targets.size());
  places.numbers = place(sizeof(DescentNumbers) / sizeof(double));
  places.end = next;
  return places;
}

std::vector<DescentLayer> layers_of(const DescentBatch& batch) {
  std::vector<DescentLayer> layers;
  for (size_t at = 0; at < batch.num_layers(); ++at)
    layers.push_back({.inputs = batch.units[at],
                      .outputs = batch.units[at + 1],
                      .first_weight = static_cast<uint32_t>(batch.first_weight(at)),
                      .first_output = static_cast<uint32_t>(batch.first_output(at))});
  return layers;
}

void copy_lane(const std::vector<LaneDoubles>& from, size_t lane, double* to) {
  for (const LaneDoubles& value : from) *to++ = value.lane[lane];
}

// The memory of all problems before the first step.
std::vector<double> numbers_of(const std::vector<DescentBatch>& batches,
                               const DescentPlaces& places) {
  std::vector<double> all;
  for (const DescentBatch& batch : batches)
    for (size_t lane = 0; lane < batch.num_problems; ++lane) {
      all.resize(all.size() + places.end);
      double* const own = all.data() + all.size() - places.end;
      copy_lane(batch.weights, lane, own + places.weights);
      copy_lane(batch.measurements, lane, own + places.measurements);
      copy_lane(batch.targets, lane, own + places.targets);
      const DescentNumbers numbers = {.negative_slope = batch.negative_slope.lane[lane],
                                      .lr = batch.lr.lane[lane],
                                      .momentum = batch.momentum.lane[lane]};
      std::memcpy(own + places.numbers, &numbers, sizeof numbers);
    }
  return all;
}

void descend(const std::shared_ptr<Device>& device, std::vector<DescentBatch>& batches,
             int64_t steps) {
  const DescentBatch& shape = batches[0];
  const DescentPlaces places = places_of(shape);
  const std::vector<DescentLayer> layers = layers_of(shape);
  std::vector<double> numbers = numbers_of(batches, places);
  const Buffer memory(device, numbers.size() * sizeof(double));
  const Buffer of_layers(device, layers.size() * sizeof(DescentLayer));
  const DeviceUse use(*device);
  memory.write(use, numbers.data(), memory.bytes());
  of_layers.write(use, layers.data(), of_layers.bytes());
  MfDescentLaunch launch;
  launch.memory = memory.as<double>();
  launch.num_problems = static_cast<uint32_t>(numbers.size() / places.end);
  launch.layers = of_layers.as<const DescentLayer>();
  launch.num_layers = static_cast<uint32_t>(layers.size());
  launch.n_rows = shape.n_rows;
  launch.num_entries = shape.n_rows * shape.n_cols;
  launch.num_weights = static_cast<uint32_t>(shape.weights.size());
  launch.num_measurements = static_cast<uint32_t>(shape.targets.size());
  launch.uses_velocity = shape.uses_velocity ? 1 : 0;
  launch.activation = shape.activation;
  launch.places = places;
  const nvidia::Kernel& kernel = use.kernel("mf_descend");
  for (int64_t done = 0; done < steps; done += launch.num_steps) {
    launch.num_steps = static_cast<uint32_t>(std::min(kMostSteps, steps - done));
    use.launch(kernel, uint64_t{launch.num_problems} * kBlockThreads, &launch);
  }
  memory.read(use, numbers.data(), memory.bytes());
  const double* own = numbers.data();
  for (DescentBatch& batch : batches)
    for (size_t lane = 0; lane < batch.num_problems; ++lane, own += places.end)
      for (size_t at = 0; at < batch.outputs.size(); ++at)
        batch.outputs[at].lane[lane] = own[places.outputs + at];
}

}  // namespace

MfDescend mf_descend_on(std::shared_ptr<Device> device) {
  return [device = std::move(device)](std::vector<DescentBatch>& batches, int64_t steps) {
    descend(device, batches, steps);
  };
}

}  // namespace convoy::experiments::cuda

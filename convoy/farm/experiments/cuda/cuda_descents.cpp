// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cuda/cuda_descents.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "convoy/farm/experiments/cuda/descent_launch.h"

namespace convoy::experiments::cuda {
namespace {

// A launch of this many steps takes milliseconds, so a display on the same GPU does not freeze.
constexpr uint32_t kMostSteps = 1000;

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

// The initial contents of the GPU memory: the numbers of all problems before the first step.
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
  const Buffer memory = filled(device, numbers), of_layers = filled(device, layers);
  const DeviceUse use(*device);
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
    launch.num_steps = static_cast<uint32_t>(std::min<int64_t>(kMostSteps, steps - done));
    use.launch(kernel, uint64_t{launch.num_problems} * kBlockThreads, &launch);
  }
  memory.read(use, numbers.data(), memory.bytes());
  const double* own = numbers.data();
  for (DescentBatch& batch : batches)
    for (size_t lane = 0; lane < batch.num_problems; ++lane, own += places.end)
      for (size_t at = 0; at < batch.outputs.size(); ++at)
        batch.outputs[at].lane[lane] = own[places.outputs + at];
}

// The problems' values, rows and epochs, concatenated for the GPU.
struct SsmMemory {
  std::vector<SsmDescentProblem> problems;
  std::vector<double> values, rows;
  std::vector<SsmEpoch> epochs;
  uint32_t most_epochs = 0;
};

void add_problem(SsmMemory& memory, const SsmProblem& problem, const std::vector<double>& weights) {
  const SsmDescent& descent = problem.parameters.descent;
  SsmDescentProblem added;
  added.values = memory.values.size();
  added.rows = memory.rows.size();
  added.num_weights = static_cast<uint32_t>(weights.size());
  added.padded_weights = (added.num_weights + kDescentParts - 1) / kDescentParts * kDescentParts;
  added.num_powers = problem.num_powers;
  added.num_rows = static_cast<uint32_t>(problem.rows.size());
  added.is_adam = descent.optimizer() == SsmOptimizer::Adam ? 1 : 0;
  added.is_adaptive = descent.schedule() == SsmSchedule::Adaptive ? 1 : 0;
  added.divisor = problem.divisor;
  std::copy(problem.target.begin(), problem.target.end(), added.targets);
  memory.values.insert(memory.values.end(), weights.begin(), weights.end());
  memory.values.resize(added.values + 3 * size_t{added.padded_weights});
  for (const std::vector<double>& row : problem.rows) {
    memory.rows.insert(memory.rows.end(), row.begin(), row.end());
    memory.rows.resize((memory.rows.size() + kDescentPowers - 1) / kDescentPowers * kDescentPowers);
  }
  memory.problems.push_back(added);
}

// Problems with the same descent settings share one list of epochs.
void add_epochs(SsmMemory& memory, const std::vector<SsmProblem>& problems) {
  for (size_t at = 0; at < problems.size(); ++at) {
    const SsmDescent& descent = problems[at].parameters.descent;
    SsmDescentProblem& own = memory.problems[at];
    if (at > 0 && descent == problems[at - 1].parameters.descent) {
      own.epochs = memory.problems[at - 1].epochs;
      own.num_epochs = memory.problems[at - 1].num_epochs;
      continue;
    }
    const std::vector<SsmEpoch> epochs = ssm_epochs(descent);
    own.epochs = memory.epochs.size();
    own.num_epochs = static_cast<uint32_t>(epochs.size());
    memory.epochs.insert(memory.epochs.end(), epochs.begin(), epochs.end());
    memory.most_epochs = std::max(memory.most_epochs, own.num_epochs);
  }
}

}  // namespace

MfDescend mf_descend_on(std::shared_ptr<Device> device) {
  return [device = std::move(device)](std::vector<DescentBatch>& batches, int64_t steps) {
    descend(device, batches, steps);
  };
}

std::vector<sweep::CellOutcome> descend_ssm(const std::vector<SsmProblem>& problems,
                                            const std::shared_ptr<Device>& device) {
  SsmMemory memory;
  for (const SsmProblem& problem : problems) add_problem(memory, problem, initial_weights(problem));
  add_epochs(memory, problems);
  const Buffer of_problems = filled(device, memory.problems),
               values = filled(device, memory.values), rows = filled(device, memory.rows),
               epochs = filled(device, memory.epochs);
  const DeviceUse use(*device);
  SsmDescentLaunch launch;
  launch.problems = of_problems.as<SsmDescentProblem>();
  launch.values = values.as<double>();
  launch.rows = rows.as<const double>();
  launch.epochs = epochs.as<const SsmEpoch>();
  launch.num_problems = static_cast<uint32_t>(problems.size());
  launch.num_steps = kMostSteps;
  const nvidia::Kernel& kernel = use.kernel("ssm_descend");
  for (; launch.first_step < memory.most_epochs; launch.first_step += launch.num_steps)
    use.launch(kernel, uint64_t{launch.num_problems} * kBlockThreads, &launch);
  values.read(use, memory.values.data(), values.bytes());
  std::vector<sweep::CellOutcome> outcomes;
  for (size_t at = 0; at < problems.size(); ++at) {
    const SsmDescentProblem& own = memory.problems[at];
    const double* const first = memory.values.data() + own.values;
    outcomes.push_back(ssm_outcome(problems[at], {first, first + own.num_weights}, own.num_epochs));
    outcomes.back().gpu = device->name();
  }
  return outcomes;
}

}  // namespace convoy::experiments::cuda

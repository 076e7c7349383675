// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent on a GPU, one problem per block of threads. Each number of a step is computed by
// one thread in the order of operations of the CPU (mf/descent_kernel.cpp,
// ssm/descent_kernels.cpp), so it has the same bits. Barriers keep the phases of a step apart.
// Compiled like guess_kernels.cu.
#include <stddef.h>
#include <stdint.h>

#pragma clang force_cuda_host_device begin
#include "convoy/farm/experiments/ssm/descent_step.h"
#pragma clang force_cuda_host_device end
#include "convoy/farm/experiments/cuda/descent_launch.h"
#include "convoy/machine/nvidia/device_functions.cuh"

#define CONVOY_INLINE inline __attribute__((always_inline))

namespace convoy::experiments::cuda {
namespace {

using nvidia::wait_for_block;

#pragma clang force_cuda_host_device begin
using Doubles = double;
using Integers = int64_t;
#include "convoy/farm/experiments/mf/descent_arithmetic.inl"
#include "convoy/farm/experiments/ssm/descent_arithmetic.inl"
#pragma clang force_cuda_host_device end

// Calls body(place) for 0 .. count - 1, each in one thread of the block.
template <class Body>
CONVOY_DEVICE void for_block(uint32_t count, const Body& body) {
  for (uint32_t at = nvidia::thread_of_block(); at < count; at += kBlockThreads) body(at);
}

class MfSteps {
 public:
  CONVOY_DEVICE MfSteps(const MfDescentLaunch& launch, uint32_t problem)
      : launch_(launch),
        memory_(launch.memory + size_t{problem} * launch.places.end),
        numbers_(*reinterpret_cast<DescentNumbers*>(at(launch.places.numbers))),
        state_(numbers_) {}

  CONVOY_DEVICE void run(double (&shared)[4]) {
    for (uint32_t step = 0; step < launch_.num_steps; ++step) {
      forward();
      loss_slopes();
      backward();
      update(shared);
    }
    forward();
    if (nvidia::thread_of_block() == 0) numbers_ = state_;
  }

 private:
  CONVOY_DEVICE double* at(uint32_t place) const { return memory_ + place; }
  CONVOY_DEVICE double* outputs_of(uint32_t layer) const {
    return at(launch_.places.outputs) + launch_.layers[layer].first_output;
  }
  CONVOY_DEVICE double* slopes_of(uint32_t layer) const {
    return at(launch_.places.slopes) + launch_.layers[layer].first_output;
  }

  CONVOY_DEVICE void forward() {
    const uint32_t rows = launch_.n_rows;
    for (uint32_t number = 0; number < launch_.num_layers; ++number) {
      const DescentLayer layer = launch_.layers[number];
      const double* const weights = at(launch_.places.weights) + layer.first_weight;
      const double* const in = outputs_of(number == 0 ? 0 : number - 1);
      double* const out = outputs_of(number);
      const bool hidden = number + 1 < launch_.num_layers;
      for_block(
          layer.outputs * rows, [&](uint32_t place) __attribute__((always_inline)) {
            double value = 0;
            if (number == 0) {
              value = weights[place];  // the first input is the identity matrix
            } else {
              const double* weight = weights + place / rows * layer.inputs;
              const double* from = in + place % rows;
              for (uint32_t input = 0; input < layer.inputs; ++input, from += rows)
                value += *from * weight[input];
            }
            if (hidden) activate(value, launch_.activation, state_.negative_slope);
            out[place] = value;
          });
      wait_for_block();
    }
  }

  CONVOY_DEVICE void loss_slopes() {
    const uint32_t last = launch_.num_layers - 1, entries = launch_.num_entries;
    const double* const y = outputs_of(last);
    const double* const measurements = at(launch_.places.measurements);
    double* const residuals = at(launch_.places.residuals);
    for_block(
        launch_.num_measurements, [&](uint32_t place) __attribute__((always_inline)) {
          const double* const factors = measurements + size_t{place} * entries;
          double even = 0, odd = 0;
          for (uint32_t entry = 0; entry < entries; entry += 2) {
            even += factors[entry] * y[entry];
            if (entry + 1 < entries) odd += factors[entry + 1] * y[entry + 1];
          }
          residuals[place] = (even + odd - at(launch_.places.targets)[place]) *
                             (2.0 / static_cast<double>(launch_.num_measurements));
        });
    wait_for_block();
    for_block(
        entries, [&](uint32_t entry) __attribute__((always_inline)) {
          double slope = 0;
          for (uint32_t one = 0; one < launch_.num_measurements; ++one)
            slope = slope + residuals[one] * measurements[size_t{one} * entries + entry];
          slopes_of(last)[entry] = slope;
        });
    wait_for_block();
  }

  CONVOY_DEVICE void backward() {
    const uint32_t rows = launch_.n_rows;
    for (uint32_t number = launch_.num_layers - 1; number > 0; --number) {
      const DescentLayer layer = launch_.layers[number];
      const double* const slopes = slopes_of(number);
      const double* const in = outputs_of(number - 1);
      double* const gradients = at(launch_.places.gradients) + layer.first_weight;
      for_block(
          layer.inputs * layer.outputs, [&](uint32_t place) __attribute__((always_inline)) {
            const double* const slope = slopes + place / layer.inputs * rows;
            const double* const value = in + place % layer.inputs * rows;
            double gradient = 0;
            for (uint32_t row = 0; row < rows; ++row) gradient += slope[row] * value[row];
            gradients[place] = gradient;
          });
      const double* const weights = at(launch_.places.weights) + layer.first_weight;
      for_block(
          layer.inputs * rows, [&](uint32_t place) __attribute__((always_inline)) {
            const double* weight = weights + place / rows;
            const double* slope = slopes + place % rows;
            double sum = 0;
            for (uint32_t unit = 0; unit < layer.outputs;
                 ++unit, slope += rows, weight += layer.inputs)
              sum += *slope * *weight;
            if (launch_.activation != MfActivation::Linear) {
              double factor = 0;
              differentiate(factor, in[place], launch_.activation, state_.negative_slope);
              sum = sum * factor;
            }
            slopes_of(number - 1)[place] = sum;
          });
      wait_for_block();
    }
    const DescentLayer first = launch_.layers[0];
    for_block(
        first.outputs * rows, [&](uint32_t place) __attribute__((always_inline)) {
          at(launch_.places.gradients)[place] = slopes_of(0)[place];
        });
    wait_for_block();
  }

  // `sums`: four partial sums of the squared gradients, over interleaved weights.
  CONVOY_DEVICE void update(double (&sums)[4]) {
    const double* const gradients = at(launch_.places.gradients);
    for_block(
        4, [&](uint32_t part) __attribute__((always_inline)) {
          double sum = 0;
          for (uint32_t place = part; place < launch_.num_weights; place += 4)
            sum += gradients[place] * gradients[place];
          sums[part] = sum;
        });
    wait_for_block();
    state_.correction *= kDecay;
    state_.square_average =
        state_.square_average * kDecay + ((sums[0] + sums[2]) + (sums[1] + sums[3])) * (1 - kDecay);
    const double root = __builtin_sqrt(state_.square_average / (1 - state_.correction));
    const double step = state_.lr / (root + kEpsilon);
    for_block(
        launch_.num_weights, [&](uint32_t place) __attribute__((always_inline)) {
          double gradient = gradients[place];
          if (launch_.uses_velocity) {
            double& velocity = at(launch_.places.velocity)[place];
            gradient = velocity * state_.momentum + gradient;
            velocity = gradient;
          }
          double& weight = at(launch_.places.weights)[place];
          weight = weight - step * gradient;
        });
    // No barrier is needed here: the first layer of the next step reads only weights that the same
    // thread wrote, and a barrier follows that layer.
  }

  const MfDescentLaunch& launch_;
  double* memory_;
  DescentNumbers& numbers_;
  DescentNumbers state_;
};

// Shared memory in which the threads of a block exchange numbers.
struct SsmShared {
  double parts[kDescentPowers][kDescentParts];
  double s[kDescentPowers];
  double slope[kDescentPowers];
};

static_assert(kDescentPowers * kDescentParts == kBlockThreads);

class SsmSteps {
 public:
  CONVOY_DEVICE SsmSteps(const SsmDescentLaunch& launch, uint32_t problem, SsmShared& shared)
      : problem_(launch.problems[problem]),
        values_(launch.values + problem_.values),
        rows_(launch.rows + problem_.rows),
        epochs_(launch.epochs + problem_.epochs),
        shared_(shared),
        num_powers_(problem_.num_powers) {}

  CONVOY_DEVICE void run(uint32_t first_step, uint32_t num_steps) {
    if (first_step >= problem_.num_epochs) return;
    const uint32_t left = problem_.num_epochs - first_step;
    const uint32_t end = first_step + (left < num_steps ? left : num_steps);
    double mean_norm = problem_.mean_norm;
    for (uint32_t step = first_step; step < end; ++step) {
      const SsmEpoch epoch = epochs_[step];
      measure();
      find_slope();
      double lr = epoch.lr;
      if (problem_.is_adaptive) lr = adaptive_lr(epoch, gradient_norm(), mean_norm);
      if (problem_.is_adam) lr /= epoch.first_correction;
      for_block(
          problem_.padded_weights, [&](uint32_t place) __attribute__((always_inline)) {
            update(place, lr, epoch.root_correction);
          });
      wait_for_block();
    }
    if (nvidia::thread_of_block() == 0) problem_.mean_norm = mean_norm;
  }

 private:
  CONVOY_DEVICE void measure() {
    const uint32_t power = nvidia::thread_of_block() / kDescentParts,
                   part = nvidia::thread_of_block() % kDescentParts;
    if (power < num_powers_) {
      double sum = 0;
      for (uint32_t place = part; place < problem_.padded_weights; place += kDescentParts) {
        const double value = values_[place];
        double product = value;
        for (uint32_t at = 0; at < power; ++at) product *= value;
        sum += product;
      }
      shared_.parts[power][part] = sum;
    }
    wait_for_block();
    for_block(
        num_powers_, [&](uint32_t at) __attribute__((always_inline)) {
          shared_.s[at] = total_of_parts(shared_.parts[at]) - problem_.targets[at];
        });
    wait_for_block();
  }

  CONVOY_DEVICE void find_slope() {
    for_block(
        num_powers_, [&](uint32_t at) __attribute__((always_inline)) {
          double slope = 0;
          for (uint32_t row = 0; row < problem_.num_rows; ++row)
            slope += row_slope(rows_ + row * kDescentPowers, shared_.s, problem_.divisor, at,
                               num_powers_);
          shared_.slope[at] = slope;
        });
    wait_for_block();
  }

  CONVOY_DEVICE double slope_of(uint32_t place) const {
    double slope = 0;
    gradient(slope, values_[place], shared_.slope, num_powers_);
    return slope * (place < problem_.num_weights ? 1.0 : 0.0);
  }

  CONVOY_DEVICE double gradient_norm() {
    for_block(
        kDescentParts, [&](uint32_t part) __attribute__((always_inline)) {
          double sum = 0;
          for (uint32_t place = part; place < problem_.padded_weights; place += kDescentParts) {
            const double slope = slope_of(place);
            sum += slope * slope;
          }
          shared_.parts[0][part] = sum;
        });
    wait_for_block();
    return __builtin_sqrt(total_of_parts(shared_.parts[0]));
  }

  CONVOY_DEVICE void update(uint32_t place, double lr, double root_correction) {
    const double slope = slope_of(place);
    double& value = values_[place];
    if (!problem_.is_adam) {
      value -= lr * slope;
      return;
    }
    double& first = values_[problem_.padded_weights + place];
    double& second = values_[2 * problem_.padded_weights + place];
    add_moments(first, second, slope);
    adam_update(value, first, __builtin_sqrt(second), lr, root_correction);
  }

  SsmDescentProblem& problem_;
  double* values_;
  const double* rows_;
  const SsmEpoch* epochs_;
  SsmShared& shared_;
  uint32_t num_powers_;
};

}  // namespace

CONVOY_KERNEL void ssm_descend(const SsmDescentLaunch launch) {
  CONVOY_SHARED SsmShared shared;
  for (uint32_t problem = nvidia::block_number(); problem < launch.num_problems;
       problem += nvidia::num_blocks())
    SsmSteps(launch, problem, shared).run(launch.first_step, launch.num_steps);
}

CONVOY_KERNEL void mf_descend(const MfDescentLaunch launch) {
  CONVOY_SHARED double sums[4];
  for (uint32_t problem = nvidia::block_number(); problem < launch.num_problems;
       problem += nvidia::num_blocks())
    MfSteps(launch, problem).run(sums);
}

}  // namespace convoy::experiments::cuda

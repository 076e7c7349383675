// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/descent_kernel.h"

#include <cstring>

namespace convoy::experiments {
namespace {

#include "convoy/farm/experiments/random/descent_lanes.inl"

using Integers = int64_t __attribute__((vector_size(64)));
#include "convoy/farm/experiments/mf/descent_arithmetic.inl"

constexpr uint32_t kRowsTogether = 8;

CONVOY_INLINE void load(Doubles& to, const LaneDoubles& from) {
  std::memcpy(&to, &from, sizeof to);
}
CONVOY_INLINE void store(LaneDoubles& to, const Doubles& from) {
  std::memcpy(to.lane, &from, sizeof from);
}

struct LayerView {
  uint32_t inputs, outputs, rows;
  const LaneDoubles *weights, *in;  // in: null before the first layer, whose input is the identity
  LaneDoubles* out;
};

template <uint32_t kRows>
CONVOY_INLINE void forward_rows(const LayerView& layer, uint32_t row) {
  for (uint32_t unit = 0; unit < layer.outputs; ++unit) {
    Doubles sums[kRows] = {};
    const LaneDoubles* weight = layer.weights + size_t{unit} * layer.inputs;
    const LaneDoubles* from = layer.in + row;
    for (uint32_t input = 0; input < layer.inputs; ++input, ++weight, from += layer.rows) {
      Doubles factor;
      load(factor, *weight);
#pragma GCC unroll 8
      for (uint32_t at = 0; at < kRows; ++at) {
        Doubles value;
        load(value, from[at]);
        sums[at] += value * factor;
      }
    }
    for (uint32_t at = 0; at < kRows; ++at)
      store(layer.out[size_t{unit} * layer.rows + row + at], sums[at]);
  }
}

// Computes d loss / d weight and d loss / d input from d loss / d output of kRows rows. The
// gradients of later rows are added to the gradients of earlier rows.
template <uint32_t kRows>
CONVOY_INLINE void backward_rows(const LayerView& layer, const LaneDoubles* output_slopes,
                                 LaneDoubles* gradients, LaneDoubles* input_slopes, uint32_t row) {
  for (uint32_t input = 0; input < layer.inputs; ++input) {
    Doubles values[kRows], sums[kRows] = {};
#pragma GCC unroll 8
    for (uint32_t at = 0; at < kRows; ++at)
      load(values[at], layer.in[size_t{input} * layer.rows + row + at]);
    for (uint32_t unit = 0; unit < layer.outputs; ++unit) {
      const size_t place = size_t{unit} * layer.inputs + input;
      Doubles weight, gradient = {};
      load(weight, layer.weights[place]);
      if (row > 0) load(gradient, gradients[place]);
#pragma GCC unroll 8
      for (uint32_t at = 0; at < kRows; ++at) {
        Doubles slope;
        load(slope, output_slopes[size_t{unit} * layer.rows + row + at]);
        gradient += slope * values[at];
        sums[at] += slope * weight;
      }
      store(gradients[place], gradient);
    }
    for (uint32_t at = 0; at < kRows; ++at)
      store(input_slopes[size_t{input} * layer.rows + row + at], sums[at]);
  }
}

// Calls function.operator()<rows>(first row) for groups of rows.
template <class Function>
CONVOY_INLINE void for_rows(uint32_t rows, const Function& function) {
  for (uint32_t row = 0; row < rows; row += kRowsTogether) {
    switch (rows - row) {
      case 1:
        function.template operator()<1>(row);
        break;
      case 2:
        function.template operator()<2>(row);
        break;
      case 3:
        function.template operator()<3>(row);
        break;
      case 4:
        function.template operator()<4>(row);
        break;
      case 5:
        function.template operator()<5>(row);
        break;
      case 6:
        function.template operator()<6>(row);
        break;
      case 7:
        function.template operator()<7>(row);
        break;
      default:
        function.template operator()<8>(row);
    }
  }
}

CONVOY_INLINE LayerView view_of(DescentBatch& batch, size_t layer) {
  return {.inputs = batch.units[layer],
          .outputs = batch.units[layer + 1],
          .rows = batch.n_rows,
          .weights = batch.weights.data() + batch.first_weight(layer),
          .in = layer == 0 ? nullptr : batch.outputs.data() + batch.first_output(layer - 1),
          .out = batch.outputs.data() + batch.first_output(layer)};
}

CONVOY_INLINE void forward(DescentBatch& batch) {
  Doubles slope;
  load(slope, batch.negative_slope);
  for (size_t at = 0; at < batch.num_layers(); ++at) {
    const LayerView layer = view_of(batch, at);
    const size_t values = size_t{layer.outputs} * layer.rows;
    if (layer.in == nullptr)
      std::memcpy(static_cast<void*>(layer.out), layer.weights, values * sizeof(LaneDoubles));
    else
      for_rows(
          layer.rows, [&]<uint32_t kRows>(uint32_t row)
                          __attribute__((always_inline)) { forward_rows<kRows>(layer, row); });
    if (at + 1 == batch.num_layers()) break;
    if (batch.activation == MfActivation::Linear) continue;
    for (size_t place = 0; place < values; ++place) {
      Doubles value;
      load(value, layer.out[place]);
      activate(value, batch.activation, slope);
      store(layer.out[place], value);
    }
  }
}

// Computes d loss / d Y, where the loss is the mean of the squared residuals.
CONVOY_INLINE void loss_slopes(DescentBatch& batch) {
  const size_t entries = size_t{batch.n_rows} * batch.n_cols;
  const size_t count = batch.targets.size();
  const size_t last = batch.first_output(batch.num_layers() - 1);
  const LaneDoubles* const y = batch.outputs.data() + last;
  LaneDoubles* const slopes = batch.slopes.data() + last;
  for (size_t entry = 0; entry < entries; ++entry) slopes[entry] = {};
  for (size_t at = 0; at < count; ++at) {
    const LaneDoubles* const factors = batch.measurements.data() + at * entries;
    Doubles target, sums[2] = {};
    load(target, batch.targets[at]);
    for (size_t entry = 0; entry < entries; ++entry) {
      Doubles factor, value;
      load(factor, factors[entry]);
      load(value, y[entry]);
      sums[entry % 2] += factor * value;
    }
    const Doubles residual = (sums[0] + sums[1] - target) * (2.0 / static_cast<double>(count));
    for (size_t entry = 0; entry < entries; ++entry) {
      Doubles factor, slope;
      load(factor, factors[entry]);
      load(slope, slopes[entry]);
      store(slopes[entry], slope + residual * factor);
    }
  }
}

CONVOY_INLINE void backward(DescentBatch& batch) {
  Doubles negative_slope;
  load(negative_slope, batch.negative_slope);
  for (size_t at = batch.num_layers(); at-- > 0;) {
    const LayerView layer = view_of(batch, at);
    LaneDoubles* const slopes = batch.slopes.data() + batch.first_output(at);
    LaneDoubles* const gradients = batch.gradients.data() + batch.first_weight(at);
    const size_t values = size_t{layer.outputs} * layer.rows;
    if (at + 1 < batch.num_layers() && batch.activation != MfActivation::Linear) {
      for (size_t place = 0; place < values; ++place) {
        Doubles value, slope, factor;
        load(value, layer.out[place]);
        load(slope, slopes[place]);
        differentiate(factor, value, batch.activation, negative_slope);
        store(slopes[place], slope * factor);
      }
    }
    if (at == 0) {
      std::memcpy(static_cast<void*>(gradients), slopes, values * sizeof(LaneDoubles));
      return;
    }
    LaneDoubles* const before = batch.slopes.data() + batch.first_output(at - 1);
    for_rows(
        layer.rows, [&]<uint32_t kRows>(uint32_t row) __attribute__((always_inline)) {
          backward_rows<kRows>(layer, slopes, gradients, before, row);
        });
  }
}

CONVOY_INLINE void update(DescentBatch& batch) {
  Doubles sums[4] = {};
  const size_t count = batch.weights.size();
  for (size_t at = 0; at < count; ++at) {
    Doubles gradient;
    load(gradient, batch.gradients[at]);
    sums[at % 4] += gradient * gradient;
  }
  batch.correction *= kDecay;
  Doubles average, lr, momentum;
  load(average, batch.square_average);
  load(lr, batch.lr);
  load(momentum, batch.momentum);
  average = average * kDecay + ((sums[0] + sums[2]) + (sums[1] + sums[3])) * (1 - kDecay);
  store(batch.square_average, average);
  Doubles root = average / (1 - batch.correction);
  for (size_t lane = 0; lane < kDescentLanes; ++lane) root[lane] = __builtin_sqrt(root[lane]);
  const Doubles step = lr / (root + kEpsilon);
  for (size_t at = 0; at < count; ++at) {
    Doubles weight, gradient;
    load(weight, batch.weights[at]);
    load(gradient, batch.gradients[at]);
    if (batch.uses_velocity) {
      Doubles velocity;
      load(velocity, batch.velocity[at]);
      gradient = velocity * momentum + gradient;
      store(batch.velocity[at], gradient);
    }
    store(batch.weights[at], weight - step * gradient);
  }
}

}  // namespace

size_t DescentBatch::first_weight(size_t layer) const {
  size_t place = 0;
  for (size_t at = 0; at < layer; ++at) place += size_t{units[at]} * units[at + 1];
  return place;
}

size_t DescentBatch::first_output(size_t layer) const {
  size_t place = 0;
  for (size_t at = 0; at < layer; ++at) place += size_t{units[at + 1]} * n_rows;
  return place;
}

CONVOY_CLONES void descend_once(DescentBatch& batch) {
  forward(batch);
  loss_slopes(batch);
  backward(batch);
  update(batch);
}

CONVOY_CLONES void evaluate(DescentBatch& batch) { forward(batch); }

}  // namespace convoy::experiments

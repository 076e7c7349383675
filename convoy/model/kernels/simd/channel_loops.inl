// SPDX-License-Identifier: Apache-2.0
//
// Loops over the rows of one window of a signal, [rows, channels]: batch norm, ReLU and pooling. A
// register of channels at a time goes down all rows. See vector16.inl.

void shifted_sums(const float* z, const float* origin, float* sums, float* squares,
                  RowShape shape) {
  for_lanes(shape.width, [&](int64_t at, auto count) {
    const Floats from = load_lanes(origin + at, count);
    Floats total{};
    Floats square{};
    for (int64_t row = 0; row < shape.rows; ++row) {
      const Floats apart = load_lanes(z + row * shape.width + at, count) - from;
      total += apart;
      square += apart * apart;
    }
    store_lanes(sums + at, total, count);
    store_lanes(squares + at, square, count);
  });
}

// A register of channels of one norm's tensors.
template <class Count>
struct NormLanes {
  NormLanes(const ChannelNorm& norm, int64_t at, Count count)
      : mean(load_lanes(norm.mean + at, count)),
        inverse(load_lanes(norm.inverse_deviation + at, count)),
        scale(load_lanes(norm.scale + at, count)),
        offset(load_lanes(norm.offset + at, count)) {}
  CONVOY_INLINE Floats activation(Floats z) const { return z * scale + offset; }
  CONVOY_INLINE Floats normal(Floats z) const { return (z - mean) * inverse; }

  Floats mean;
  Floats inverse;
  Floats scale;
  Floats offset;
};

void activate_pairs(const float* z, const ChannelNorm& norm, float* y, RowShape shape) {
  for_lanes(shape.width, [&](int64_t at, auto count) {
    const NormLanes lanes(norm, at, count);
    for (int64_t pair = 0; pair < shape.rows / 2; ++pair) {
      const float* const first = z + 2 * pair * shape.width + at;
      const Floats a = lanes.activation(load_lanes(first, count));
      const Floats b = lanes.activation(load_lanes(first + shape.width, count));
      store_lanes(y + pair * shape.width + at, larger(larger(b, a), all(0.0f)), count);
    }
  });
}

void activate_mean(const float* z, const ChannelNorm& norm, float* y, RowShape shape) {
  const float share = 1.0f / static_cast<float>(shape.rows);
  for_lanes(shape.width, [&](int64_t at, auto count) {
    const NormLanes lanes(norm, at, count);
    Floats total{};
    for (int64_t row = 0; row < shape.rows; ++row)
      total += larger(lanes.activation(load_lanes(z + row * shape.width + at, count)), all(0.0f));
    store_lanes(y + at, total * share, count);
  });
}

// The larger element of a pair gets the gradient; of equal elements the first one gets it.
struct PairGradient {
  Floats first;
  Floats second;
};
template <class Lanes>
CONVOY_INLINE PairGradient pair_gradient(const Lanes& lanes, Floats z_first, Floats z_second,
                                         Floats grad) {
  const Floats a = lanes.activation(z_first);
  const Floats b = lanes.activation(z_second);
  const Floats none{};
  const Floats alive = chosen(above(larger(b, a), none), grad, none);
  const Ints takes_second = above(b, a);
  return {chosen(takes_second, none, alive), chosen(takes_second, alive, none)};
}

void pairs_gradient_sums(const float* grad, const float* z, const ChannelNorm& norm, float* sums,
                         float* products, RowShape shape) {
  for_lanes(shape.width, [&](int64_t at, auto count) {
    const NormLanes lanes(norm, at, count);
    Floats total{};
    Floats along{};
    for (int64_t pair = 0; pair < shape.rows / 2; ++pair) {
      const float* const from = z + 2 * pair * shape.width + at;
      const Floats first = load_lanes(from, count);
      const Floats second = load_lanes(from + shape.width, count);
      const PairGradient part =
          pair_gradient(lanes, first, second, load_lanes(grad + pair * shape.width + at, count));
      total += part.first + part.second;
      along += part.first * lanes.normal(first) + part.second * lanes.normal(second);
    }
    store_lanes(sums + at, total, count);
    store_lanes(products + at, along, count);
  });
}

void mean_gradient_sums(const float* grad, const float* z, const ChannelNorm& norm, float* sums,
                        float* products, RowShape shape) {
  const float share = 1.0f / static_cast<float>(shape.rows);
  for_lanes(shape.width, [&](int64_t at, auto count) {
    const NormLanes lanes(norm, at, count);
    const Floats part = load_lanes(grad + at, count) * share;
    Floats total{};
    Floats along{};
    for (int64_t row = 0; row < shape.rows; ++row) {
      const Floats value = load_lanes(z + row * shape.width + at, count);
      const Floats alive = chosen(above(lanes.activation(value), Floats{}), part, Floats{});
      total += alive;
      along += alive * lanes.normal(value);
    }
    store_lanes(sums + at, total, count);
    store_lanes(products + at, along, count);
  });
}

// The gradient of the convolution from the gradient of the activation, less the parts that belong
// to the norm's mean and deviation.
template <class Count>
struct GradientLanes : NormLanes<Count> {
  GradientLanes(const ChannelNorm& norm, const NormGradientMeans& means, int64_t at, Count count)
      : NormLanes<Count>(norm, at, count),
        mean_grad(load_lanes(means.grad + at, count)),
        mean_product(load_lanes(means.product + at, count)) {}
  CONVOY_INLINE Floats through_norm(Floats grad, Floats z) const {
    return this->scale * (grad - mean_grad - this->normal(z) * mean_product);
  }

  Floats mean_grad;
  Floats mean_product;
};

void pairs_gradient(const float* grad, const float* z, const ChannelNorm& norm,
                    const NormGradientMeans& means, float* grad_z, RowShape shape) {
  for_lanes(shape.width, [&](int64_t at, auto count) {
    const GradientLanes lanes(norm, means, at, count);
    for (int64_t pair = 0; pair < shape.rows / 2; ++pair) {
      const int64_t from = 2 * pair * shape.width + at;
      const Floats first = load_lanes(z + from, count);
      const Floats second = load_lanes(z + from + shape.width, count);
      const PairGradient part =
          pair_gradient(lanes, first, second, load_lanes(grad + pair * shape.width + at, count));
      store_lanes(grad_z + from, lanes.through_norm(part.first, first), count);
      store_lanes(grad_z + from + shape.width, lanes.through_norm(part.second, second), count);
    }
    if (shape.rows % 2 == 0) return;
    const int64_t last = (shape.rows - 1) * shape.width + at;  // in no pair
    store_lanes(grad_z + last, lanes.through_norm(Floats{}, load_lanes(z + last, count)), count);
  });
}

void mean_gradient(const float* grad, const float* z, const ChannelNorm& norm,
                   const NormGradientMeans& means, float* grad_z, RowShape shape) {
  const float share = 1.0f / static_cast<float>(shape.rows);
  for_lanes(shape.width, [&](int64_t at, auto count) {
    const GradientLanes lanes(norm, means, at, count);
    const Floats part = load_lanes(grad + at, count) * share;
    for (int64_t row = 0; row < shape.rows; ++row) {
      const int64_t from = row * shape.width + at;
      const Floats value = load_lanes(z + from, count);
      const Floats alive = chosen(above(lanes.activation(value), Floats{}), part, Floats{});
      store_lanes(grad_z + from, lanes.through_norm(alive, value), count);
    }
  });
}

template <class Input, class Count>
CONVOY_INLINE Floats sum_of_taps(const ConvolutionTaps<Input>& taps, int64_t at, Count count) {
  Floats sum{};
  for (int64_t tap = 0; tap < taps.taps; ++tap)
    sum += load_lanes(taps.weight + tap * taps.weight_stride + at, count) *
           load_lanes(taps.inputs[tap] + at, count);
  return sum;
}

template <class Input, class Element, bool activates>
void convolve(const ConvolutionTaps<Input>& taps, Element* y) {
  for_lanes(taps.channels, [&](int64_t at, auto count) {
    const Floats sum = sum_of_taps(taps, at, count);
    if constexpr (activates)
      store_lanes(y + at, sum * sigmoid(sum), count);
    else
      store_lanes(y + at, sum, count);
  });
}

template <class Element>
void convolve_silu_backward(const ConvolutionTaps<Element>& taps, const Element* grad,
                            float* grad_sum, float* grad_weight) {
  for_lanes(taps.channels, [&](int64_t at, auto count) {
    const Floats slope = silu(sum_of_taps(taps, at, count)).slope;
    const Floats of_sum = load_lanes(grad + at, count) * slope;
    store_lanes(grad_sum + at, of_sum, count);
    for (int64_t tap = 0; tap < taps.taps; ++tap) {
      float* to = grad_weight + tap * taps.weight_stride + at;
      store_lanes(to, load_lanes(to, count) + of_sum * load_lanes(taps.inputs[tap] + at, count),
                  count);
    }
  });
}

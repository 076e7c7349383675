// SPDX-License-Identifier: Apache-2.0
//
// Loops over rows of features: norms, rotary embedding, gated activations, softmax pieces, AdamW.
// See vector16.inl.

template <class Element>
void rms_norm(const Element* x, const Element* weight, Element* y, float* inverse_rms,
              RowShape shape, NormParameters parameters) {
  for (int64_t row = 0; row < shape.rows; ++row, x += shape.width, y += shape.width) {
    Floats squares{};
    for_lanes(shape.width, [&](int64_t at, auto count) {
      const Floats value = load_lanes(x + at, count);
      squares += value * value;
    });
    const float mean = sum(squares) / static_cast<float>(shape.width);
    const float scale = 1.0f / __builtin_sqrtf(mean + parameters.epsilon);
    if (inverse_rms != nullptr) inverse_rms[row] = scale;
    for_lanes(shape.width, [&](int64_t at, auto count) {
      Floats normed = load_lanes(x + at, count) * scale;
      Floats factor = load_lanes(weight + at, count);
      if (parameters.scale_by_one_plus) {
        factor += 1.0f;
      } else if constexpr (!std::is_same_v<Element, float>) {
        normed = floats_of(rounded_words(normed) & 0xffff0000u);
      }
      store_lanes(y + at, normed * factor, count);
    });
  }
}

// With n = x / rms and g = grad * w: dx = (g - n mean(g n)) / rms, dw = sum over rows of grad * n.
template <class Element>
void rms_norm_backward(const Element* grad, const Element* x, const Element* weight,
                       const float* inverse_rms, Element* grad_x, float* grad_weight,
                       RowShape shape, NormParameters parameters) {
  const float offset = parameters.scale_by_one_plus ? 1.0f : 0.0f;
  for (int64_t row = 0; row < shape.rows; ++row) {
    const float scale = inverse_rms[row];
    Floats products{};
    for_lanes(shape.width, [&](int64_t at, auto count) {
      const Floats incoming = load_lanes(grad + at, count);
      const Floats normed = load_lanes(x + at, count) * scale;
      const Floats along = incoming * normed;
      products += along * (load_lanes(weight + at, count) + offset);
      if (grad_weight != nullptr) {
        store_lanes(grad_weight + at, load_lanes(grad_weight + at, count) + along, count);
      }
    });
    const float mean = sum(products) / static_cast<float>(shape.width);
    for_lanes(shape.width, [&](int64_t at, auto count) {
      const Floats scaled =
          load_lanes(grad + at, count) * (load_lanes(weight + at, count) + offset);
      const Floats normed = load_lanes(x + at, count) * scale;
      store_lanes(grad_x + at, (scaled - normed * mean) * scale, count);
    });
    grad += shape.width;
    x += shape.width;
    grad_x += shape.width;
  }
}

template <class Element>
void rotate(const Element* x, const float* cos, const float* sin, Element* y, int64_t half,
            float direction) {
  for_lanes(half, [&](int64_t at, auto count) {
    const Floats first = load_lanes(x + at, count);
    const Floats second = load_lanes(x + half + at, count);
    const Floats cosine = load_lanes(cos + at, count);
    const Floats sine = load_lanes(sin + at, count) * direction;
    store_lanes(y + at, first * cosine - second * sine, count);
    store_lanes(y + half + at, second * cosine + first * sine, count);
  });
}

// silu and gelu_tanh are gate * sigmoid(u); `slope` is d(act)/d(gate).
struct ActivationValue {
  Floats value;
  Floats slope;
};
CONVOY_INLINE ActivationValue silu(Floats gate) {
  const Floats s = sigmoid(gate);
  return {gate * s, s * (1.0f + gate * (1.0f - s))};
}
// gelu_tanh(x) = x (1 + tanh u) / 2 = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
CONVOY_INLINE ActivationValue gelu_tanh(Floats gate) {
  constexpr float kTwoRootTwoOverPi = 1.5957691216057308f;
  constexpr float kCubic = 0.044715f;
  const Floats square = gate * gate;
  const Floats s = sigmoid(gate * (1.0f + kCubic * square) * kTwoRootTwoOverPi);
  const Floats inner_slope = (1.0f + 3.0f * kCubic * square) * kTwoRootTwoOverPi;
  return {gate * s, s + gate * s * (1.0f - s) * inner_slope};
}
CONVOY_INLINE ActivationValue plain_sigmoid(Floats gate) {
  const Floats s = sigmoid(gate);
  return {s, s * (1.0f - s)};
}

// The result of `act` is rounded to Element before the product, as a composition of two ops would.
template <class Element, ActivationValue (*act)(Floats)>
void gated(const Element* gate, const Element* up, Element* y, int64_t total) {
  for_lanes(total, [&](int64_t at, auto count) {
    Floats activated = act(load_lanes(gate + at, count)).value;
    if constexpr (!std::is_same_v<Element, float>) {
      activated = floats_of(rounded_words(activated) & 0xffff0000u);
    }
    store_lanes(y + at, activated * load_lanes(up + at, count), count);
  });
}
template <class Element, ActivationValue (*act)(Floats)>
void gated_backward(const Element* grad, const Element* gate, const Element* up, Element* grad_gate,
                    Element* grad_up, int64_t total) {
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats incoming = load_lanes(grad + at, count);
    const ActivationValue activated = act(load_lanes(gate + at, count));
    const Floats through = load_lanes(up + at, count);
    store_lanes(grad_up + at, incoming * activated.value, count);
    store_lanes(grad_gate + at, incoming * through * activated.slope, count);
  });
}

// Sets the elements below `width` outside [begin, end) to zero.
template <class Element>
void clear_outside(Element* row, int64_t begin, int64_t end, int64_t width) {
  std::fill(row, row + begin, Element(0.0f));
  std::fill(row + end, row + width, Element(0.0f));
}

template <class Element>
float attention_weights(const float* scores, Element* weights, int64_t begin, int64_t end,
                        int64_t width, float scale, float* log_sum_exp) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Floats best = all(kNone);
  for_lanes(end - begin, [&](int64_t at, auto count) {
    best = larger(load_lanes(scores + begin + at, count, kNone), best);
  });
  const float top = largest(best) * scale;
  Floats total{};
  for_lanes(end - begin, [&](int64_t at, auto count) {
    const Floats weight = exponential(load_lanes(scores + begin + at, count, kNone) * scale - top);
    total += weight;
    store_lanes(weights + begin + at, weight, count);
  });
  clear_outside(weights, begin, end, width);
  const float denominator = sum(total);
  *log_sum_exp = top + std::log(denominator);
  return denominator;
}

inline void attention_weights_backward(float* scores, float* grad_p, int64_t begin, int64_t end,
                                       int64_t width, float scale, float log_sum_exp, float delta) {
  for_lanes(end - begin, [&](int64_t at, auto count) {
    const Floats p = exponential(load_lanes(scores + begin + at, count) * scale - log_sum_exp);
    const Floats incoming = load_lanes(grad_p + begin + at, count);
    store_lanes(scores + begin + at, p, count);
    store_lanes(grad_p + begin + at, p * (incoming - delta) * scale, count);
  });
  clear_outside(scores, begin, end, width);
  clear_outside(grad_p, begin, end, width);
}

// cap * tanh(scale * x / cap).
inline void soft_cap(const float* from, float* to, int64_t total, SoftCap parameters) {
  const float inner = parameters.scale / parameters.cap;
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats share = hyperbolic_tangent(load_lanes(from + at, count) * inner);
    store_lanes(to + at, share * parameters.cap, count);
  });
}

inline void capped_weights_backward(float* scores, float* grad_p, int64_t begin, int64_t end,
                                    int64_t width, SoftCap parameters, float log_sum_exp,
                                    float delta) {
  const float inner = parameters.scale / parameters.cap;
  for_lanes(end - begin, [&](int64_t at, auto count) {
    const Floats share = hyperbolic_tangent(load_lanes(scores + begin + at, count) * inner);
    const Floats p = exponential(share * parameters.cap - log_sum_exp);
    const Floats incoming = load_lanes(grad_p + begin + at, count);
    store_lanes(scores + begin + at, p, count);
    store_lanes(grad_p + begin + at,
                p * (incoming - delta) * (1.0f - share * share) * parameters.scale, count);
  });
  clear_outside(scores, begin, end, width);
  clear_outside(grad_p, begin, end, width);
}

template <class Element>
float dot(const Element* a, const Element* b, int64_t total) {
  Floats products{};
  for_lanes(total, [&](int64_t at, auto count) {
    products += load_lanes(a + at, count) * load_lanes(b + at, count);
  });
  return sum(products);
}

template <class Element>
void round_row(const float* from, Element* to, int64_t total, float factor) {
  for_lanes(total, [&](int64_t at, auto count) {
    store_lanes(to + at, load_lanes(from + at, count) * factor, count);
  });
}

template <class Element>
void to_float(const Element* from, float* to, int64_t total) {
  for_lanes(total, [&](int64_t at, auto count) {
    store_lanes(to + at, load_lanes(from + at, count), count);
  });
}

inline void add_rows(const float* from, float* to, int64_t total) {
  for_lanes(total, [&](int64_t at, auto count) {
    store_lanes(to + at, load_lanes(to + at, count) + load_lanes(from + at, count), count);
  });
}

inline void multiply_rows(const float* factors, float* to, int64_t total) {
  for_lanes(total, [&](int64_t at, auto count) {
    store_lanes(to + at, load_lanes(to + at, count) * load_lanes(factors + at, count), count);
  });
}

inline void blend_rows(const float* from, float factor, float* to, float keep, int64_t total) {
  for_lanes(total, [&](int64_t at, auto count) {
    store_lanes(to + at, load_lanes(to + at, count) * keep + load_lanes(from + at, count) * factor,
                count);
  });
}

inline float log_sum_exp(const float* logits, int64_t total, int64_t* largest_index) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  Floats best = all(kNone);
  for_lanes(total, [&](int64_t at, auto count) {
    best = larger(load_lanes(logits + at, count, kNone), best);
  });
  const float top = largest(best);
  const double exponentials = long_sum(total, [&](int64_t at, auto count) {
    return exponential(load_lanes(logits + at, count, kNone) - top);
  });
  if (largest_index != nullptr) {
    const float* found = std::find(logits, logits + total, top);
    *largest_index = found == logits + total ? 0 : found - logits;
  }
  return top + static_cast<float>(std::log(exponentials));
}

template <class Element>
void softmax_row(const float* logits, Element* grad, int64_t total, float log_sum_exp) {
  for_lanes(total, [&](int64_t at, auto count) {
    store_lanes(grad + at, exponential(load_lanes(logits + at, count) - log_sum_exp), count);
  });
}
template <class Element>
void capped_softmax_row(const float* logits, Element* grad, int64_t total, float log_sum_exp,
                        float cap) {
  const float inner = 1.0f / cap;
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats logit = load_lanes(logits + at, count);
    const Floats share = logit * inner;
    store_lanes(grad + at, exponential(logit - log_sum_exp) * (1.0f - share * share), count);
  });
}

template <class Element>
double sum_of_squares(const Element* values, int64_t total) {
  Doubles squares{};
  for_lanes(total, [&](int64_t at, auto count) {
    const Doubles wide = widened(load_lanes(values + at, count));
    squares += wide * wide;
  });
  double result = 0;
  for (int64_t lane = 0; lane < kLanes; ++lane) result += squares[lane];
  return result;
}

// torch.optim.AdamW, operation by operation: decay, lerp, addcmul, sqrt / correction + epsilon,
// addcdiv.
template <class Element>
void adamw(const AdamWFactors& factors, float* value, const float* gradient, float* exp_avg,
           float* exp_avg_sq, Element* rounded, int64_t total) {
  for_lanes(total, [&](int64_t at, auto count) {
    const Floats grad = load_lanes(gradient + at, count) * factors.gradient_scale;
    const Floats old_mean = load_lanes(exp_avg + at, count);
    const Floats mean = old_mean + (grad - old_mean) * factors.one_minus_beta1;
    const Floats square =
        load_lanes(exp_avg_sq + at, count) * factors.beta2 + grad * grad * factors.one_minus_beta2;
    const Floats denominator = root(square) / factors.root_bias_correction + factors.epsilon;
    const Floats updated =
        load_lanes(value + at, count) * factors.keep - mean / denominator * factors.step_size;
    store_lanes(exp_avg + at, mean, count);
    store_lanes(exp_avg_sq + at, square, count);
    store_lanes(value + at, updated, count);
    if (rounded != nullptr) store_lanes(rounded + at, updated, count);
  });
}

// SPDX-License-Identifier: Apache-2.0
//
// The inner loops of all CPU ops, one table per instruction set and element type. Single-threaded;
// callers split work. Element is float or at::BFloat16; all arithmetic is fp32. Every loop gives
// the same bits however callers split rows.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

#include "convoy/model/kernels/adamw/adamw_factors.h"
#include "convoy/model/kernels/simd/cpu_isa.h"

namespace convoy::kernels {

// Columns of a packed GEMM panel; C buffers of `multiply` are padded to it.
inline constexpr int64_t kPanelColumns = 32;

constexpr int64_t round_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

struct RowShape {
  int64_t rows = 0;
  int64_t width = 0;
};

struct NormParameters {
  float epsilon = 0;
  bool scale_by_one_plus = false;  // Gemma's order; see NormOrder
};

// x becomes cap * tanh(scale * x / cap), which lies between -cap and cap.
struct SoftCap {
  float scale = 1;
  float cap = 1;  // above 0
};

struct GemmShape {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
};

// Elements of one packed panel of depth k, and of a whole packed B.
template <class Element>
constexpr int64_t panel_elements(int64_t k) {
  return kPanelColumns * round_up(k, sizeof(Element) == 2 ? 2 : 1);
}
template <class Element>
constexpr int64_t packed_elements(GemmShape shape) {
  return round_up(shape.n, kPanelColumns) / kPanelColumns * panel_elements<Element>(shape.k);
}

// A packed B, or a part of one.
template <class Element>
struct PackedView {
  const Element* panels = nullptr;
  int64_t panel_stride = 0;  // elements

  // The part from column `column` (a multiple of kPanelColumns) and from `k` (even) on.
  PackedView from(int64_t column, int64_t k) const {
    return {panels + column / kPanelColumns * panel_stride + k * kPanelColumns, panel_stride};
  }
};

struct LogitRange {
  float lowest = 0;
  float highest = 0;
  bool all_numbers = true;  // no NaN
};

struct LargestLogit {
  float value = 0;
  int64_t index = 0;  // the first of equal ones
  bool all_numbers = true;
};

// Thresholds that one pass over a row of logits tries.
inline constexpr int64_t kLogitThresholds = 4;

// Loops that keep some of `count` logits may write this many values more than they keep.
inline constexpr int64_t kLogitSlack = 16;

// The number and weight of logits from a threshold up.
struct LogitMass {
  int64_t count = 0;
  double weight = 0;
};

// Successive tokens of one head for the gated delta rule: queries and keys in rows of `features`,
// products q . k, decays and betas by token.
struct DeltaRuleTokens {
  const float* q_TE = nullptr;
  const float* k_TE = nullptr;
  const float* query_keys_T = nullptr;
  const float* decays_T = nullptr;
  const float* betas_T = nullptr;
  int64_t tokens = 0;
  int64_t features = 0;
};

// kPanelColumns columns of the tokens' values and results, and of the head's state [features,
// columns].
struct DeltaRuleColumns {
  const float* v_TF = nullptr;
  int64_t v_stride = 0;
  float* out_TF = nullptr;
  int64_t out_stride = 0;
  float* state = nullptr;
  int64_t state_stride = 0;
};

// One token of a causal convolution by channel: its input at each tap, and the weight by tap in
// rows `weight_stride` apart.
template <class Input>
struct ConvolutionTaps {
  const Input* const* inputs = nullptr;  // [taps]
  const float* weight = nullptr;
  int64_t weight_stride = 0;
  int64_t taps = 0;
  int64_t channels = 0;
};

// Codes of a quantised weight in panels of words [k of a word, kPanelColumns]. A word has the codes
// of successive k of a column: four signed bytes, none of them -128, or eight signed nibbles with
// even k in the lower half.
struct CodedView {
  const uint32_t* codes = nullptr;
  int64_t panel_stride = 0;  // words
};

// Groups of `inputs` successive k (32, 64 or 128) of panels of nibbles. Each group has
// kPanelColumns scales and offsets.
struct NibbleGroups {
  const c10::BFloat16* scales = nullptr;
  const c10::BFloat16* offsets = nullptr;  // null: none
  int64_t panel_stride = 0;                // elements of scales and offsets
  int64_t inputs = 0;
  const float* row_sums = nullptr;  // sums of A by row and group; null without offsets
  int64_t row_sums_stride = 0;

  NibbleGroups from_row(int64_t row) const {
    NibbleGroups rest = *this;
    if (row_sums != nullptr) rest.row_sums += row * row_sums_stride;
    return rest;
  }
  // The groups from the panel of `column`, a multiple of kPanelColumns, on.
  NibbleGroups from_column(int64_t column) const {
    NibbleGroups rest = *this;
    const int64_t elements = column / kPanelColumns * panel_stride;
    rest.scales += elements;
    if (offsets != nullptr) rest.offsets += elements;
    return rest;
  }
};

// The values that the nibbles of a block of a coded weight represent.
struct NibbleScale {
  const float* table = nullptr;  // 16 numbers
  float absmax = 0;
};

// Batch norm by channel: z * scale + offset, of which (z - mean) * inverse_deviation is the normal
// form.
struct ChannelNorm {
  const float* mean = nullptr;
  const float* inverse_deviation = nullptr;
  const float* scale = nullptr;
  const float* offset = nullptr;
};

// By channel, over all rows of a batch: the mean of the activations' gradient, and of its product
// with the normal form.
struct NormGradientMeans {
  const float* grad = nullptr;
  const float* product = nullptr;
};

template <class Element>
struct SimdKernels {
  // y = norm(x) * w over contiguous rows; inverse_rms per row may be null.
  void (*rms_norm)(const Element* x, const Element* weight, Element* y, float* inverse_rms,
                   RowShape shape, NormParameters parameters);
  // The gradient of the weight is added to grad_weight [width]; null: not computed.
  void (*rms_norm_backward)(const Element* grad, const Element* x, const Element* weight,
                            const float* inverse_rms, Element* grad_x, float* grad_weight,
                            RowShape shape, NormParameters parameters);
  // One head: first and second half rotated by (cos, sin); direction -1 rotates back.
  void (*rotate)(const Element* x, const float* cos, const float* sin, Element* y, int64_t half,
                 float direction);

  void (*gated_silu)(const Element* gate, const Element* up, Element* y, int64_t count);
  void (*gated_gelu_tanh)(const Element* gate, const Element* up, Element* y, int64_t count);
  void (*gated_sigmoid)(const Element* gate, const Element* up, Element* y, int64_t count);
  void (*gated_silu_backward)(const Element* grad, const Element* gate, const Element* up,
                              Element* grad_gate, Element* grad_up, int64_t count);
  void (*gated_gelu_tanh_backward)(const Element* grad, const Element* gate, const Element* up,
                                   Element* grad_gate, Element* grad_up, int64_t count);
  void (*gated_sigmoid_backward)(const Element* grad, const Element* gate, const Element* up,
                                 Element* grad_gate, Element* grad_up, int64_t count);

  // weights[i] = exp(scale * scores[i] - max) for begin <= i < end, 0 elsewhere below `width`;
  // returns the sum. log_sum_exp = log(sum exp(scale * scores)).
  float (*attention_weights)(const float* scores, Element* weights, int64_t begin, int64_t end,
                             int64_t width, float scale, float* log_sum_exp);
  // In place: scores becomes p = exp(scale * scores - log_sum_exp), grad_p becomes scale * p *
  // (grad_p - delta); both 0 outside begin <= i < end, below `width`.
  void (*attention_weights_backward)(float* scores, float* grad_p, int64_t begin, int64_t end,
                                     int64_t width, float scale, float log_sum_exp, float delta);
  // `to` may be `from`.
  void (*soft_cap)(const float* from, float* to, int64_t count, SoftCap parameters);
  // attention_weights_backward() for weights that were made of soft_cap() of the scores.
  void (*capped_weights_backward)(float* scores, float* grad_p, int64_t begin, int64_t end,
                                  int64_t width, SoftCap parameters, float log_sum_exp,
                                  float delta);

  // For each token S <- decay S + k (beta change)^T with change = v - decay k^T S, and out = q^T S.
  void (*delta_rule)(const DeltaRuleTokens& tokens, const DeltaRuleColumns& columns);
  // The same without queries; `out` receives each token's change.
  void (*delta_rule_changes)(const DeltaRuleTokens& tokens, const DeltaRuleColumns& columns);

  // y = silu(sum over taps of weight * input).
  void (*convolve_silu)(const ConvolutionTaps<Element>& taps, Element* y);
  // Computes the gradient of the sum from the gradient of y. Adds the products of the sum's
  // gradient with the inputs to `grad_weight`, in rows `weight_stride` apart.
  void (*convolve_silu_backward)(const ConvolutionTaps<Element>& taps, const Element* grad,
                                 float* grad_sum, float* grad_weight);
  void (*convolve)(const ConvolutionTaps<float>& taps, Element* y);  // the sum alone

  float (*dot)(const Element* a, const Element* b, int64_t count);
  void (*round_row)(const float* from, Element* to, int64_t count, float factor);
  void (*to_float)(const Element* from, float* to, int64_t count);
  void (*add_rows)(const float* from, float* to, int64_t count);
  void (*multiply_rows)(const float* factors, float* to, int64_t count);
  // to[i] = keep * to[i] + factor * from[i].
  void (*blend_rows)(const float* from, float factor, float* to, float keep, int64_t count);

  // log(sum exp) of a row; `largest` is the first index of the largest value.
  float (*log_sum_exp)(const float* logits, int64_t count, int64_t* largest);
  // grad[i] = exp(logits[i] - log_sum_exp); the caller subtracts 1 at the label.
  void (*softmax_row)(const float* logits, Element* grad, int64_t count, float log_sum_exp);
  // The same times 1 - (logits[i] / cap)^2, the slope of the soft cap that gave the logits.
  void (*capped_softmax_row)(const float* logits, Element* grad, int64_t count, float log_sum_exp,
                             float cap);

  LogitRange (*logit_range)(const Element* logits, int64_t count);
  LargestLogit (*largest_logit)(const Element* logits, int64_t count);
  // weights[i] = exp((logits[i] - highest) * inverse_temperature).
  void (*weigh_logits)(const float* logits, int64_t count, float highest, float inverse_temperature,
                       float* weights);
  // Fills one of `masses` for each of kLogitThresholds `thresholds`. Weights are summed in fp64.
  void (*logit_mass)(const float* logits, const float* weights, int64_t count,
                     const float* thresholds, LogitMass* masses);
  // weights[i] = 0 where it or logits[i] lies below its bound.
  void (*keep_weights)(const float* logits, int64_t count, float lowest_logit, float lowest_weight,
                       float* weights);
  // Writes the places with from <= logits[i] < below to `ids`, ascending; returns their number.
  // `ids` has room for kLogitSlack more.
  int64_t (*find_logits)(const float* logits, int64_t count, float from, float below, int32_t* ids);
  // Copies only the logits and weights in that interval, in their order; returns their number. The
  // destination needs room for kLogitSlack more and may be the source.
  int64_t (*compact_logits)(const float* logits, const float* weights, int64_t count, float from,
                            float below, float* kept_logits, float* kept_weights);
  double (*sum)(const float* values, int64_t count);

  double (*sum_of_squares)(const Element* values, int64_t count);
  // `rounded` (may be null) receives the new values in the model's type.
  void (*adamw)(const AdamWFactors& factors, float* value, const float* gradient, float* exp_avg,
                float* exp_avg_sq, Element* rounded, int64_t count);

  // One window of a signal [rows, channels]. By channel: sums over rows of z - origin, and of its
  // squares.
  void (*shifted_sums)(const float* z, const float* origin, float* sums, float* squares,
                       RowShape shape);
  // Norm and ReLU, then the larger of every two rows (an odd last one is left out), or the mean of
  // all.
  void (*activate_pairs)(const float* z, const ChannelNorm& norm, float* y, RowShape shape);
  void (*activate_mean)(const float* z, const ChannelNorm& norm, float* y, RowShape shape);
  // For the backward of activate_pairs and activate_mean, per channel. `sums`: the activations'
  // gradient, summed over rows. `products`: the same for its product with the normalised values.
  void (*pairs_gradient_sums)(const float* grad, const float* z, const ChannelNorm& norm,
                              float* sums, float* products, RowShape shape);
  void (*mean_gradient_sums)(const float* grad, const float* z, const ChannelNorm& norm,
                             float* sums, float* products, RowShape shape);
  void (*pairs_gradient)(const float* grad, const float* z, const ChannelNorm& norm,
                         const NormGradientMeans& means, float* grad_z, RowShape shape);
  void (*mean_gradient)(const float* grad, const float* z, const ChannelNorm& norm,
                        const NormGradientMeans& means, float* grad_z, RowShape shape);

  // B [k, n] packed for multiply: panels of kPanelColumns columns, zero-padded, with
  // packed_elements() elements in all.
  void (*pack_rows)(const Element* b, int64_t stride, GemmShape shape, Element* packed);  // b[k][n]
  void (*pack_columns)(const Element* b_t, int64_t stride, GemmShape shape,
                       Element* packed);  // b_t[n][k]
  void (*pack_float_rows)(const float* b, int64_t stride, GemmShape shape,
                          Element* packed);  // rounds
  // C [m, round_up(n, kPanelColumns)] = A codes, or C += A codes. The columns of C from n on are
  // undefined.
  void (*multiply_bytes)(const Element* a, int64_t stride_a, CodedView b, float* c,
                         int64_t stride_c, GemmShape shape, bool accumulate);
  void (*unpack_bytes)(const uint32_t* codes, int64_t k, Element* panel);
  void (*unpack_nibbles)(const uint32_t* codes, int64_t k, Element* panel);
  // The same for the sum over groups of scales * (A codes) + offsets * row_sums.
  void (*multiply_nibbles)(const Element* a, int64_t stride_a, CodedView b,
                           const NibbleGroups& groups, float* c, int64_t stride_c, GemmShape shape,
                           bool accumulate);
  // One sum per `inputs` successive values; the last sum may cover fewer values.
  void (*group_sums)(const Element* values, int64_t count, int64_t inputs, float* sums);
  // C [m, n] = scales [n] * from, or C += it. n is a multiple of kPanelColumns; rows of `from` and
  // of C are equally far apart.
  void (*add_scaled)(const float* from, const float* scales, float* c, int64_t stride, int64_t m,
                     int64_t n, bool accumulate);
  // Values of a coded weight. decode_nibbles: `count` nibbles from element `first` on, the even one
  // in the upper half of its byte. decode_bytes: the bytes of a row.
  void (*decode_nibbles)(const uint8_t* codes, int64_t first, const NibbleScale& scale, Element* to,
                         int64_t count);
  void (*decode_bytes)(const int8_t* codes, float absmax, Element* to, int64_t count);
  // to[column][row] = from[row][column].
  void (*transpose)(const Element* from, int64_t stride, RowShape shape, Element* to,
                    int64_t to_stride);
  // C [m, round_up(n)] = A [m, k] B, or C += A B. The columns of C from n on are undefined.
  void (*multiply)(const Element* a, int64_t stride_a, PackedView<Element> b, float* c,
                   int64_t stride_c, GemmShape shape, bool accumulate);
};

// Throws StateError for a level this machine cannot run.
template <class Element>
const SimdKernels<Element>& simd_kernels(CpuIsa isa = best_cpu_isa());

}  // namespace convoy::kernels

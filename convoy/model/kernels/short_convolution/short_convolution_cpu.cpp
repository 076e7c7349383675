// SPDX-License-Identifier: Apache-2.0
//
// Computes token by token, all channels side by side. Forward divides the tokens among threads;
// backward divides the channels, so that each weight's gradient is summed in one order.
#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "convoy/model/kernels/short_convolution/short_convolution_ops.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels::token_convolution {
namespace {

constexpr int64_t kChannelBlock = 128;
// After this many tokens a sum in fp32 is added to a sum in fp64.
constexpr int64_t kTokensPerSum = 256;

// The rows of a pass and the inputs before them.
template <class Element>
class ConvolutionInputs {
 public:
  // `tails` null: the inputs before each row are zeros.
  ConvolutionInputs(const at::Tensor& x_TC, const RowIndex& rows, int64_t taps,
                    const Element* tails, int64_t tail_stride, std::vector<int64_t> slots)
      : x_(x_TC.const_data_ptr<Element>()),
        stride_(x_TC.stride(0)),
        channels_(x_TC.size(1)),
        rows_(rows),
        taps_(taps),
        tails_(tails),
        tail_stride_(tail_stride),
        slots_(std::move(slots)),
        zeros_(channels_, Element(0.0f)) {}

  // `position` in the row; below 0 it is in the tail.
  const Element* at(int64_t row, int64_t position) const {
    if (position >= 0) return x_ + (rows_.begin(row) + position) * stride_;
    if (tails_ == nullptr) return zeros_.data();
    return tails_ + slots_[row] * tail_stride_ + (taps_ - 1 + position) * channels_;
  }
  // The inputs of one token, from channel `channel` on.
  void of_token(int64_t row, int64_t position, int64_t channel, const Element** inputs) const {
    for (int64_t tap = 0; tap < taps_; ++tap)
      inputs[tap] = at(row, position - (taps_ - 1 - tap)) + channel;
  }

 private:
  const Element* x_;
  int64_t stride_;
  int64_t channels_;
  const RowIndex& rows_;
  int64_t taps_;
  const Element* tails_;
  int64_t tail_stride_;
  std::vector<int64_t> slots_;
  std::vector<Element> zeros_;
};

at::Tensor weight_by_tap(const at::Tensor& weight_CW) {
  return weight_CW.to(at::kFloat).t().contiguous();
}

template <class Element>
void convolve_tokens(const ConvolutionInputs<Element>& inputs, const at::Tensor& weight_WC,
                     const RowIndex& rows, const at::Tensor& y_TC) {
  const int64_t taps = weight_WC.size(0), channels = weight_WC.size(1);
  for_rows(rows.num_tokens(), channels, [&](int64_t begin, int64_t end) {
    std::vector<const Element*> of_token(taps);
    const auto& starts = rows.starts();
    int64_t row = std::upper_bound(starts.begin(), starts.end(), begin) - starts.begin() - 1;
    for (int64_t token = begin; token < end; ++token) {
      while (token >= starts[row + 1]) ++row;
      inputs.of_token(row, token - starts[row], 0, of_token.data());
      simd_kernels<Element>().convolve_silu({.inputs = of_token.data(),
                                             .weight = weight_WC.const_data_ptr<float>(),
                                             .weight_stride = channels,
                                             .taps = taps,
                                             .channels = channels},
                                            y_TC.mutable_data_ptr<Element>() + token * channels);
    }
  });
}

at::Tensor forward(const at::Tensor& x_TC, const at::Tensor& weight_CW, const RowIndex& rows) {
  const at::Tensor y_TC = at::empty(x_TC.sizes(), x_TC.options());
  with_element(x_TC, "short_convolution", [&](auto element) {
    using Element = decltype(element);
    const ConvolutionInputs<Element> inputs(x_TC, rows, weight_CW.size(1), nullptr, 0, {});
    convolve_tokens(inputs, weight_by_tap(weight_CW), rows, y_TC);
  });
  return y_TC;
}

// Stores the last W - 1 inputs of each row. A tail of a short row keeps some of its own inputs,
// which move to the front: ascending order reads each before it is replaced.
template <class Element>
void replace_tails(const ConvolutionInputs<Element>& inputs, const RowIndex& rows,
                   const at::Tensor& tails_SVC, const std::vector<int64_t>& slots) {
  const int64_t tail = tails_SVC.size(1), channels = tails_SVC.size(2);
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    if (rows.length(row) == 0) continue;
    Element* to = tails_SVC.mutable_data_ptr<Element>() + slots[row] * tails_SVC.stride(0);
    for (int64_t at = 0; at < tail; ++at, to += channels)
      std::memcpy(to, inputs.at(row, rows.length(row) - tail + at), channels * sizeof(Element));
  }
}

at::Tensor advance(const at::Tensor& x_TC, const at::Tensor& weight_CW, const RowIndex& rows,
                   const at::Tensor& tails_SVC, const std::vector<int64_t>& slots) {
  const at::Tensor y_TC = at::empty(x_TC.sizes(), x_TC.options());
  with_element(x_TC, "short_convolution", [&](auto element) {
    using Element = decltype(element);
    const ConvolutionInputs<Element> inputs(x_TC, rows, weight_CW.size(1),
                                            tails_SVC.const_data_ptr<Element>(),
                                            tails_SVC.stride(0), slots);
    convolve_tokens(inputs, weight_by_tap(weight_CW), rows, y_TC);
    replace_tails(inputs, rows, tails_SVC, slots);
  });
  return y_TC;
}

// The backward pass over some channels of all rows.
template <class Element>
class ChannelBackward {
 public:
  ChannelBackward(const ConvolutionInputs<Element>& inputs, const at::Tensor& grad_TC,
                  const at::Tensor& weight_WC, int64_t channel, const at::Tensor& grad_x_TC)
      : inputs_(inputs),
        grad_TC_(grad_TC),
        grad_x_TC_(grad_x_TC),
        taps_(weight_WC.size(0)),
        channel_(channel),
        count_(std::min(kChannelBlock, weight_WC.size(1) - channel)),
        weight_(taps_ * kChannelBlock),
        reversed_(taps_ * kChannelBlock),
        sums_(taps_ * kChannelBlock),
        totals_(taps_ * kChannelBlock),
        grad_sums_((taps_ + 1) * kChannelBlock),
        of_token_(taps_),
        behind_(taps_) {
    for (int64_t tap = 0; tap < taps_; ++tap) {
      const float* from = weight_WC.const_data_ptr<float>() + tap * weight_WC.size(1) + channel;
      std::copy_n(from, count_, weight_.data() + tap * kChannelBlock);
      std::copy_n(from, count_, reversed_.data() + (taps_ - 1 - tap) * kChannelBlock);
    }
  }

  void run(const RowIndex& rows) {
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      const int64_t length = rows.length(row);
      for (int64_t position = 0; position < length + taps_ - 1; ++position) {
        if (position < length) add_token(row, position, rows.begin(row) + position);
        // The token of the last tap has been added, or the row has ended.
        const int64_t ready = position - (taps_ - 1);
        if (ready >= 0) store_input_gradient(ready, length, rows.begin(row) + ready);
      }
    }
    add_up();
  }

  void store_weight_gradient(const at::Tensor& grad_WC) const {
    float* to = grad_WC.mutable_data_ptr<float>() + channel_;
    for (int64_t tap = 0; tap < taps_; ++tap, to += grad_WC.size(1)) {
      for (int64_t at = 0; at < count_; ++at)
        to[at] = static_cast<float>(totals_[tap * kChannelBlock + at]);
    }
  }

 private:
  // Gradients of the sums of the last W tokens, in turn.
  float* grad_sum(int64_t position) { return grad_sums_.data() + position % taps_ * kChannelBlock; }
  const float* zeros() const { return grad_sums_.data() + taps_ * kChannelBlock; }

  void add_token(int64_t row, int64_t position, int64_t token) {
    inputs_.of_token(row, position, channel_, of_token_.data());
    simd_kernels<Element>().convolve_silu_backward(
        {.inputs = of_token_.data(),
         .weight = weight_.data(),
         .weight_stride = kChannelBlock,
         .taps = taps_,
         .channels = count_},
        grad_TC_.const_data_ptr<Element>() + token * grad_TC_.size(1) + channel_,
        grad_sum(position), sums_.data());
    if (++tokens_in_sums_ == kTokensPerSum) add_up();
  }

  void store_input_gradient(int64_t position, int64_t length, int64_t token) {
    for (int64_t tap = 0; tap < taps_; ++tap)
      behind_[tap] = position + tap < length ? grad_sum(position + tap) : zeros();
    simd_kernels<Element>().convolve(
        {.inputs = behind_.data(),
         .weight = reversed_.data(),
         .weight_stride = kChannelBlock,
         .taps = taps_,
         .channels = count_},
        grad_x_TC_.mutable_data_ptr<Element>() + token * grad_x_TC_.size(1) + channel_);
  }

  void add_up() {
    for (size_t at = 0; at < sums_.size(); ++at) totals_[at] += sums_[at];
    std::fill(sums_.begin(), sums_.end(), 0.0f);
    tokens_in_sums_ = 0;
  }

  const ConvolutionInputs<Element>& inputs_;
  const at::Tensor& grad_TC_;
  const at::Tensor& grad_x_TC_;
  int64_t taps_;
  int64_t channel_;
  int64_t count_;
  std::vector<float> weight_, reversed_, sums_;
  std::vector<double> totals_;
  std::vector<float> grad_sums_;  // sums of gradients, and a row of zeros
  std::vector<const Element*> of_token_;
  std::vector<const float*> behind_;
  int64_t tokens_in_sums_ = 0;
};

ShortConvolutionGradients backward(const at::Tensor& grad_TC, const at::Tensor& x_TC,
                                   const at::Tensor& weight_CW, const RowIndex& rows) {
  const at::Tensor weight_WC = weight_by_tap(weight_CW);
  const at::Tensor grad_x_TC = at::empty(x_TC.sizes(), x_TC.options());
  const at::Tensor grad_WC = at::empty(weight_WC.sizes(), weight_WC.options());
  const int64_t channels = weight_WC.size(1);
  with_element(x_TC, "short_convolution", [&](auto element) {
    using Element = decltype(element);
    const ConvolutionInputs<Element> inputs(x_TC, rows, weight_WC.size(0), nullptr, 0, {});
    for_tasks((channels + kChannelBlock - 1) / kChannelBlock, x_TC.numel() * kWorkOfElement,
              [&]() -> TaskBody {
                return [&](int64_t block) {
                  ChannelBackward<Element> part(inputs, grad_TC, weight_WC, block * kChannelBlock,
                                                grad_x_TC);
                  part.run(rows);
                  part.store_weight_gradient(grad_WC);
                };
              });
  });
  return {grad_x_TC, grad_WC.t().to(weight_CW.scalar_type()).contiguous()};
}

}  // namespace
}  // namespace convoy::kernels::token_convolution

namespace convoy::kernels {

const ShortConvolutionOps kShortConvolutionCpu = {
    token_convolution::forward, token_convolution::backward, token_convolution::advance};

}  // namespace convoy::kernels

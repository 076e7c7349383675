// SPDX-License-Identifier: Apache-2.0
//
// The inputs of all tokens at one distance are gathered from x, the tails and a row of zeros. Sums
// are fp32.
#include <ATen/ATen.h>

#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/short_convolution/short_convolution_ops.h"

namespace convoy::kernels::gathered_convolution {
namespace {

// Where the inputs of a pass lie in [x, tails, zeros].
class InputPlaces {
 public:
  InputPlaces(const RowIndex& rows, int64_t tail_tokens, bool has_tails)
      : rows_(rows), tail_tokens_(tail_tokens), has_tails_(has_tails) {}

  // The token at `position` of a row, which may lie before the row's first token or behind its
  // last.
  int64_t of(int64_t row, int64_t position) const {
    if (position >= rows_.length(row)) return zeros();
    if (position >= 0) return rows_.begin(row) + position;
    if (!has_tails_) return zeros();
    return rows_.num_tokens() + (row + 1) * tail_tokens_ + position;
  }
  // Returns for each token the place `distance` tokens before it, or after it if negative.
  at::Tensor at_distance(int64_t distance, at::Device device) const {
    std::vector<int64_t> places;
    for (int64_t row = 0; row < rows_.num_rows(); ++row)
      for (int64_t position = 0; position < rows_.length(row); ++position)
        places.push_back(of(row, position - distance));
    return device::to_device(std::span<const int64_t>(places), device);
  }
  // The last tokens of each row.
  at::Tensor of_tails(at::Device device) const {
    std::vector<int64_t> places;
    for (int64_t row = 0; row < rows_.num_rows(); ++row)
      for (int64_t at = 0; at < tail_tokens_; ++at)
        places.push_back(of(row, rows_.length(row) - tail_tokens_ + at));
    return device::to_device(std::span<const int64_t>(places), device);
  }

 private:
  int64_t zeros() const {
    return rows_.num_tokens() + (has_tails_ ? rows_.num_rows() * tail_tokens_ : 0);
  }

  const RowIndex& rows_;
  int64_t tail_tokens_;
  bool has_tails_;
};

// `source`: [x, tails, zeros].
at::Tensor before_activation(const at::Tensor& source, const at::Tensor& weight_CW,
                             const InputPlaces& places, int64_t tokens) {
  const int64_t taps = weight_CW.size(1);
  const at::Tensor weight = weight_CW.to(at::kFloat);
  at::Tensor sum = at::zeros({tokens, weight.size(0)}, weight.options());
  for (int64_t tap = 0; tap < taps; ++tap)
    sum.addcmul_(
        source.index_select(0, places.at_distance(taps - 1 - tap, source.device())).to(at::kFloat),
        weight.select(1, tap));
  return sum;
}

at::Tensor with_zeros(const at::Tensor& x_TC) {
  return at::cat({x_TC, at::zeros({1, x_TC.size(1)}, x_TC.options())});
}

at::Tensor forward(const at::Tensor& x_TC, const at::Tensor& weight_CW, const RowIndex& rows) {
  const InputPlaces places(rows, weight_CW.size(1) - 1, /*has_tails=*/false);
  return at::silu(before_activation(with_zeros(x_TC), weight_CW, places, x_TC.size(0)))
      .to(x_TC.scalar_type());
}

ShortConvolutionGradients backward(const at::Tensor& grad_TC, const at::Tensor& x_TC,
                                   const at::Tensor& weight_CW, const RowIndex& rows) {
  const int64_t taps = weight_CW.size(1);
  const InputPlaces places(rows, taps - 1, /*has_tails=*/false);
  const at::Tensor source = with_zeros(x_TC), weight = weight_CW.to(at::kFloat);
  const at::Tensor grad = at::silu_backward(
      grad_TC.to(at::kFloat), before_activation(source, weight_CW, places, x_TC.size(0)));
  const at::Tensor grad_source = with_zeros(grad);
  const at::Tensor grad_x = at::zeros_like(grad), grad_weight = at::empty_like(weight);
  for (int64_t tap = 0; tap < taps; ++tap) {
    const int64_t distance = taps - 1 - tap;
    const at::Tensor before = places.at_distance(distance, x_TC.device());
    const at::Tensor behind = places.at_distance(-distance, x_TC.device());
    grad_x.addcmul_(grad_source.index_select(0, behind), weight.select(1, tap));
    grad_weight.select(1, tap).copy_(
        source.index_select(0, before).to(at::kFloat).mul_(grad).sum(0));
  }
  return {grad_x.to(x_TC.scalar_type()), grad_weight.to(weight_CW.scalar_type())};
}

at::Tensor advance(const at::Tensor& x_TC, const at::Tensor& weight_CW, const RowIndex& rows,
                   const at::Tensor& tails_SVC, const std::vector<int64_t>& slots) {
  const InputPlaces places(rows, weight_CW.size(1) - 1, /*has_tails=*/true);
  const at::Tensor slots_R = device::to_device(std::span<const int64_t>(slots), tails_SVC.device());
  const at::Tensor tails_RVC = tails_SVC.index_select(0, slots_R);
  const at::Tensor source = with_zeros(at::cat({x_TC, tails_RVC.flatten(0, 1)}));
  tails_SVC.index_copy_(
      0, slots_R, source.index_select(0, places.of_tails(source.device())).view(tails_RVC.sizes()));
  return at::silu(before_activation(source, weight_CW, places, x_TC.size(0)))
      .to(x_TC.scalar_type());
}

}  // namespace
}  // namespace convoy::kernels::gathered_convolution

namespace convoy::kernels {

const ShortConvolutionOps kShortConvolutionAten = {
    gathered_convolution::forward, gathered_convolution::backward, gathered_convolution::advance};

}  // namespace convoy::kernels

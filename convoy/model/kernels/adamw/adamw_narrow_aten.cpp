// SPDX-License-Identifier: Apache-2.0
//
// Each parameter is widened whole, goes through LibTorch's fused kernel, and is narrowed again.
#include <ATen/ATen.h>

#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/adamw/adamw_ops.h"
#include "convoy/model/kernels/adamw/rounding_draws.h"
#include "convoy/model/kernels/counter_draws/counter_words.h"
#include "convoy/model/kernels/dynamic_code/dynamic_code.h"

namespace convoy::kernels {
namespace {

struct MapOnDevice {
  MapOnDevice(DynamicMap kind, at::Device device)
      : values(device::to_device<float>(DynamicCode::of(kind).values(), device)),
        thresholds(device::to_device<float>(
            std::span(DynamicCode::of(kind).thresholds()).first(255), device)) {}
  at::Tensor values;
  at::Tensor thresholds;
};

struct Moments {
  const at::Tensor& values;
  const at::Tensor& scales;
  const MapOnDevice& map;
};

at::Tensor widened(const Moments& of) {
  if (of.values.scalar_type() != at::kByte) return of.values.to(at::kFloat, false, /*copy=*/true);
  const at::Tensor scales =
      of.scales.repeat_interleave(kMomentBlock).narrow(0, 0, of.values.numel());
  return of.map.values.index_select(0, of.values.reshape({-1}).to(at::kLong))
      .mul_(scales)
      .view(of.values.sizes());
}

// `draws` [elements]: in 0 ... 65535.
void round_by_draws(const at::Tensor& from, const at::Tensor& draws, const at::Tensor& to) {
  constexpr int64_t kExponent = 0x7f800000;
  const at::Tensor bits = from.reshape({-1}).view(at::kInt).to(at::kLong);
  const at::Tensor is_number = bits.bitwise_and(kExponent).ne(kExponent);
  const at::Tensor upper = bits.add(draws.mul(is_number)).bitwise_right_shift(16);
  to.view({-1}).view(at::kShort).copy_(upper);
}

void encode(const at::Tensor& from, const Moments& to) {
  const int64_t numel = from.numel(), blocks = to.scales.numel();
  at::Tensor padded = at::zeros({blocks * kMomentBlock}, from.options());
  padded.narrow(0, 0, numel).copy_(from.reshape({-1}));
  padded = padded.view({blocks, kMomentBlock});
  at::Tensor scales = padded.abs().amax({1});
  scales = scales.add(scales.eq(0));
  to.scales.copy_(scales);
  const at::Tensor codes = at::bucketize(padded.div_(scales.unsqueeze(1)), to.map.thresholds);
  to.values.copy_(codes.view({-1}).narrow(0, 0, numel).view(to.values.sizes()));
}

void narrow(const at::Tensor& from, const at::Tensor& draws, const Moments& to) {
  if (to.values.scalar_type() == at::kByte)
    encode(from, to);
  else if (to.values.scalar_type() == at::kBFloat16)
    round_by_draws(from, draws, to.values);
  else
    to.values.copy_(from);
}

}  // namespace

void update_narrow_by_aten(const std::vector<AdamWTensors>& parameters, const AdamWStep& step) {
  const at::Device device = parameters[0].value.device();
  const MapOnDevice with_sign(DynamicMap::Signed, device);
  const MapOnDevice without_sign(DynamicMap::Unsigned, device);
  for (const AdamWTensors& of : parameters) {
    const Moments means{of.exp_avg, of.exp_avg_scale, with_sign};
    const Moments squares{of.exp_avg_sq, of.exp_avg_sq_scale, without_sign};
    AdamWTensors wide{.value = of.value.to(at::kFloat),
                      .gradient = of.gradient,
                      .exp_avg = widened(means),
                      .exp_avg_sq = widened(squares),
                      .rounded = of.rounded};
    kAdamWAten.update({wide}, step);
    const CounterKey key = counter_key(of.draw_key);
    at::Tensor words;
    if (of.exp_avg.scalar_type() == at::kBFloat16)
      words = counter_words(key, of.first_element, of.value.numel(), device);
    narrow(wide.exp_avg, words.defined() ? words.bitwise_and(0xffff) : words, means);
    narrow(wide.exp_avg_sq, words.defined() ? words.bitwise_right_shift(16) : words, squares);
    if (of.value.scalar_type() != at::kBFloat16) continue;
    words = counter_words(value_key(key), of.first_element, of.value.numel(), device);
    round_by_draws(wide.value, words.bitwise_and(0xffff), of.value);
  }
}

}  // namespace convoy::kernels

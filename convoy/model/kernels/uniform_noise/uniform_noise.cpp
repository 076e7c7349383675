// SPDX-License-Identifier: Apache-2.0
//
// Uses LibTorch's ops on every device, which is fast enough: the noise is added once a pass, and a
// single block of the model computes a hundred times as much.
#include "convoy/model/kernels/uniform_noise/uniform_noise.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "convoy/machine/device/transfer.h"
#include "convoy/model/kernels/counter_draws/counter_words.h"

namespace convoy::kernels {
namespace {

// Elements that are made at a time: their words take 64 bits each meanwhile.
constexpr int64_t kElementsAtATime = int64_t{1} << 22;

at::Tensor magnitudes_T1(const RowIndex& rows, int64_t width, double alpha, at::Device device) {
  std::vector<float> magnitudes;
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    const auto elements = static_cast<double>(rows.length(row) * width);
    magnitudes.insert(magnitudes.end(), static_cast<size_t>(rows.length(row)),
                      static_cast<float>(alpha / std::sqrt(elements)));
  }
  return device::to_device<float>(magnitudes, device).unsqueeze(1);
}

// Returns numbers in (-1, 1), symmetric about 0: odd multiples of 2^-24.
at::Tensor uniform(CounterKey key, int64_t first, int64_t count, at::Device device) {
  return counter_words(key, first, count, device)
      .bitwise_right_shift(8)
      .mul_(2)
      .sub_((int64_t{1} << 24) - 1)
      .to(at::kFloat)
      .mul_(0x1p-24);
}

}  // namespace

at::Tensor add_row_noise(const at::Tensor& x_TD, const RowIndex& rows, double alpha, uint64_t key) {
  const int64_t tokens = x_TD.size(0), width = x_TD.size(1);
  if (tokens == 0) return x_TD;
  const at::Tensor noise_TD = [&] {
    const at::NoGradGuard no_grad;
    const at::Tensor noise = at::empty({tokens, width}, x_TD.options().dtype(at::kFloat));
    const at::Tensor flat = noise.view({-1});
    for (int64_t first = 0; first < flat.numel(); first += kElementsAtATime) {
      const int64_t count = std::min(kElementsAtATime, flat.numel() - first);
      flat.narrow(0, first, count).copy_(uniform(counter_key(key), first, count, x_TD.device()));
    }
    return noise.mul_(magnitudes_T1(rows, width, alpha, x_TD.device()));
  }();
  return x_TD.to(at::kFloat).add(noise_TD).to(x_TD.scalar_type());
}

}  // namespace convoy::kernels

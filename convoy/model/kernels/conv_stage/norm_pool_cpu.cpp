// SPDX-License-Identifier: Apache-2.0
//
// A task is one window. Sums over windows run in their order, in double, so that no bit depends on
// the number of threads.
#include <ATen/Parallel.h>

#include <cmath>

#include "convoy/model/kernels/conv_stage/norm_pool_ops.h"
#include "convoy/model/kernels/simd/element.h"
#include "convoy/model/kernels/simd/simd_kernels.h"

namespace convoy::kernels {
namespace {

// Windows [rows, channels] that lie `stride` elements apart.
struct Windows {
  explicit Windows(const at::Tensor& z_NLO)
      : first(z_NLO.mutable_data_ptr<float>()),
        stride(z_NLO.stride(0)),
        count(z_NLO.size(0)),
        shape{z_NLO.size(1), z_NLO.size(2)} {}
  float* at(int64_t window) const { return first + window * stride; }

  float* first;
  int64_t stride;
  int64_t count;
  RowShape shape;
};

ChannelNorm pointers(const NormTensors& norm) {
  return {norm.mean_O.const_data_ptr<float>(), norm.inverse_deviation_O.const_data_ptr<float>(),
          norm.scale_O.const_data_ptr<float>(), norm.offset_O.const_data_ptr<float>()};
}

void for_windows(const Windows& windows, const std::function<void(int64_t)>& body) {
  for_rows(windows.count, windows.shape.rows * windows.shape.width,
           [&](int64_t begin, int64_t end) {
             for (int64_t window = begin; window < end; ++window) body(window);
           });
}

// Sums [N, 2, O] over N, in order, to [2, O].
at::Tensor summed_in_order(const at::Tensor& parts_N2O) {
  const int64_t width = parts_N2O.size(1) * parts_N2O.size(2);
  std::vector<double> sums(static_cast<size_t>(width));
  const float* part = parts_N2O.const_data_ptr<float>();
  for (int64_t window = 0; window < parts_N2O.size(0); ++window, part += width)
    for (int64_t at = 0; at < width; ++at) sums[static_cast<size_t>(at)] += part[at];
  at::Tensor total = at::empty({2, parts_N2O.size(2)}, at::kDouble);
  std::copy(sums.begin(), sums.end(), total.mutable_data_ptr<double>());
  return total;
}

// Sums the distances to the first row, and the squares of these distances, which keep their digits
// however large the mean is.
at::Tensor statistics(const at::Tensor& z_NLO) {
  const Windows windows(z_NLO);
  const int64_t channels = windows.shape.width;
  at::Tensor parts_N2O = at::empty({windows.count, 2, channels}, at::kFloat);
  float* const parts = parts_N2O.mutable_data_ptr<float>();
  const auto& loops = simd_kernels<float>();
  for_windows(windows, [&](int64_t window) {
    float* const part = parts + window * 2 * channels;
    loops.shifted_sums(windows.at(window), windows.first, part, part + channels, windows.shape);
  });
  at::Tensor found = at::empty({2, channels}, at::kFloat);
  const at::Tensor sums = summed_in_order(parts_N2O);
  const double* const total = sums.const_data_ptr<double>();
  float* const mean = found.mutable_data_ptr<float>();
  const auto rows = static_cast<double>(windows.count * windows.shape.rows);
  for (int64_t channel = 0; channel < channels; ++channel) {
    const double apart = total[channel] / rows;
    mean[channel] = static_cast<float>(windows.first[channel] + apart);
    mean[channels + channel] =
        static_cast<float>(std::max(0.0, total[channels + channel] / rows - apart * apart));
  }
  return found;
}

at::Tensor activate(const at::Tensor& z_NLO, const NormTensors& norm, Pool pool) {
  const Windows windows(z_NLO);
  const auto& [rows, channels] = windows.shape;
  const bool pairs = pool == Pool::Pairs;
  at::Tensor y = pairs ? at::empty({windows.count, rows / 2, channels}, z_NLO.options())
                       : at::empty({windows.count, channels}, z_NLO.options());
  float* const to = y.mutable_data_ptr<float>();
  const auto& loops = simd_kernels<float>();
  const auto activate_window = pairs ? loops.activate_pairs : loops.activate_mean;
  for_windows(windows, [&](int64_t window) {
    activate_window(windows.at(window), pointers(norm), to + window * y.stride(0), windows.shape);
  });
  return y;
}

NormPoolGradients gradients(const at::Tensor& grad, const at::Tensor& z_NLO,
                            const NormTensors& norm, Pool pool, const at::Tensor& grad_z_NLO) {
  const Windows windows(z_NLO);
  const Windows results(grad_z_NLO);
  const int64_t channels = windows.shape.width;
  const bool pairs = pool == Pool::Pairs;
  const float* const incoming = grad.const_data_ptr<float>();
  const auto& loops = simd_kernels<float>();

  at::Tensor parts_N2O = at::empty({windows.count, 2, channels}, at::kFloat);
  float* const parts = parts_N2O.mutable_data_ptr<float>();
  const auto sum_window = pairs ? loops.pairs_gradient_sums : loops.mean_gradient_sums;
  for_windows(windows, [&](int64_t window) {
    float* const part = parts + window * 2 * channels;
    sum_window(incoming + window * grad.stride(0), windows.at(window), pointers(norm), part,
               part + channels, windows.shape);
  });
  const at::Tensor sums = summed_in_order(parts_N2O);
  const at::Tensor means =
      sums.div(static_cast<double>(windows.count * windows.shape.rows)).to(at::kFloat);
  const NormGradientMeans mean_pointers{means.const_data_ptr<float>(),
                                        means.const_data_ptr<float>() + channels};
  const auto through_window = pairs ? loops.pairs_gradient : loops.mean_gradient;
  for_windows(windows, [&](int64_t window) {
    through_window(incoming + window * grad.stride(0), windows.at(window), pointers(norm),
                   mean_pointers, results.at(window), windows.shape);
  });
  const at::Tensor rounded = sums.to(at::kFloat);
  return {.gain_O = rounded[1], .shift_O = rounded[0]};
}

}  // namespace

const NormPoolOps kNormPoolCpu = {statistics, activate, gradients};

}  // namespace convoy::kernels

// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/bitsandbytes_weight/code_tables.h"

#include <ATen/ATen.h>

#include <cmath>

namespace convoy::kernels {
namespace {

constexpr int kDecades = 7;

constexpr NibbleTable kNf4 = {-1.0f,
                              -0.6961928009986877f,
                              -0.5250730514526367f,
                              -0.39491748809814453f,
                              -0.28444138169288635f,
                              -0.18477343022823334f,
                              -0.09105003625154495f,
                              0.0f,
                              0.07958029955625534f,
                              0.16093020141124725f,
                              0.24611230194568634f,
                              0.33791524171829224f,
                              0.44070982933044434f,
                              0.5626170039176941f,
                              0.7229568362236023f,
                              1.0f};

constexpr float kLargestFp4 = 12.0f;
constexpr NibbleTable kFp4 = {
    0.0f / kLargestFp4,  0.0625f / kLargestFp4,  8.0f / kLargestFp4,  12.0f / kLargestFp4,
    4.0f / kLargestFp4,  6.0f / kLargestFp4,     2.0f / kLargestFp4,  3.0f / kLargestFp4,
    0.0f / kLargestFp4,  -0.0625f / kLargestFp4, -8.0f / kLargestFp4, -12.0f / kLargestFp4,
    -4.0f / kLargestFp4, -6.0f / kLargestFp4,    -2.0f / kLargestFp4, -3.0f / kLargestFp4};

}  // namespace

const NibbleTable& nf4_table() { return kNf4; }
const NibbleTable& fp4_table() { return kFp4; }

at::Tensor dynamic_map(DynamicMap kind) {
  std::vector<at::Tensor> parts{at::tensor({0.0f, 1.0f})};
  for (int decade = 0; decade < kDecades; ++decade) {
    const int64_t steps = int64_t{1} << (kind == DynamicMap::Signed ? decade : decade + 1);
    const at::Tensor bounds = at::linspace(0.1, 1, steps + 1, at::kFloat);
    const at::Tensor middles = (bounds.slice(0, 0, steps) + bounds.slice(0, 1)) / 2.0;
    const double size = std::pow(10.0, decade - kDecades + 1);
    parts.push_back(middles * size);
    if (kind == DynamicMap::Signed) parts.push_back(middles * -size);
  }
  return std::get<0>(at::cat(parts).sort());
}

}  // namespace convoy::kernels

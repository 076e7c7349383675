// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/gated_delta_rule/gated_delta_rule.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

using testing::sample;
using testing::Tensors;

struct Sizes {
  int64_t heads = 1;
  int64_t key_heads = 1;
  int64_t key_features = 4;
  int64_t value_features = 4;
};

int64_t tokens_of(const std::vector<int64_t>& lengths) {
  return std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
}

RowIndex rows_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> starts{0};
  for (const int64_t length : lengths) starts.push_back(starts.back() + length);
  return RowIndex(starts);
}

// Decays from 1 down to about a third, betas within (0, 1).
Tensors inputs_of(int64_t tokens, const Sizes& sizes, at::ScalarType dtype, uint64_t seed = 1) {
  const at::Tensor decay = sample({tokens, sizes.heads}, at::kFloat, seed + 3).square() * -0.3;
  return {sample({tokens, sizes.key_heads, sizes.key_features}, dtype, seed),
          sample({tokens, sizes.key_heads, sizes.key_features}, dtype, seed + 1),
          sample({tokens, sizes.heads, sizes.value_features}, dtype, seed + 2), decay,
          sample({tokens, sizes.heads}, at::kFloat, seed + 4).sigmoid()};
}

at::Tensor rule(const Tensors& in, const RowIndex& rows) {
  return gated_delta_rule(in[0], in[1], in[2], in[3], in[4], rows);
}

at::Tensor of_unit_length(const at::Tensor& x) {
  return x / (x.square().sum(-1, true) + 1e-6).sqrt();
}

// The recurrence as it stands in the header, token by token, from `state` [H, E, F] on.
at::Tensor row_by_token(const Tensors& in, at::Tensor state) {
  const int64_t group = in[2].size(1) / in[1].size(1);
  const at::Tensor q = of_unit_length(in[0]).repeat_interleave(group, 1) /
                       std::sqrt(static_cast<double>(in[0].size(2)));
  const at::Tensor k = of_unit_length(in[1]).repeat_interleave(group, 1);
  Tensors out;
  for (int64_t token = 0; token < in[0].size(0); ++token) {
    state = state * in[3][token].exp().unsqueeze(-1).unsqueeze(-1);
    const at::Tensor seen = at::matmul(k[token].unsqueeze(1), state).squeeze(1);
    const at::Tensor change = (in[2][token] - seen) * in[4][token].unsqueeze(-1);
    state = state + k[token].unsqueeze(2) * change.unsqueeze(1);
    out.push_back(at::matmul(q[token].unsqueeze(1), state).squeeze(1));
  }
  return at::stack(out);
}

at::Tensor reference(const Tensors& in, const RowIndex& rows) {
  Tensors out{in[2].narrow(0, 0, 0)};
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    if (rows.length(row) == 0) continue;
    Tensors of_row;
    for (const at::Tensor& input : in)
      of_row.push_back(input.narrow(0, rows.begin(row), rows.length(row)));
    out.push_back(row_by_token(
        of_row, at::zeros({in[2].size(1), in[1].size(2), in[2].size(2)}, in[2].options())));
  }
  return at::cat(out);
}

testing::OpErrors errors_of(const std::vector<int64_t>& lengths, const Sizes& sizes,
                            at::ScalarType dtype) {
  const RowIndex rows = rows_of(lengths);
  return testing::compare([&](const Tensors& in) { return rule(in, rows); },
                          [&](const Tensors& in) { return reference(in, rows); },
                          inputs_of(tokens_of(lengths), sizes, dtype));
}

// Terms of the longest sum: the features of a key, and some tokens of the past.
double tolerance(at::ScalarType dtype, const Sizes& sizes) {
  return testing::tolerance(dtype, 8 * (sizes.key_features + 64));
}

TEST(GatedDeltaRule, EqualsReference) {
  const std::vector<std::vector<int64_t>> packs = {
      {1}, {3, 1, 9}, {64}, {65, 0, 200, 63}, {130, 2}};
  const std::vector<Sizes> shapes = {{1, 1, 4, 4}, {3, 3, 5, 7}, {4, 2, 33, 18}, {2, 1, 40, 70}};
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const auto& lengths : packs) {
      for (const Sizes& sizes : shapes) {
        const auto errors = errors_of(lengths, sizes, dtype);
        EXPECT_LT(errors.output, tolerance(dtype, sizes)) << dtype << " " << lengths;
        for (size_t input = 0; input < 5; ++input)
          EXPECT_LT(errors.gradients[input], tolerance(dtype, sizes))
              << dtype << " " << lengths << " " << sizes.key_features << " input " << input;
      }
    }
  }
}

}  // namespace
}  // namespace convoy::kernels

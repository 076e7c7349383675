// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/short_convolution/short_convolution.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "convoy/core/base/error.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels::token_convolution {
namespace {

using testing::sample;
using testing::Tensors;

RowIndex rows_of(const std::vector<int64_t>& lengths) {
  std::vector<int64_t> starts{0};
  for (const int64_t length : lengths) starts.push_back(starts.back() + length);
  return RowIndex(starts);
}

// Applies torch's convolution to each row.
at::Tensor convolved_rows(const Tensors& in, const RowIndex& rows) {
  const int64_t channels = in[1].size(0), taps = in[1].size(1);
  Tensors out{in[0].narrow(0, 0, 0)};
  for (int64_t row = 0; row < rows.num_rows(); ++row) {
    if (rows.length(row) == 0) continue;
    const at::Tensor x_1CT = in[0].narrow(0, rows.begin(row), rows.length(row)).t().unsqueeze(0);
    const at::Tensor y_1CT = at::conv1d(x_1CT, in[1].unsqueeze(1), {}, 1, taps - 1, 1, channels);
    out.push_back(at::silu(y_1CT[0].narrow(1, 0, rows.length(row)).t()));
  }
  return at::cat(out);
}

testing::OpErrors convolution_errors(const RowIndex& rows, const RowIndex& expected,
                                     int64_t channels, int64_t taps, at::ScalarType dtype) {
  return testing::compare(
      [&](const Tensors& in) { return short_convolution(in[0], in[1], rows); },
      [&](const Tensors& in) { return convolved_rows(in, expected); },
      {sample({rows.num_tokens(), channels}, dtype, 1), sample({channels, taps}, dtype, 2)});
}

TEST(ShortConvolution, EqualsTorchsConvolution) {
  const RowIndex rows = rows_of({1, 5, 0, 2, 400});
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const int64_t taps : {1, 2, 4}) {
      for (const int64_t channels : {1, 5, 130, 300})
        EXPECT_LT(convolution_errors(rows, rows, channels, taps, dtype).worst(),
                  testing::tolerance(dtype, rows.num_tokens()))
            << dtype << " " << taps << " " << channels;
    }
  }
}

TEST(ShortConvolution, RowsThatMixAreSeen) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto errors = convolution_errors(rows_of({12}), rows_of({5, 7}), 20, 4, dtype);
    EXPECT_GT(errors.output, testing::tolerance(dtype, 12));
    for (const double error : errors.gradients) EXPECT_GT(error, testing::tolerance(dtype, 12));
  }
}

class ConvolutionBits : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
    threads_before_ = at::get_num_threads();
  }
  void TearDown() override {
    if (threads_before_ > 0) at::set_num_threads(threads_before_);
  }
  // Returns the output and the gradients of both inputs.
  static Tensors results_of(const at::Tensor& x, const at::Tensor& weight, const RowIndex& rows,
                            const at::Tensor& cotangent) {
    const Tensors in{x.detach().requires_grad_(), weight.detach().requires_grad_()};
    Tensors results{short_convolution(in[0], in[1], rows)};
    for (const at::Tensor& grad : torch::autograd::grad(results, in, {cotangent}))
      results.push_back(grad);
    return results;
  }
  int threads_before_ = 0;
};

TEST_F(ConvolutionBits, DoNotDependOnNeighboursOrThreads) {
  const RowIndex rows = rows_of({3, 90, 1, 200});
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor wide = sample({rows.num_tokens(), 700}, dtype, 1);
    const at::Tensor x = wide.narrow(1, 30, 500), weight = sample({500, 4}, dtype, 2);
    const at::Tensor cotangent = sample(x.sizes(), dtype, 3);
    at::set_num_threads(1);
    const Tensors one = results_of(x, weight, rows, cotangent);
    at::set_num_threads(3);
    const Tensors three = results_of(x, weight, rows, cotangent);
    for (size_t at = 0; at < one.size(); ++at) EXPECT_TRUE(at::equal(three[at], one[at])) << at;
    for (int64_t row = 0; row < rows.num_rows(); ++row) {
      const auto of_row = [&](const at::Tensor& of) {
        return of.narrow(0, rows.begin(row), rows.length(row)).contiguous();
      };
      const Tensors alone =
          results_of(of_row(x), weight, rows_of({rows.length(row)}), of_row(cotangent));
      EXPECT_TRUE(at::equal(alone[0], of_row(one[0]))) << dtype << " row " << row;
      EXPECT_TRUE(at::equal(alone[1], of_row(one[1]))) << dtype << " row " << row;
    }
  }
}

TEST(ShortConvolutionWithState, OfPiecesEqualsTheWholeRow) {
  const std::vector<int64_t> lengths = {9, 2};
  const RowIndex rows = rows_of(lengths);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const int64_t taps : {1, 2, 4}) {
      const at::Tensor x = sample({11, 37}, dtype, 1), weight = sample({37, taps}, dtype, 2);
      const at::Tensor whole = short_convolution(x, weight, rows);
      for (const int64_t piece : {1, 2, 9}) {
        const at::Tensor tails = at::zeros({4, taps - 1, 37}, x.options());
        at::Tensor found = at::empty_like(whole);
        for (int64_t first = 0; first < 9; first += piece) {
          const int64_t of_long = std::min(piece, 9 - first);
          const int64_t of_short = std::clamp<int64_t>(2 - first, 0, piece);
          const int64_t short_begin = std::min<int64_t>(9 + first, 11);
          const at::Tensor out = short_convolution_with_state(
              at::cat({x.narrow(0, first, of_long), x.narrow(0, short_begin, of_short)}), weight,
              rows_of({of_long, of_short}), tails, {3, 1});
          found.narrow(0, first, of_long).copy_(out.narrow(0, 0, of_long));
          found.narrow(0, short_begin, of_short).copy_(out.narrow(0, of_long, of_short));
        }
        EXPECT_LT(testing::relative_error(found, whole), testing::tolerance(dtype, taps));
        if (testing::runs_cpu_table()) {
          EXPECT_TRUE(at::equal(found, whole)) << dtype << " pieces of " << piece;
        }
        for (const int64_t unused : {0, 2})
          EXPECT_TRUE(at::equal(tails[unused], at::zeros_like(tails[unused])));
        const at::Tensor long_tail = x.narrow(0, 9 - (taps - 1), taps - 1);
        EXPECT_TRUE(at::equal(tails[3], long_tail));
        const at::Tensor short_row = at::cat({at::zeros_like(x).narrow(0, 0, 4), x.slice(0, 9)});
        EXPECT_TRUE(at::equal(tails[1], short_row.slice(0, 6 - (taps - 1))));
      }
    }
  }
}

TEST(ShortConvolution, RefusesInputsThatDoNotFit) {
  const at::Tensor x = at::ones({4, 6}), weight = at::ones({6, 4});
  const RowIndex rows = rows_of({4});
  EXPECT_THROW(short_convolution(x, at::ones({5, 4}), rows), StateError);
  EXPECT_THROW(short_convolution(x, weight.to(at::kBFloat16), rows), StateError);
  EXPECT_THROW(short_convolution(x, weight, rows_of({3})), StateError);
  EXPECT_THROW(short_convolution_with_state(x, weight, rows, at::zeros({1, 4, 6})), StateError);
  EXPECT_THROW(short_convolution_with_state(x, weight, rows, at::zeros({1, 3, 6}), {1}),
               StateError);
  EXPECT_NO_THROW(short_convolution_with_state(x, weight, rows, at::zeros({1, 3, 6}), {0}));
}

}  // namespace
}  // namespace convoy::kernels::token_convolution

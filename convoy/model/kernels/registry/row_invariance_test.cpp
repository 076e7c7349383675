// SPDX-License-Identifier: Apache-2.0
//
// On the CPU a row's bits depend only on that row, and not on the rows beside it or on the number
// of threads. Generation needs this for texts that do not depend on the batch. Products, attention
// over a cache and sampling have their own tests of this.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "convoy/model/kernels/delta_gates/delta_gates.h"
#include "convoy/model/kernels/gated_activation/gated_activation.h"
#include "convoy/model/kernels/matrix_product/matrix_product.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/model/kernels/rms_norm/rms_norm.h"
#include "convoy/model/kernels/rope/rope.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

using Op = std::function<at::Tensor(const at::Tensor&)>;

class RowInvariance : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::runs_cpu_table()) GTEST_SKIP() << "promised on the CPU";
  }

  // Compares rows of x computed alone, on one thread, with the same rows among the others, on four
  // threads.
  static void check(const Op& op, const at::Tensor& x) {
    const int threads_before = at::get_num_threads();
    at::set_num_threads(4);
    const at::Tensor together = op(x);
    at::set_num_threads(1);
    for (const int64_t rows : {1, 3, 17}) {
      for (const int64_t first : {int64_t{0}, int64_t{5}, x.size(0) - rows})
        EXPECT_TRUE(
            at::equal(op(x.slice(0, first, first + rows)), together.slice(0, first, first + rows)))
            << x.scalar_type() << " rows " << first << " to " << first + rows;
    }
    at::set_num_threads(threads_before);
  }
};

TEST_F(RowInvariance, OfNorms) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = testing::sample({515}, dtype, 2);
    for (const NormOrder order : {NormOrder::CastThenScale, NormOrder::ScaleByOnePlusThenCast})
      check([&](const at::Tensor& x) { return rms_norm(x, weight, 1e-6, order); },
            testing::sample({70, 515}, dtype, 1));
  }
}

TEST_F(RowInvariance, OfGatedActivations) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Activation activation :
         {Activation::Silu, Activation::GeluTanh, Activation::Sigmoid})
      check(
          [&](const at::Tensor& x) {
            return gated_activation(x.slice(1, 0, 333).contiguous(), x.slice(1, 333).contiguous(),
                                    activation);
          },
          testing::sample({70, 666}, dtype, 1));
  }
}

TEST_F(RowInvariance, OfTheGatesOfTheDeltaRule) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor a_log = testing::sample({7}, dtype, 2),
                     dt_bias = testing::sample({7}, dtype, 3);
    check(
        [&](const at::Tensor& x) {
          const DeltaGates gates = delta_gates(x.slice(1, 0, 7), x.slice(1, 7), a_log, dt_bias);
          return at::cat({gates.log_decay_TH, gates.beta_TH}, 1);
        },
        testing::sample({70, 14}, dtype, 1));
  }
}

TEST_F(RowInvariance, OfRotaryEmbeddings) {
  const at::Tensor cos = testing::sample({80, 20}, at::kFloat, 2);
  const at::Tensor sin = testing::sample({80, 20}, at::kFloat, 3);
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    check(
        [&](const at::Tensor& x) {
          // The positions are computed from x, so each row keeps its position.
          const at::Tensor places =
              x.select(1, 0).select(1, 0).to(at::kFloat).mul(7).abs().to(at::kLong);
          return rope(x, cos, sin, places);
        },
        testing::sample({70, 3, 40}, dtype, 1));
}

TEST_F(RowInvariance, OfProductsOfSeveralTerms) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor b = testing::sample({130, 200}, dtype, 2);
    const at::Tensor low = testing::sample({8, 200}, dtype, 3);
    check(
        [&](const at::Tensor& x) {
          return matrix_product({{x, b}, {x.slice(1, 0, 8).contiguous(), low}});
        },
        testing::sample({600, 130}, dtype, 1));
  }
}

}  // namespace
}  // namespace convoy::kernels

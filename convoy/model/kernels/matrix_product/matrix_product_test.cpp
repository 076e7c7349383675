// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/matrix_product/matrix_product.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/matrix_product/panel_product.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

// Returns `matrix` as the transposed view of a matrix that stores its columns as rows.
at::Tensor by_columns(const at::Tensor& matrix) { return matrix.t().contiguous().t(); }

struct Shape {
  int64_t rows, inner, columns;
};
const std::vector<Shape>& product_shapes() {
  static const std::vector<Shape> all{{1, 1, 1},     {1, 512, 300},  {3, 7, 31},
                                      {8, 64, 128},  {65, 33, 129},  {130, 200, 97},
                                      {5, 16, 1000}, {200, 512, 16}, {16, 2300, 150}};
  return all;
}

TEST(MatrixProduct, EqualsDoubleArithmeticHoweverTheMatricesLie) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const Shape& shape : product_shapes()) {
      const at::Tensor a = testing::sample({shape.rows, shape.inner}, dtype, 1);
      const at::Tensor b = testing::sample({shape.inner, shape.columns}, dtype, 2);
      const at::Tensor bias = testing::sample({shape.columns}, dtype, 3);
      const at::Tensor wanted =
          0.5 * (at::matmul(a.to(at::kDouble), b.to(at::kDouble)) + bias.to(at::kDouble));
      for (const ProductTerm& term :
           {ProductTerm{a, b}, ProductTerm{by_columns(a), b}, ProductTerm{a, by_columns(b)}}) {
        const at::Tensor found = matrix_product({term}, {.bias_N = bias, .factor = 0.5});
        EXPECT_EQ(found.scalar_type(), dtype);
        EXPECT_LT(testing::relative_error(found, wanted), testing::tolerance(dtype, shape.inner))
            << dtype << " " << shape.rows << "x" << shape.inner << "x" << shape.columns;
      }
    }
  }
}

TEST(MatrixProduct, TermsAreSummedBeforeTheyAreRounded) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "LibTorch rounds between them";
  const auto bf16 = at::kBFloat16;
  const at::Tensor a = testing::sample({70, 64}, bf16, 1);
  const at::Tensor w = testing::sample({64, 140}, bf16, 2);
  const at::Tensor u = testing::sample({70, 16}, bf16, 3);
  const at::Tensor b = testing::sample({16, 140}, bf16, 4);
  const at::Tensor wanted = at::matmul(a.to(at::kDouble), w.to(at::kDouble)) +
                            at::matmul(u.to(at::kDouble), b.to(at::kDouble));
  const at::Tensor rounded = matrix_product({{a, w}, {u, b}});
  const at::Tensor excess =
      (rounded.to(at::kDouble) - wanted).abs() - wanted.abs() * std::ldexp(1.0, -8);
  EXPECT_LT(excess.max().item<double>(), 1e-4);
  const at::Tensor wide = matrix_product({{a, w}, {u, b}}, {.wide = true});
  EXPECT_EQ(wide.scalar_type(), at::kFloat);
  EXPECT_LT(testing::relative_error(wide, wanted), testing::tolerance(at::kFloat, 80));
}

// A result that is not rounded is summed where it lies; a factor of two makes a copy of the sums.
TEST(MatrixProduct, SumsInPlaceAreTheSame) {
  for (const int64_t columns : {32, 96, 320, 1024, 1000}) {
    const at::Tensor a = testing::sample({100, 1030}, at::kFloat, 1);
    const at::Tensor b = testing::sample({1030, columns}, at::kFloat, 2);
    const at::Tensor bias = testing::sample({columns}, at::kFloat, 3);
    const std::vector<ProductTerm> terms = {{a, b}, {a.narrow(1, 0, 40), b.narrow(0, 0, 40)}};
    const at::Tensor found = matrix_product(terms, {.bias_N = bias});
    const at::Tensor doubled = matrix_product(terms, {.bias_N = bias, .factor = 2.0});
    EXPECT_TRUE(at::equal(2 * found, doubled)) << columns;
  }
}

// Blocks of rows have as many rows as fill the registers, and the last ones have fewer.
TEST(MatrixProduct, ARowsBitsDoNotDependOnTheNumberOfRows) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "LibTorch's products may depend on it";
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor a = testing::sample({20, 515}, dtype, 1);
    for (const int64_t columns : {16, 64, 75}) {
      const at::Tensor b = testing::sample({515, columns}, dtype, 2);
      const at::Tensor all = matrix_product({{a, b}});
      for (int64_t rows = 1; rows < 20; ++rows)
        EXPECT_TRUE(at::equal(matrix_product({{a.narrow(0, 0, rows), b}}), all.narrow(0, 0, rows)))
            << dtype << " " << rows << " rows, " << columns << " columns";
    }
  }
}

TEST(MatrixProduct, ARowsBitsDependOnNeitherOtherRowsNorThreads) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "LibTorch's products may depend on them";
  const int before = at::get_num_threads();
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor a = testing::sample({150, 1300}, dtype, 1);
    const at::Tensor b = testing::sample({1300, 333}, dtype, 2);
    const at::Tensor all = matrix_product({{a, b}});
    for (const int64_t row : {0, 63, 64, 149})
      EXPECT_TRUE(at::equal(matrix_product({{a.slice(0, row, row + 1), b}})[0], all[row]));
    for (const int threads : {1, 3}) {
      at::set_num_threads(threads);
      EXPECT_TRUE(at::equal(matrix_product({{a, b}}), all)) << threads;
    }
    at::set_num_threads(before);
  }
}

TEST(MatrixProduct, NothingGivesNothing) {
  EXPECT_EQ(matrix_product({{at::ones({0, 4}), at::ones({4, 3})}}).sizes(),
            (at::IntArrayRef{0, 3}));
  EXPECT_TRUE(matrix_product({{at::ones({2, 0}), at::ones({0, 3})}}).eq(0).all().item<bool>());
}

TEST(MatrixProduct, TermsThatDoNotFitAreRefused) {
  const at::Tensor a = at::ones({2, 4});
  EXPECT_THROW(matrix_product({{a, at::ones({3, 4})}}), StateError);
  EXPECT_THROW(matrix_product({{a, at::ones({4, 3}, at::kBFloat16)}}), StateError);
  EXPECT_THROW(matrix_product({{a, at::ones({4, 3})}}, {.bias_N = at::ones({4})}), StateError);
}

testing::OpErrors product_errors(at::IntArrayRef sizes, bool biased, at::ScalarType dtype,
                                 double planted = 0) {
  Tensors inputs{testing::sample(sizes, dtype, 1), testing::sample({35, sizes.back()}, dtype, 2)};
  if (biased) inputs.push_back(testing::sample({35}, dtype, 3));
  const auto op = [](const Tensors& in) {
    return trained_linear(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor());
  };
  const auto reference = [&](const Tensors& in) {
    const at::Tensor y = at::matmul(in[0], in[1].t() * (1 + planted));
    return in.size() > 2 ? y + in[2] : y;
  };
  return testing::compare(op, reference, inputs);
}

TEST(TrainedLinear, EqualsReference) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    for (const bool biased : {false, true}) {
      for (const std::vector<int64_t>& sizes :
           std::vector<std::vector<int64_t>>{{0, 8}, {1, 7}, {33, 64}, {2, 5, 48}, {300, 130}}) {
        EXPECT_LT(product_errors(sizes, biased, dtype).worst(), testing::tolerance(dtype, 300))
            << sizes << dtype;
      }
    }
    EXPECT_GT(product_errors({33, 64}, true, dtype, 0.05).worst(), testing::tolerance(dtype, 64));
  }
}

// The outputs and gradients of maps with a common input equal plain autograd, also if an output is
// not used.
TEST(TrainedLinear, MapsOfOneInputHaveOneGradientOfIt) {
  const auto run = [](at::ScalarType dtype, bool together, bool uses_all) {
    Tensors leaves{testing::sample({9, 64}, dtype, 1), testing::sample({35, 64}, dtype, 2),
                   testing::sample({16, 64}, dtype, 3), testing::sample({16}, dtype, 4)};
    for (at::Tensor& leaf : leaves)
      leaf = leaf.to(together ? dtype : at::kDouble).detach().requires_grad_();
    Tensors results = together
                          ? trained_linears(leaves[0], {{leaves[1], {}}, {leaves[2], leaves[3]}})
                          : Tensors{at::linear(leaves[0], leaves[1]),
                                    at::linear(leaves[0], leaves[2], leaves[3])};
    at::Tensor sum = results[1].square().sum();
    if (uses_all) sum = sum + results[0].square().sum();
    sum.backward();
    for (const at::Tensor& leaf : leaves) results.push_back(leaf.grad());
    return results;
  };
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const bool uses_all : {true, false}) {
      const Tensors found = run(dtype, true, uses_all), wanted = run(dtype, false, uses_all);
      for (size_t at = 0; at < wanted.size(); ++at) {
        ASSERT_EQ(found[at].defined(), wanted[at].defined()) << at;
        if (!wanted[at].defined()) continue;
        EXPECT_LT(testing::relative_error(found[at], wanted[at]), testing::tolerance(dtype, 64))
            << at << dtype;
      }
    }
}

TEST(MatrixProduct, WritesItsResultIntoColumns) {
  const at::Tensor a = testing::sample({9, 64}, at::kFloat, 1);
  const at::Tensor b = testing::sample({64, 8}, at::kFloat, 2);
  for (const OpTable* table : {&aten_op_table(), &op_table(a)}) {
    const at::Tensor whole = at::zeros({9, 20});
    const at::Tensor columns = whole.narrow(1, 4, 8);
    table->matrix_product.product({{a, b}}, {.factor = 0.5, .into = columns});
    EXPECT_LT(testing::relative_error(columns, at::mm(a, b) * 0.5), 1e-6);
    EXPECT_EQ(whole.count_nonzero().item<int64_t>(), columns.numel());
  }
}

TEST(TrainedLinear, ComputesOnlyTheGradientsThatAreWanted) {
  const at::Tensor x = testing::sample({9, 64}, at::kFloat, 1);
  const at::Tensor weight = testing::sample({35, 64}, at::kFloat, 2).requires_grad_(true);
  trained_linear(x, weight, {}).sum().backward();
  EXPECT_TRUE(weight.grad().defined());
  EXPECT_FALSE(x.grad().defined());
  EXPECT_FALSE(trained_linear(x, weight.detach(), {}).requires_grad());
}

}  // namespace
}  // namespace convoy::kernels

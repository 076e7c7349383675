// SPDX-License-Identifier: Apache-2.0
//
// Compares with LibTorch's convolution, batch norm and pooling in double.
#include "convoy/model/kernels/conv_stage/conv_stage.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "kernel_checks/op_check.h"
#include "kernel_checks/tables.h"

namespace convoy::kernels {
namespace {

using testing::Tensors;

struct Geometry {
  int64_t windows;
  int64_t rows;
  int64_t channels;
  int64_t outputs;
  int64_t kernel;
};

// Returns x, weight, bias, gain and shift.
Tensors sample_inputs(const Geometry& of, uint64_t seed = 1) {
  return {testing::sample({of.windows, of.rows, of.channels}, at::kFloat, seed),
          testing::sample({of.outputs, of.channels, of.kernel}, at::kFloat, seed + 1) * 0.3,
          testing::sample({of.outputs}, at::kFloat, seed + 2),
          testing::sample({of.outputs}, at::kFloat, seed + 3),
          testing::sample({of.outputs}, at::kFloat, seed + 4)};
}

struct Running {
  at::Tensor mean_O;
  at::Tensor variance_O;
};

Running sample_running(int64_t outputs) {
  return {testing::sample({outputs}, at::kFloat, 7),
          testing::sample({outputs}, at::kFloat, 8).abs() + 0.1};
}

at::Tensor stage(const Tensors& in, const Running& running, const ConvStageOptions& options) {
  return conv_stage(in[0],
                    {.weight_OCK = in[1],
                     .bias_O = in[2],
                     .gain_O = in[3],
                     .shift_O = in[4],
                     .running_mean_O = running.mean_O,
                     .running_variance_O = running.variance_O},
                    options);
}

at::Tensor reference(const Tensors& in, const Running& running, const ConvStageOptions& options) {
  const at::Tensor z_NOL =
      at::conv1d(in[0].transpose(1, 2), in[1], in[2], 1, (in[1].size(2) - 1) / 2);
  const at::Tensor y_NOL =
      at::batch_norm(z_NOL, in[3], in[4], running.mean_O, running.variance_O, options.training,
                     options.momentum, options.epsilon, false)
          .relu();
  if (options.pool == Pool::Mean) return y_NOL.mean(2);
  return at::max_pool1d(y_NOL, 2).transpose(1, 2);
}

Running wide(const Running& running) {
  return {running.mean_O.to(at::kDouble), running.variance_O.to(at::kDouble)};
}

// The cases have few and many channels, odd numbers of rows, kernels of one row, and channels that
// do not fill whole registers.
const std::vector<Geometry> kGeometries = {{3, 8, 2, 5, 3},    {4, 17, 9, 64, 5}, {2, 6, 33, 40, 1},
                                           {5, 16, 64, 48, 5}, {1, 9, 40, 17, 7}, {6, 2, 1, 16, 3}};

void expect_reference(double factor) {
  for (const Geometry& geometry : kGeometries) {
    for (const Pool pool : {Pool::Pairs, Pool::Mean}) {
      SCOPED_TRACE(fmt::format("{} channels, {} outputs, pool {}", geometry.channels,
                               geometry.outputs, static_cast<int>(pool)));
      const ConvStageOptions options{.pool = pool, .training = true};
      const Running running = sample_running(geometry.outputs);
      const Running wanted = wide(running);
      const auto errors =
          testing::compare([&](const Tensors& in) { return stage(in, running, options); },
                           [&](const Tensors& in) { return reference(in, wanted, options); },
                           sample_inputs(geometry));
      const double allowed =
          factor *
          testing::tolerance(at::kFloat, geometry.windows * geometry.rows * geometry.channels);
      EXPECT_LT(errors.output, allowed);
      // Input 2 is the bias. The norm cancels it, so its true gradient is 0, and the reference's
      // gradient is only rounding error.
      for (const size_t input : {0, 1, 3, 4}) EXPECT_LT(errors.gradients[input], allowed) << input;
      EXPECT_LT(testing::relative_error(running.mean_O, wanted.mean_O), allowed);
      EXPECT_LT(testing::relative_error(running.variance_O, wanted.variance_O), allowed);
    }
  }
}

TEST(ConvStage, IsConvolutionNormReluAndPooling) { expect_reference(2); }

TEST(ConvStage, EveryTableComputesTheSame) {
  const CpuTableOverride aten(aten_op_table());
  expect_reference(2);
}

TEST(ConvStage, UsesTheRunningStatisticsWhereItDoesNotTrain) {
  const at::NoGradGuard no_grad;
  for (const Geometry& geometry : kGeometries) {
    const Running running = sample_running(geometry.outputs);
    const Running before{running.mean_O.clone(), running.variance_O.clone()};
    const Tensors in = sample_inputs(geometry);
    Tensors wide_in;
    for (const at::Tensor& tensor : in) wide_in.push_back(tensor.to(at::kDouble));
    const at::Tensor found = stage(in, running, {});
    EXPECT_LT(testing::relative_error(found, reference(wide_in, wide(running), {})), 1e-5);
    EXPECT_TRUE(running.mean_O.equal(before.mean_O));
    EXPECT_TRUE(running.variance_O.equal(before.variance_O));
  }
}

// Compares whole tensors, because rounding decides whether an activation close to zero has a
// gradient.
double relative_distance(const at::Tensor& found, const at::Tensor& wanted) {
  return ((found.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
}

TEST(ConvStage, InBf16OnlyTheProductsAreRounded) {
  const Geometry geometry{8, 32, 16, 32, 5};
  const ConvStageOptions options{.pool = Pool::Mean, .training = true, .bf16 = true};
  Tensors in = sample_inputs(geometry);
  Tensors wide_in;
  for (at::Tensor& tensor : in) {
    wide_in.push_back(tensor.to(at::kDouble).requires_grad_());
    tensor.requires_grad_();
  }
  const Running running = sample_running(geometry.outputs);
  const at::Tensor found = stage(in, running, options);
  const at::Tensor wanted = reference(wide_in, wide(running), options);
  EXPECT_GT(relative_distance(found, wanted), 1e-4) << "nothing was rounded";
  EXPECT_LT(relative_distance(found, wanted), 0.005);
  const at::Tensor grad = testing::sample(found.sizes(), at::kFloat, 9);
  const auto gradients = torch::autograd::grad({found}, in, {grad});
  const auto wanted_gradients = torch::autograd::grad({wanted}, wide_in, {grad.to(at::kDouble)});
  for (const size_t input : {0, 1, 3, 4})
    EXPECT_LT(relative_distance(gradients[input], wanted_gradients[input]), 0.05) << input;
}

TEST(ConvStage, LeavesTheBiasWithoutAGradient) {
  const Geometry geometry{4, 17, 9, 64, 5};
  Tensors in = sample_inputs(geometry);
  for (at::Tensor& tensor : in) tensor.requires_grad_();
  const at::Tensor y = stage(in, sample_running(64), {.training = true});
  EXPECT_EQ(torch::autograd::grad({y.sum()}, {in[2]})[0].abs().max().item<float>(), 0.0f);
}

TEST(ConvStage, HasTheSameBitsForAnyNumberOfThreads) {
  if (!testing::runs_cpu_table()) GTEST_SKIP() << "said of the CPU's own loops";
  const Geometry geometry{16, 32, 40, 64, 5};
  const auto computed = [&] {
    Tensors in = sample_inputs(geometry);
    for (at::Tensor& tensor : in) tensor.requires_grad_();
    const Running running = sample_running(geometry.outputs);
    const at::Tensor y = stage(in, running, {.training = true});
    Tensors found = torch::autograd::grad({y}, in, {testing::sample(y.sizes(), at::kFloat, 3)});
    found.insert(found.end(), {y.detach(), running.mean_O, running.variance_O});
    return found;
  };
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Tensors alone = computed();
  at::set_num_threads(3);
  const Tensors together = computed();
  at::set_num_threads(before);
  for (size_t index = 0; index < alone.size(); ++index)
    EXPECT_TRUE(alone[index].equal(together[index])) << index;
}

TEST(ConvStage, KeepsItsDigitsFarFromZero) {
  const Geometry geometry{4, 32, 1, 16, 3};
  Tensors in = sample_inputs(geometry);
  in[0] = in[0] * 1e-2 + 100;
  const Running running = sample_running(16);
  const Running wanted = wide(running);
  const ConvStageOptions options{.pool = Pool::Mean, .training = true};
  const auto errors =
      testing::compare([&](const Tensors& own) { return stage(own, running, options); },
                       [&](const Tensors& own) { return reference(own, wanted, options); }, in);
  EXPECT_LT(errors.output, 2e-2);  // the products keep four digits of the deviation
}

TEST(ConvStage, RefusesWhatDoesNotFit) {
  const Running running = sample_running(5);
  Tensors in = sample_inputs({3, 8, 2, 5, 3});
  EXPECT_THROW(stage({in[0], in[1].narrow(2, 0, 2), in[2], in[3], in[4]}, running, {}), StateError);
  EXPECT_THROW(stage({in[0].narrow(2, 0, 1), in[1], in[2], in[3], in[4]}, running, {}), StateError);
  EXPECT_THROW(stage({in[0].narrow(1, 0, 1), in[1], in[2], in[3], in[4]}, running, {}), StateError);
  EXPECT_THROW(stage({in[0].narrow(0, 0, 1).narrow(1, 0, 1), in[1], in[2], in[3], in[4]}, running,
                     {.pool = Pool::Mean, .training = true}),
               StateError);
  in[1].requires_grad_();
  EXPECT_THROW(stage(in, running, {.training = false}), StateError);
}

}  // namespace
}  // namespace convoy::kernels

// SPDX-License-Identifier: Apache-2.0
//
// Compares DataParallel with the module alone.
#include "convoy/library/dp.h"

#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include "convoy/core/base/error.h"

namespace convoy::detail {
namespace {

struct NetImpl : torch::nn::Cloneable<NetImpl> {
  NetImpl() { reset(); }
  void reset() override {
    first = register_module("first", torch::nn::Linear(4, 8));
    second = register_module("second", torch::nn::Linear(8, 3));
    unused = register_parameter("unused", at::randn({2}));
    calls = register_buffer("calls", at::zeros({}, at::kLong));
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x, double factor,
                                             const at::Tensor& shift) {
    calls += 1;
    const at::Tensor hidden = torch::tanh(first(x) * factor + shift);
    return {second(hidden), hidden.square().sum()};
  }
  torch::nn::Linear first{nullptr}, second{nullptr};
  at::Tensor unused, calls;
};
TORCH_MODULE(Net);

at::Tensor loss_of(const std::tuple<at::Tensor, at::Tensor>& outputs) {
  return std::get<0>(outputs).sin().sum() + std::get<1>(outputs).sum();
}

void expect_same_training(size_t num_replicas, int64_t rows) {
  torch::manual_seed(1);
  Net plain;
  torch::manual_seed(1);
  Net dealt;
  DataParallel model(dealt, std::vector<torch::Device>(num_replicas, torch::kCPU));
  torch::optim::Adam plain_adam(plain->parameters(), 0.05), adam(model.parameters(), 0.05);
  for (int step = 0; step < 5; ++step) {
    torch::manual_seed(static_cast<uint64_t>(10 + step));
    const at::Tensor x = at::randn({rows, 4}), shift = at::ones({});
    at::Tensor own_x = x.clone().requires_grad_(), other_x = x.clone().requires_grad_();
    plain_adam.zero_grad();
    adam.zero_grad();
    for (int pass = 0; pass < 2; ++pass) {  // two passes, whose gradients add up
      loss_of(plain(own_x, 0.5, shift)).backward();
      loss_of(model(other_x, 0.5, shift)).backward();
    }
    EXPECT_TRUE(at::allclose(own_x.grad(), other_x.grad(), 1e-5, 1e-6));
    for (size_t index = 0; index < plain->parameters().size(); ++index) {
      const at::Tensor wanted = plain->parameters()[index].grad();
      const at::Tensor found = dealt->parameters()[index].grad();
      ASSERT_EQ(found.defined(), wanted.defined());
      if (wanted.defined()) {
        EXPECT_TRUE(at::allclose(found, wanted, 1e-4, 1e-6)) << index;
      }
    }
    plain_adam.step();
    adam.step();
  }
  EXPECT_EQ(dealt->calls.item<int64_t>(), 10);
}

TEST(DataParallel, GradientsAreThoseOfTheModule) {
  for (const size_t num_replicas : {1, 2, 3, 4}) {
    SCOPED_TRACE(num_replicas);
    expect_same_training(num_replicas, 10);
    expect_same_training(num_replicas, 2);  // some replicas have no rows
  }
}

TEST(DataParallel, EvaluationJoinsRows) {
  Net net;
  DataParallel model(net, {torch::kCPU, torch::kCPU});
  model.eval();
  EXPECT_FALSE(net->is_training());
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({5, 4}), shift = at::zeros({});
  const auto [rows, sums] = model->forward(x, 1.0, shift);
  EXPECT_TRUE(at::allclose(rows, std::get<0>(net(x, 1.0, shift)), 1e-5, 1e-6));
  EXPECT_EQ(sums.sizes(), (at::IntArrayRef{2}));
  EXPECT_FALSE(rows.requires_grad());
}

struct FailsImpl : torch::nn::Cloneable<FailsImpl> {
  void reset() override {}
  at::Tensor forward(const at::Tensor& x) {
    if (x.min().item<float>() < 0) throw NumericError("below zero");
    return x;
  }
};
TORCH_MODULE(Fails);

TEST(DataParallel, SaysWhatIsWrong) {
  DataParallel model(Fails(), {torch::kCPU, torch::kCPU});
  EXPECT_THROW(model(at::tensor({1.0, -1.0})), NumericError);
  EXPECT_TRUE(model(at::tensor({1.0, 2.0})).equal(at::tensor({1.0, 2.0})));
  EXPECT_THROW(model(at::empty({0})), ConfigError);
  Net net;
  EXPECT_THROW(DataParallel(net, {}), ConfigError);
  DataParallel other(net, {torch::kCPU, torch::kCPU});
  EXPECT_THROW(other(at::ones({4, 4}), 1.0, at::ones({3, 8})), ConfigError);
}

}  // namespace
}  // namespace convoy::detail

// SPDX-License-Identifier: Apache-2.0
//
// Tests the library's DataParallel on devices that each have a thread of autograd and streams.
#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/util/accumulate.h>
#include <gtest/gtest.h>
#include <torch/nn/cloneable.h>

#include "convoy/core/base/error.h"
#include "convoy/library/dp.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

// The module is made on its device, because LibTorch does not move modules between the CPU and a
// device of this kind.
struct NetImpl : torch::nn::Cloneable<NetImpl> {
  explicit NetImpl(at::Device device) : device_(device) { reset(); }
  void reset() override {
    const auto numbers = [&](at::IntArrayRef shape) {
      return at::arange(c10::multiply_integers(shape), at::kFloat).sin_().view(shape).to(device_);
    };
    first = register_parameter("first", numbers({4, 8}));
    second = register_parameter("second", numbers({8, 3}));
    bias = register_parameter("bias", numbers({3}));
  }
  std::tuple<at::Tensor, at::Tensor> forward(const at::Tensor& x) {
    const at::Tensor hidden = at::tanh(x.mm(first));
    return {hidden.mm(second) + bias, hidden.square().sum()};
  }
  at::Tensor first, second, bias;

 private:
  at::Device device_;
};
TORCH_MODULE(Net);

struct Gradients {
  at::Tensor of_input;
  std::vector<at::Tensor> of_parameters;
};

// Returns the gradients that two passes add up.
template <class Model>
Gradients gradients_of(Net& net, Model& model, at::Device device) {
  const at::Tensor x = at::arange(20, at::kFloat).view({5, 4}).div_(7).sin_().to(device);
  at::Tensor input = x.clone().requires_grad_();
  for (int pass = 0; pass < 2; ++pass) {
    const auto [rows, sums] = model->forward(input);
    (rows.sin().sum() + sums.sum()).backward();
  }
  Gradients found{input.grad().cpu(), {}};
  for (const at::Tensor& parameter : net->parameters())
    found.of_parameters.push_back(parameter.grad().cpu());
  return found;
}

class DataParallelOnDevices : public ::testing::Test {
 protected:
  void SetUp() override { simulated::install(2); }
  void TearDown() override { EXPECT_EQ(simulated::take_findings(), std::vector<std::string>()); }

  static void expect_gradients_of_the_module(const std::vector<at::Device>& devices) {
    Net plain(at::kCPU);
    const Gradients wanted = gradients_of(plain, plain, at::kCPU);
    Net dealt(devices[0]);
    DataParallel model(dealt, devices);
    const Gradients found = gradients_of(dealt, model, devices[0]);
    EXPECT_TRUE(at::allclose(found.of_input, wanted.of_input, 1e-5, 1e-6));
    for (size_t index = 0; index < wanted.of_parameters.size(); ++index)
      EXPECT_TRUE(at::allclose(found.of_parameters[index], wanted.of_parameters[index], 1e-5, 1e-6))
          << index;
  }

  const at::Device first_ = simulated::device(0);
  const at::Device second_ = simulated::device(1);
};

TEST_F(DataParallelOnDevices, BackwardOfOneReplicaEnds) {
  expect_gradients_of_the_module({first_});
}

TEST_F(DataParallelOnDevices, ReplicasMayShareADeviceOrHaveTheirOwn) {
  expect_gradients_of_the_module({first_, first_, first_});
  expect_gradients_of_the_module({first_, second_});
  expect_gradients_of_the_module({second_, first_, second_});
}

// Without an order between the streams, the simulated device reports a fault.
TEST_F(DataParallelOnDevices, ReplicasWorkOnTheCallersStreams) {
  const c10::impl::VirtualGuardImpl backend(first_.type());
  const std::vector<c10::Stream> streams = {backend.getNewStream(first_),
                                            backend.getNewStream(second_)};
  const c10::MultiStreamGuard guard(streams);
  expect_gradients_of_the_module({first_});
  expect_gradients_of_the_module({first_, second_});
}

TEST_F(DataParallelOnDevices, BackwardMayBeCalledOnOtherStreamsThanForward) {
  const c10::impl::VirtualGuardImpl backend(first_.type());
  Net net(first_);
  DataParallel model(net, {first_, second_});
  at::Tensor loss;
  const c10::Stream of_forward = backend.getNewStream(first_);
  backend.synchronizeDevice(0);
  {
    const c10::StreamGuard guard(of_forward);
    loss = std::get<0>(model(at::ones({4, 4}, first_))).sum();
  }
  loss.backward();
  // The stream of backward() reads the gradient.
  EXPECT_GT(net->first.grad().abs().sum().item<float>(), 0);
  EXPECT_EQ(net->bias.grad().sum().item<float>(), 12);
}

TEST_F(DataParallelOnDevices, AGraphThatIsGoneIsSaid) {
  Net net(first_);
  DataParallel model(net, {first_});
  const at::Tensor loss = std::get<0>(model(at::ones({4, 4}, first_))).sum();
  loss.backward();
  EXPECT_THROW(loss.backward(), std::exception);
}

}  // namespace
}  // namespace convoy

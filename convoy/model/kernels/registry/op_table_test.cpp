// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/registry/op_table.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/model/kernels/ops/autograd.h"
#include "kernel_checks/host_kernels.h"
#include "kernel_checks/remote_table.h"
#include "kernel_checks/tables.h"
#include "simulated_device/simulated_device.h"

namespace convoy::kernels {
namespace {

// All tests of this program run on the table of ops that the environment names.
class ChosenTable : public ::testing::Environment {
  void SetUp() override {
    const std::string ops = testing::chosen_ops();
    if (ops == "sim") simulated::install(2);
    if (ops == "ptx") {
      const char* const binaries = std::getenv("CONVOY_BIN_DIR");
      ASSERT_NE(binaries, nullptr) << "CONVOY_BIN_DIR names the folder of libfake_cuda.so";
      host_kernels_ = testing::host_kernels(binaries);
      override_.emplace(own_kernel_op_table());
    } else if (ops == "aten")
      override_.emplace(aten_op_table());
    else if (!ops.empty())
      override_.emplace(testing::remote_op_table(device::take_rank_device(ops, 0).device));
  }
  void TearDown() override {
    override_.reset();
    host_kernels_.reset();
    if (!simulated::is_installed()) return;
    EXPECT_TRUE(simulated::take_findings().empty());
  }
  std::unique_ptr<HostKernels> host_kernels_;
  std::optional<CpuTableOverride> override_;
};
const auto* const chosen = ::testing::AddGlobalTestEnvironment(new ChosenTable);

TEST(OpTable, IsPickedByTheTensorsDevice) {
  const OpTable& cpu = op_table(at::empty({1}));
  EXPECT_EQ(cpu.rms_norm.forward == kRmsNormCpu.forward, testing::runs_cpu_table());
  try {
    op_table(at::empty({1}, at::kMeta));
    FAIL() << "no table for meta tensors is there";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("meta"), std::string::npos) << error.what();
  }
}

TEST(OpTable, OfTheSimulatedDeviceRunsThere) {
  if (testing::chosen_ops() != "sim") GTEST_SKIP() << "only where the device is chosen";
  const int64_t before = simulated::memory(0).allocations;
  const at::Tensor values = at::ones({5});
  EXPECT_NEAR(op_table(values).sum_of_squares.sum({values}).item<double>(), 5.0, 1e-6);
  EXPECT_GT(simulated::memory(0).allocations, before);
}

TEST(OpTable, OfCudaHasTheKernelsThatAreWanted) {
  for (const char* own : {"", "own"})
    EXPECT_EQ(cuda_ops(own).rms_norm.forward, kRmsNormCuda.forward);
  EXPECT_EQ(cuda_ops("aten").rms_norm.forward, kRmsNormAten.forward);
  for (const char* any : {"own", "aten"})
    EXPECT_EQ(cuda_ops(any).attention.forward, kAttentionCuda.forward);
  EXPECT_THROW(cuda_ops("triton"), ConfigError);
}

at::Tensor squared(const at::Tensor& x) {
  const bool records = records_gradient({x});
  const at::NoGradGuard no_grad;
  const at::Tensor y = x * x;
  if (!records) return y;
  return with_backward(y, {.op = "squared",
                           .inputs = {x, at::Tensor()},
                           .saved = {x, y},
                           .gradients = [](const at::Tensor& grad, const auto& saved,
                                           const auto& wanted) -> std::vector<at::Tensor> {
                             EXPECT_TRUE(at::equal(saved[1], saved[0] * saved[0]));
                             EXPECT_TRUE(wanted[0]);
                             EXPECT_FALSE(wanted[1]);
                             return {2 * grad * saved[0], at::Tensor()};
                           }});
}

TEST(WithBackward, PutsTheOpIntoTheGraph) {
  const at::Tensor x = at::tensor({1.0f, -2.0f, 3.0f}).requires_grad_();
  const at::Tensor y = squared(x);
  EXPECT_EQ(y.grad_fn()->name(), "squared");
  squared(y).sum().backward();
  EXPECT_TRUE(at::equal(x.grad(), at::tensor({4.0f, -32.0f, 108.0f})));
  EXPECT_ANY_THROW(y.sum().backward());  // the saved tensors are freed
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(squared(x).requires_grad());
}

TEST(WithBackward, OfAnInputChangedInPlaceIsRefused) {
  const at::Tensor leaf = at::ones({3}).requires_grad_();
  at::Tensor x = leaf * 1;
  const at::Tensor y = squared(x);
  x.mul_(2);
  EXPECT_ANY_THROW(y.sum().backward());
}

TEST(WithBackward, ASecondDerivativeIsRefused) {
  const at::Tensor x = at::ones({3}).requires_grad_();
  EXPECT_ANY_THROW(torch::autograd::grad({squared(x).sum()}, {x}, {}, true, /*create_graph=*/true));
}

}  // namespace
}  // namespace convoy::kernels

// SPDX-License-Identifier: Apache-2.0
//
// Tests block inputs that are kept on the host and copied beside the work of the blocks.
#include "convoy/model/nn/inputs_on_host.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "simulated_device/simulated_device.h"

namespace convoy::nn {
namespace {

class InputsOnHostOfADevice : public ::testing::Test {
 protected:
  InputsOnHostOfADevice() { simulated::install(2); }
  const at::Device device_ = simulated::device(1);
};

TEST_F(InputsOnHostOfADevice, ComeBackWithoutAWait) {
  InputsOnHost inputs(device_);
  std::vector<at::Tensor> wanted;
  for (int number = 0; number < 4; ++number) wanted.push_back(at::full({3, 5}, 1.5 + number));
  simulated::reset_host_waits();
  const size_t before = simulated::memory(1).live_bytes;
  for (const at::Tensor& value : wanted) {
    const at::Tensor x = at::empty({3, 5}, device_).fill_(value[0][0].item());
    inputs.keep(x);
  }
  EXPECT_EQ(simulated::memory(1).live_bytes, before);
  std::vector<at::Tensor> found(4);
  for (size_t number = 4; number-- > 0;) found[number] = inputs.take(number) * 1;
  EXPECT_TRUE(simulated::host_waits().empty());
  for (size_t number = 0; number < 4; ++number)
    EXPECT_TRUE(found[number].cpu().equal(wanted[number])) << number;
  EXPECT_TRUE(simulated::take_findings().empty());
}

// x is copied on a separate stream. On the stream of the blocks, the change of x below would be in
// order.
TEST_F(InputsOnHostOfADevice, AreReadBesideTheBlocks) {
  InputsOnHost inputs(device_);
  const at::Tensor x = at::ones({8}, device_);
  inputs.keep(x);
  EXPECT_THROW(x.add_(1), c10::Error);
}

}  // namespace
}  // namespace convoy::nn

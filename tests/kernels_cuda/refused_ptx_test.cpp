// SPDX-License-Identifier: Apache-2.0
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/registry/op_table.h"

namespace convoy::kernels {
namespace {

TEST(RefusedPtx, NamesTheKernelTheDriverAndTheWayOut) {
  const char* const fake = std::getenv("FAKE_CUDA");
  if (fake == nullptr || std::string(fake).find("cuModuleLoadDataEx") == std::string::npos)
    GTEST_SKIP() << "only where the fake driver refuses";
  try {
    own_kernel_op_table().dropout.drop(at::ones({4}), {});
    FAIL() << "the driver refused";
  } catch (const DeviceError& error) {
    const std::string said = error.sentence();
    for (const char* part : {"dropout_fp32", "CUDA 12.4", "CONVOY_CUDA_KERNELS=aten"})
      EXPECT_NE(said.find(part), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace convoy::kernels

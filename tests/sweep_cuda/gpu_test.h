// SPDX-License-Identifier: Apache-2.0
//
// Opens a GPU for a test. The test's parameter chooses a real GPU or the fake driver's GPU, which
// runs the same PTX and is a thousand times slower.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "convoy/farm/experiments/cuda/device.h"

namespace convoy::experiments::cuda {

class SweepGpuTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    const char* const folder = std::getenv("CONVOY_BIN_DIR");
    const std::filesystem::path fake(folder == nullptr ? "" : folder);
    const auto driver = std::make_shared<const nvidia::Driver>(
        GetParam() ? std::filesystem::path("libcuda.so.1") : fake / "libfake_cuda.so");
    if (GetParam() && !driver->problem().empty()) GTEST_SKIP() << driver->problem();
    ASSERT_EQ(driver->problem(), "");
    if (kernel_texts().empty()) GTEST_SKIP() << "built without clang++";
    device_ = std::make_shared<Device>(driver, 0, "0");
  }

  std::shared_ptr<Device> device_;
};

}  // namespace convoy::experiments::cuda

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/run_fault.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <system_error>

namespace convoy::recipes {
namespace {

Error told(const std::function<void()>& fault) {
  try {
    fault();
  } catch (const std::exception& error) {
    return fault_of(error, "take less");
  }
  return StateError("nothing was thrown");
}

TEST(RunFault, HasTheCodeAndTheWordsOfItsKind) {
  const Error memory = told([] { throw std::bad_alloc(); });
  EXPECT_EQ(memory.code(), ExitCode::Resources);
  EXPECT_EQ(memory.sentence(), "out of memory (take less)");
  const Error of_cpu =
      told([] { TORCH_CHECK(false, "[enforce fail] DefaultCPUAllocator: can't allocate memory"); });
  EXPECT_EQ(of_cpu.code(), ExitCode::Resources);
  EXPECT_EQ(of_cpu.location().hint, "take less");
  const Error of_gpu = told([] { TORCH_CHECK(false, "CUDA error: misaligned address\nmore"); });
  EXPECT_EQ(of_gpu.code(), ExitCode::Device);
  EXPECT_NE(of_gpu.sentence().find("the GPU refused: CUDA error: misaligned address ("),
            std::string::npos)
      << of_gpu.sentence();
  EXPECT_EQ(told([] { throw std::system_error(EAGAIN, std::generic_category()); }).code(),
            ExitCode::Resources);
  const Error setting = told([] {
    TORCH_CHECK(false, "cumsum_cuda_kernel does not have a deterministic implementation, but");
  });
  EXPECT_EQ(setting.code(), ExitCode::Usage);
  EXPECT_NE(setting.sentence().find("cumsum_cuda_kernel"), std::string::npos);
  const Error unforeseen = told([] { throw std::runtime_error("no such thing"); });
  EXPECT_EQ(unforeseen.code(), ExitCode::Bug);
  EXPECT_NE(unforeseen.sentence().find("a bug in Convoy: no such thing"), std::string::npos);
}

TEST(RunFault, LeavesConvoysOwnErrorsAsTheyAre) {
  const Error own = told([] { throw NumericError("the loss is NaN", {.step = 7}); });
  EXPECT_EQ(own.code(), ExitCode::Numeric);
  EXPECT_EQ(own.kind(), "numeric");
  EXPECT_EQ(own.location().step, 7);
}

}  // namespace
}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/cpu_name.h"

#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy {
namespace {

TEST(CpuName, IsThatOfTheFirstCpu) {
  const testing::TemporaryFolder proc;
  EXPECT_EQ(cpu_name(proc.path()), "") << "no file";
  const auto named = [&](const std::string& text) {
    write_file_atomic(proc.path() / "cpuinfo", text);
    return cpu_name(proc.path());
  };
  EXPECT_EQ(named("processor\t: 0\nmodel name\t: AMD EPYC\n\nmodel name\t: Other\n"), "AMD EPYC");
  EXPECT_EQ(named("processor\t: 0\nBogoMIPS\t: 50\n"), "") << "as on ARM";
  EXPECT_EQ(named("model name\t:\n"), "");
}

}  // namespace
}  // namespace convoy

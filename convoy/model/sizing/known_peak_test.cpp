// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/sizing/known_peak.h"

#include <gtest/gtest.h>

#include <fstream>

#include "files/temporary_folder.h"

namespace convoy::sizing {
namespace {

TEST(KnownPeak, IsOfOneMachineAndType) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path file = folder / "convoy/peaks.json";
  const PeakOwner owner{.host = "a", .name = "EPYC", .cpus = 2};
  EXPECT_EQ(known_peak(file, owner), std::nullopt);
  remember_peak(file, owner, 4e11);
  PeakOwner other = owner;
  other.dtype = "fp32";
  remember_peak(file, other, 2e11);
  remember_peak(file, owner, 5e11);
  remember_peak(file, owner, 3e11);  // measured beside another program
  EXPECT_EQ(known_peak(file, owner), 5e11);
  EXPECT_EQ(known_peak(file, other), 2e11);
  other.cpus = 1;
  EXPECT_EQ(known_peak(file, other), std::nullopt) << "it may use fewer CPUs by now";
}

TEST(KnownPeak, ASpoiltFileKnowsNothingAndIsWrittenAnew) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "peaks.json") << R"({"peaks": [1, {"host": 2}, )";
  EXPECT_EQ(known_peak(folder / "peaks.json", {}), std::nullopt);
  remember_peak(folder / "peaks.json", {.host = "a"}, 1);
  EXPECT_EQ(known_peak(folder / "peaks.json", {.host = "a"}), 1);
}

}  // namespace
}  // namespace convoy::sizing

// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/device_counters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::profile {
namespace {

constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kNoon = 1'769'860'800 * kSecond;  // 2026-01-31T12:00:00Z

Span from_noon(int64_t begin_s, int64_t end_s) {
  return {.begin_ns = kNoon + begin_s * kSecond, .end_ns = kNoon + end_s * kSecond};
}

class DeviceCounters : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((folder_ / name).parent_path());
    write_file_atomic(folder_ / name, text);
  }
  testing::TemporaryFolder folder_;
};

TEST_F(DeviceCounters, AreThoseOfTheTimeAndOneLookAround) {
  std::string text = "timestamp,elapsed_s,device,name,gpu_util_pct,power_w,host_cpu_pct\n";
  for (int second = 0; second < 9; ++second)
    text += fmt::format(
        "2026-01-31T12:00:0{0}.000Z,{0},gpu0,\"H, 200\",{1},,\n"
        "2026-01-31T12:00:0{0}.000Z,{0},host,,,,5{0}\n",
        second, 90 + second);
  write("devices.csv", text + "torn,li");
  const std::vector<DeviceCounter> found =
      read_device_counters(folder_ / ".", "node0", from_noon(3, 5));
  ASSERT_EQ(found.size(), 2U);  // power_w has no values
  EXPECT_EQ(found[0].device, "gpu0 of node0");
  EXPECT_EQ(found[0].name, "gpu_util_pct");
  EXPECT_EQ(found[0].unit, "%");
  ASSERT_EQ(found[0].values.size(), 4U);  // the seconds 2 to 5
  EXPECT_EQ(found[0].values.front(), std::make_pair(kNoon + 2 * kSecond, 92.0));
  EXPECT_EQ(found[1].device, "node0");
  EXPECT_EQ(found[1].values.back(), std::make_pair(kNoon + 5 * kSecond, 55.0));
}

TEST_F(DeviceCounters, OfOtherHostsLieWithTheirLogs) {
  const std::string heading = "timestamp,device,power_w\n";
  write("devices.csv", heading + "2026-01-31T12:00:00.000Z,gpu0,100\n");
  write("logs/devices-node1.csv", heading + "2026-01-31T12:00:00.500Z,gpu0,300\n" + heading +
                                      "2026-01-31T12:00:01.250Z,gpu0,310\n");
  const std::vector<DeviceCounter> found =
      read_device_counters(folder_ / ".", "node0", from_noon(0, 9));
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[1].device, "gpu0 of node1");
  EXPECT_EQ(found[1].values, (std::vector<std::pair<int64_t, double>>{
                                 {kNoon + kSecond / 2, 300}, {kNoon + 5 * kSecond / 4, 310}}));
}

TEST_F(DeviceCounters, OfARunThatWatchedNothingAreNone) {
  EXPECT_TRUE(read_device_counters(folder_ / ".", "node0", from_noon(0, 9)).empty());
}

}  // namespace
}  // namespace convoy::profile

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/usage_csv.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::process {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts{""};
  for (const char letter : text) {
    if (letter == separator)
      parts.emplace_back();
    else
      parts.back() += letter;
  }
  return parts;
}

class UsageCsvFile : public ::testing::Test {
 protected:
  std::vector<std::string> lines() const { return split(read_file(path_), '\n'); }

  testing::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "gpu_usage.csv";
};

TEST_F(UsageCsvFile, BeginsWithTheColumnsOfTheGuide) {
  const UsageCsv csv(path_);
  EXPECT_TRUE(lines()[0].starts_with(
      "Timestamp,Elapsed,GPU_Index,GPU_Name,Temperature,GPU_Utilization,Memory_Utilization,"
      "Memory_Used,Memory_Total,Power_Draw,"));
}

TEST_F(UsageCsvFile, HasARowPerDevice) {
  UsageCsv csv(path_);
  using monitor::Metric;
  std::vector<monitor::DeviceReading> devices{{.index = 0, .name = "A \"B\", C"},
                                              {.index = 1, .name = "Quiet"}};
  monitor::MetricValues& values = devices[0].values;
  values[Metric::Temperature] = 41;
  values[Metric::GpuUtil] = 97;
  values[Metric::MemBusy] = 30;
  values[Metric::MemUsed] = 1000;
  values[Metric::MemTotal] = 81920;
  values[Metric::Power] = 300.5;
  csv.add(devices, {.tokens_per_second = 12.34,
                    .running = 3,
                    .waiting = 4,
                    .kv_use = 0.5,
                    .prefill_share = 0.25,
                    .decode_share = 0.7,
                    .leases = 6});
  ASSERT_EQ(lines().size(), 4U);  // the header, two rows, the end
  EXPECT_TRUE(lines()[1].ends_with(
      ",0,\"A \"\"B\"\", C\",41,97,30,1000,81920,300.50,12.3,3,4,0.500,0.250,0.700,6"))
      << lines()[1];
  EXPECT_TRUE(lines()[2].ends_with(",1,Quiet,N/A,N/A,N/A,N/A,N/A,N/A,12.3,3,4,0.500,0.250,0.700,6"))
      << lines()[2];
  EXPECT_EQ(lines()[1].substr(0, 19).find_first_not_of("0123456789-: "), std::string::npos);
}

TEST_F(UsageCsvFile, NamesNoGpu) {
  UsageCsv csv(path_);
  csv.add({}, {});
  const std::vector<std::string> cells = split(lines()[1], ',');
  ASSERT_EQ(cells.size(), split(UsageCsv::header(), ',').size());
  EXPECT_EQ(cells[2], "N/A");
  EXPECT_EQ(cells[3], "No GPU found");
  EXPECT_EQ(cells[9], "N/A");
}

TEST_F(UsageCsvFile, GoesOnWhereItStopped) {
  { UsageCsv(path_).add({}, {}); }
  { UsageCsv(path_).add({}, {}); }
  EXPECT_EQ(lines().size(), 4U);
  write_file_atomic(path_, "other\n1\n");
  { UsageCsv(path_).add({}, {}); }
  EXPECT_EQ(lines().size(), 3U);
  EXPECT_EQ(lines()[0], UsageCsv::header());
}

TEST_F(UsageCsvFile, RefusesAFolderThatIsNotThere) {
  EXPECT_THROW(UsageCsv(folder_ / "none/usage.csv"), IoError);
}

}  // namespace
}  // namespace convoy::process

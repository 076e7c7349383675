// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/publish_rows.h"

#include <gtest/gtest.h>

namespace convoy::process {
namespace {

TEST(OutputFiles, AListOfJsonHasACsvFileBesideItPackedAlike) {
  using Files = std::vector<std::filesystem::path>;
  const auto files = [](const char* path, bool csv) {
    return output_files({.path = path, .csv = csv});
  };
  EXPECT_EQ(files("out/a.b.json", true), (Files{"out/a.b.json", "out/a.b.csv"}));
  EXPECT_EQ(files("a.json.gz", true), (Files{"a.json.gz", "a.csv.gz"}));
  EXPECT_EQ(files("a.json.zst", true), (Files{"a.json.zst", "a.csv.zst"}));
  EXPECT_EQ(files("a.json.gz", false), (Files{"a.json.gz"}));
  EXPECT_EQ(files("a.jsonl.gz", true), (Files{"a.jsonl.gz"}));
}

}  // namespace
}  // namespace convoy::process

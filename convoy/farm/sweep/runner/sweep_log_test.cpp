// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/sweep_log.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::sweep {
namespace {

TEST(SweepLogs, LinesHaveTimeLevelAndAuthor) {
  const testing::TemporaryFolder folder;
  SweepLog log(folder.path(), Severity::Info);
  log.write(Severity::Debug, "worker 0", "left out");
  log.write(Severity::Info, "runner", "two\nlines");
  log.write(Severity::Error, "worker 12", "failed");
  const std::string text = read_file(folder / "sweep.log");
  EXPECT_EQ(text.find("left out"), std::string::npos);
  EXPECT_NE(text.find(" INFO    runner    two lines\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" ERROR   worker 12 failed\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("20"), 0u) << text;
}

TEST(SweepLogs, FilesAreRotatedAndTheOldestGoes) {
  const testing::TemporaryFolder folder;
  SweepLog log(folder.path(), Severity::Info, 1000);
  SweepLog other(folder.path(), Severity::Info, 1000);
  for (int line = 0; line < 200; ++line)
    (line % 2 == 0 ? log : other).write(Severity::Info, "runner", std::string(50, 'x'));
  int64_t files = 0;
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    ++files;
    EXPECT_LT(file.file_size(), 1300u) << file.path();
    // A file was rotated only when it was full.
    if (file.path().filename() == "sweep.log") continue;
    EXPECT_GE(file.file_size(), 1000u) << file.path();
  }
  EXPECT_EQ(files, SweepLog::kFiles);
}

TEST(SweepLogs, LevelsAreThoseOfPython) {
  EXPECT_EQ(severity_of("DEBUG", "log_level"), Severity::Debug);
  EXPECT_EQ(severity_of("warning", "log_level"), Severity::Warning);
  EXPECT_THROW(severity_of("loud", "log_level"), ConfigError);
}

}  // namespace
}  // namespace convoy::sweep

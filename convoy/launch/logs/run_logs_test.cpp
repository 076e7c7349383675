// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/run_logs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;

class RunLogsFolder : public ::testing::Test {
 protected:
  RunLogsFolder() {
    std::string name = (fs::temp_directory_path() / "convoy-test-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~RunLogsFolder() override { fs::remove_all(folder_); }

  fs::path folder_;
};

TEST_F(RunLogsFolder, LiesAsTorchrunsDoes) {
  const RunLogs logs(folder_ / "made" / "logs", "job7");
  EXPECT_EQ(logs.path().parent_path(), folder_ / "made" / "logs");
  EXPECT_TRUE(logs.path().filename().string().starts_with("job7_")) << logs.path();
  EXPECT_GT(logs.path().filename().string().size(), std::string("job7_").size() + 5);
  struct stat status {};
  ASSERT_EQ(::stat(logs.path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  EXPECT_EQ(logs.attempt_folder(2), logs.path() / "attempt_2");
  EXPECT_EQ(logs.error_file(2, 13), logs.path() / "attempt_2" / "13" / "error.json");
  EXPECT_TRUE(logs.make_attempt(2, 14));
  EXPECT_TRUE(fs::is_directory(logs.rank_folder(2, 13)));
  // Another run in the same place is another folder.
  EXPECT_NE(RunLogs(folder_ / "made" / "logs", "job7").path(), logs.path());
}

TEST_F(RunLogsFolder, AnAttemptBeginsEmpty) {
  const RunLogs logs(folder_, "x");
  ASSERT_TRUE(logs.make_attempt(0, 2));
  std::ofstream(logs.error_file(0, 1)) << "{}";
  ASSERT_TRUE(logs.make_attempt(0, 2));
  EXPECT_FALSE(fs::exists(logs.error_file(0, 1)));
}

TEST_F(RunLogsFolder, ARunIdIsOneComponentOfAPath) {
  const RunLogs logs(folder_, "../../a/b");
  EXPECT_EQ(logs.path().parent_path(), folder_);
  const RunLogs longest(folder_, std::string(1000, 'x'));
  EXPECT_TRUE(fs::is_directory(longest.path()));
}

TEST_F(RunLogsFolder, WithoutAFolderItIsMadeAmongTemporaryFiles) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", folder_.c_str(), 1);
  const RunLogs logs({}, "none");
  if (before == nullptr)
    unsetenv("TMPDIR");
  else
    setenv("TMPDIR", kept.c_str(), 1);
  EXPECT_EQ(logs.path().parent_path().parent_path(), folder_);
  EXPECT_TRUE(logs.path().parent_path().filename().string().starts_with("torchelastic_"));
}

TEST_F(RunLogsFolder, AFileInTheWayIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  for (const fs::path& wrong : {folder_ / "file", folder_ / "file" / "below"}) {
    try {
      RunLogs logs(wrong, "x");
      ADD_FAILURE() << wrong;
    } catch (const IoError& error) {
      EXPECT_NE(error.sentence().find(wrong.string()), std::string::npos) << error.sentence();
    }
  }
  const RunLogs logs(folder_, "x");
  std::ofstream(logs.path() / "attempt_1") << "x";
  EXPECT_TRUE(logs.make_attempt(1, 1));
  fs::remove_all(logs.path());
  std::ofstream(logs.path()) << "x";
  EXPECT_FALSE(logs.make_attempt(1, 1));
}

}  // namespace
}  // namespace convoy::launch

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
  const fs::path logs = make_run_logs(folder_ / "made" / "logs", "job7");
  EXPECT_EQ(logs.parent_path(), folder_ / "made" / "logs");
  EXPECT_TRUE(logs.filename().string().starts_with("job7_")) << logs;
  EXPECT_GT(logs.filename().string().size(), std::string("job7_").size() + 5);
  struct stat status {};
  ASSERT_EQ(::stat(logs.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700U);
  // A second run with the same name gets a different folder.
  EXPECT_NE(make_run_logs(folder_ / "made" / "logs", "job7"), logs);
}

TEST_F(RunLogsFolder, ARunIdIsOneComponentOfAPath) {
  const fs::path logs = make_run_logs(folder_, "../../a/b");
  EXPECT_EQ(logs.parent_path(), folder_);
  const fs::path longest = make_run_logs(folder_, std::string(1000, 'x'));
  EXPECT_TRUE(fs::is_directory(longest));
}

TEST_F(RunLogsFolder, WithoutAFolderItIsMadeAmongTemporaryFiles) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before == nullptr ? "" : before;
  setenv("TMPDIR", folder_.c_str(), 1);
  const fs::path logs = make_run_logs({}, "none");
  if (before == nullptr)
    unsetenv("TMPDIR");
  else
    setenv("TMPDIR", kept.c_str(), 1);
  EXPECT_EQ(logs.parent_path().parent_path(), folder_);
  EXPECT_TRUE(logs.parent_path().filename().string().starts_with("torchelastic_"));
}

TEST_F(RunLogsFolder, AFileInTheWayIsNamed) {
  std::ofstream(folder_ / "file") << "x";
  for (const fs::path& wrong : {folder_ / "file", folder_ / "file" / "below"}) {
    try {
      make_run_logs(wrong, "x");
      ADD_FAILURE() << wrong;
    } catch (const IoError& error) {
      EXPECT_NE(error.sentence().find(wrong.string()), std::string::npos) << error.sentence();
    }
  }
}

}  // namespace
}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
//
// Scores of a reference that are read later than they were written. Whole runs:
// tests/resume/preference_test.cpp, tests/resume/unpaired_test.cpp.
#include "convoy/apps/recipes/training/score_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

const std::vector<double> kScores = {-1.5, -2.25, -30};

class ScoreFiles : public ::testing::Test {
 protected:
  ScoreFile file(const std::string& key) const { return {folder_.path(), key, log_}; }
  std::filesystem::path path(const std::string& key) const {
    return folder_.path() / (key + ".scores.safetensors");
  }

  testing::TemporaryFolder folder_;
  Log log_{LogLevel::Quiet};
};

TEST_F(ScoreFiles, AreReadWhereTheirNameIsGone) {
  file("kept").write(kScores);
  const ScoreFile::Reader reader = file("kept").reader(kScores);
  std::filesystem::remove(path("kept"));
  EXPECT_EQ(reader(), kScores);
  EXPECT_EQ(reader(), kScores) << "as often as one asks";
}

TEST_F(ScoreFiles, AreReadAsTheyWereWhereTheirNameIsWrittenAnew) {
  file("kept").write(kScores);
  const ScoreFile::Reader reader = file("kept").reader(kScores);
  file("kept").write({1, 2, 3});
  EXPECT_EQ(reader(), kScores);
}

TEST_F(ScoreFiles, StayInMemoryWhereNoFileHasThem) {
  EXPECT_EQ(ScoreFile({}, "none", log_).reader(kScores)(), kScores);
  EXPECT_EQ(file("missing").reader(kScores)(), kScores);
  file("others").write({1, 2, 3});
  EXPECT_EQ(file("others").reader(kScores)(), kScores);
  file("fewer").write({1});
  EXPECT_EQ(file("fewer").reader(kScores)(), kScores);
}

TEST_F(ScoreFiles, HaveNoScoreWhereTheyAreMissingDamagedOrOfOtherRows) {
  const auto num_known = [&](const std::string& key) {
    const std::vector<double> scores = file(key).read(3);
    EXPECT_EQ(scores.size(), 3U);
    return std::count_if(scores.begin(), scores.end(), [](double one) { return !std::isnan(one); });
  };
  EXPECT_EQ(num_known("missing"), 0);
  file("kept").write(kScores);
  EXPECT_EQ(num_known("kept"), 3);
  file("fewer").write({1});
  EXPECT_EQ(num_known("fewer"), 0);
  std::string bytes = read_file(path("kept"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file_atomic(path("kept"), bytes);
  EXPECT_EQ(num_known("kept"), 0);
}

TEST_F(ScoreFiles, GiveBackMissingScores) {
  const std::vector<double> some = {-1, std::numeric_limits<double>::quiet_NaN()};
  file("some").write(some);
  const ScoreFile::Reader reader = file("some").reader(some);
  std::filesystem::remove(path("some"));
  const std::vector<double> found = reader();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0], -1);
  EXPECT_TRUE(std::isnan(found[1]));
}

}  // namespace
}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/answer_journal.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

using Kept = std::map<AnswerJournal::Place, std::string>;

class Journal : public ::testing::Test {
 protected:
  std::string output() const { return (folder_ / "answers.jsonl").string(); }
  Kept kept(const std::string& key = "key") const {
    return AnswerJournal(output(), key, 0, log_).kept();
  }

  testing::TemporaryFolder folder_;
  Log log_{LogLevel::Quiet};
};

TEST_F(Journal, KeepsWhatEveryLifeAndRankFinished) {
  EXPECT_TRUE(kept().empty());
  AnswerJournal(output(), "key", 0, log_).add({0, 0}, R"({"a": "b c"})");
  AnswerJournal(output(), "key", 1, log_).add({1, 2}, "");
  {
    AnswerJournal again(output(), "key", 0, log_);
    EXPECT_EQ(again.kept().size(), 2u);
    again.add({5, 1}, "third");
  }
  const Kept wanted = {{{0, 0}, R"({"a": "b c"})"}, {{1, 2}, ""}, {{5, 1}, "third"}};
  EXPECT_EQ(kept(), wanted);
}

// Cuts the file at every byte where a write may have ended: the whole lines are kept and the torn
// one is left out.
TEST_F(Journal, ATornLineIsLeftOut) {
  {
    AnswerJournal journal(output(), "key", 0, log_);
    journal.add({0, 0}, "first");
    journal.add({1, 0}, "second");
  }
  const fs::path file = folder_ / "answers.jsonl.partial/rank-0-0";
  const std::string whole = read_file(file);
  const size_t first = whole.find("first\n") + 6;
  for (size_t bytes = 0; bytes <= whole.size(); ++bytes) {
    fs::remove_all(file.parent_path());
    fs::create_directory(file.parent_path());
    write_file_atomic(file, std::string_view(whole).substr(0, bytes));
    const size_t lines = bytes == whole.size() ? 2 : bytes >= first ? 1 : 0;
    ASSERT_EQ(kept().size(), lines) << bytes;
  }
  std::string damaged = whole;
  damaged[first - 3] = 'X';
  write_file_atomic(file, damaged);
  EXPECT_TRUE(kept().empty());
}

TEST_F(Journal, OtherSettingsAreRefused) {
  AnswerJournal(output(), "key", 0, log_).add({0, 0}, "line");
  EXPECT_THROW(kept("another"), ConfigError);
  AnswerJournal(output(), "key", 0, log_).remove();
  EXPECT_TRUE(kept("another").empty());
}

TEST_F(Journal, PipesAndDevicesKeepNothing) {
  EXPECT_TRUE(AnswerJournal::is_kept_beside(output()));
  EXPECT_FALSE(AnswerJournal::is_kept_beside(""));
  EXPECT_FALSE(AnswerJournal::is_kept_beside("/dev/stdout"));
}

}  // namespace
}  // namespace convoy::io

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/help/completion.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

Words words_for(const Words& typed) {
  Words words;
  for (const Candidate& one : candidates(typed)) words.push_back(one.word);
  return words;
}

bool offers(const Words& typed, const std::string& word) {
  const Words words = words_for(typed);
  return std::find(words.begin(), words.end(), word) != words.end();
}

TEST(Completion, OffersCommandsActionsFlagsValuesAndKeys) {
  EXPECT_EQ(words_for({"tra"}), Words{"train"});
  EXPECT_TRUE(offers({""}, "models"));
  EXPECT_FALSE(offers({""}, "process-worker")) << "hidden";
  EXPECT_EQ(words_for({"models", "che"}), Words{"check"});
  EXPECT_TRUE(offers({"models", "check", "--"}, "--json"));
  EXPECT_TRUE(offers({"train", "run.yaml", "--ra"}, "--ranks"));
  EXPECT_EQ(words_for({"init", "--task", "or"}), Words{"orpo"});
  EXPECT_EQ(words_for({"init", "--task=or"}), Words{"--task=orpo"});
  EXPECT_TRUE(offers({"train", "run.yaml", "train.st"}, "train.steps="));
  EXPECT_TRUE(offers({"train", "run.yaml", "parallel.strategy=z"}, "parallel.strategy=zero3"));
  EXPECT_EQ(words_for({"help", "swe"}), Words{"sweep"});
}

TEST(Completion, LeavesFilesToTheShell) {
  EXPECT_TRUE(words_for({"train", ""}).empty());
  EXPECT_TRUE(words_for({"train", "examples/su"}).empty());
  EXPECT_TRUE(words_for({"generate", "--model", ""}).empty());
  EXPECT_TRUE(words_for({"nothing", "--fl"}).empty());
}

// Runs bash with the installed completion file.
TEST(Completion, BashCompletesBehindAnEqualsSign) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder.path() / "try.sh")
      << "PATH=\"$CONVOY_BIN_DIR:$PATH\"\n"
         "source \"$CONVOY_SOURCE_DIR/completions/convoy.bash\"\n"
         "compopt() { :; }\n"  // exists only during a completion
         "try() {\n"
         "  COMP_LINE=$1 COMP_POINT=${#1}\n"
         "  _convoy\n"
         "  printf '%s|' \"${COMPREPLY[@]}\"\n"
         "  echo\n"
         "}\n"
         "try 'convoy tra'\n"
         "try 'convoy train run.yaml parallel.strategy=zero'\n"
         "try 'convoy init --task '\n";
  const testing::ScriptEnd end = testing::run_script(folder.path(), "bash try.sh");
  EXPECT_EQ(end.out, "train|\nzero1|zero2|zero3|\nauto|sft|pretrain|dpo|orpo|kto|\n");
}

}  // namespace
}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/conversation/typed_text.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace convoy::recipes {
namespace {

// A pipe replaces the standard input; the test writes the lines of a user into it.
class TypedLines : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::dup2(typed_.read_end.get(), STDIN_FILENO), STDIN_FILENO); }
  void TearDown() override { ::dup2(before_.get(), STDIN_FILENO); }
  void type(const std::string& keys) const {
    ASSERT_EQ(::write(typed_.write_end.get(), keys.data(), keys.size()),
              static_cast<ssize_t>(keys.size()));
  }
  void end() { typed_.write_end.reset(); }

  Descriptor before_{::dup(STDIN_FILENO)};
  Pipe typed_ = make_pipe();
};

TEST_F(TypedLines, AreOneTextBetweenQuotes) {
  type("one\n\"\"\"\ntwo\nthree\n\"\"\"\nfour");
  end();
  TypedText typed(false);
  EXPECT_EQ(typed.next(), "one");
  EXPECT_EQ(typed.next(), "two\nthree");
  EXPECT_EQ(typed.next(), "four");
  EXPECT_EQ(typed.next(), std::nullopt);
}

TEST_F(TypedLines, AnInterruptBeforeTheReadIsNotLost) {
  const InterruptKey key;
  TypedText typed(true);
  ::testing::internal::CaptureStderr();
  ::raise(SIGINT);
  type("a line\n");
  EXPECT_EQ(typed.next(), "a line");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "> \n> ");
  EXPECT_FALSE(take_interrupt());
}

TEST_F(TypedLines, InterruptsCountOnceAndEndWithTheKey) {
  {
    const InterruptKey key;
    ::raise(SIGINT);
    ::raise(SIGINT);
    EXPECT_TRUE(take_interrupt());
    EXPECT_FALSE(take_interrupt());
  }
  EXPECT_FALSE(take_interrupt());
}

}  // namespace
}  // namespace convoy::recipes

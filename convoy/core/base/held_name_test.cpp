// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/held_name.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace convoy {
namespace {

TEST(HeldName, IsOfOneUntilItIsClosed) {
  const std::string name = "convoy-test-" + std::to_string(::getpid());
  EXPECT_EQ(holder_of_name(name), 0);
  Descriptor first = hold_name(name);
  ASSERT_TRUE(first.open());
  EXPECT_FALSE(hold_name(name).open());
  EXPECT_EQ(holder_of_name(name), ::getpid());
  EXPECT_TRUE(hold_name(name + "-other").open());
  first.reset();
  EXPECT_TRUE(hold_name(name).open());
}

TEST(HeldName, OfAKilledProcessIsFree) {
  const std::string name = "convoy-test-killed-" + std::to_string(::getpid());
  const Pipe told = make_pipe();
  const pid_t child = ::fork();
  if (child == 0) {
    const Descriptor held = hold_name(name);
    const char is_held = held.open() ? 1 : 0;
    if (::write(told.write_end.get(), &is_held, 1) == 1) ::pause();
    ::_exit(1);
  }
  char is_held = 0;
  ASSERT_EQ(::read(told.read_end.get(), &is_held, 1), 1);
  EXPECT_EQ(is_held, 1);
  EXPECT_EQ(holder_of_name(name), child);
  EXPECT_FALSE(hold_name(name).open());
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(hold_name(name).open());
}

}  // namespace
}  // namespace convoy

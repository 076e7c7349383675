// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/persistent_program.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/farm/sweep/runner/task_failure.h"

namespace convoy::sweep {
namespace {

jobs::Failure program_failure_of(const std::string& script, PersistentLimits limits) {
  PersistentProgram program({"sh", "-c", script}, {}, limits);
  try {
    program.ask(nlohmann::json{{"seed", 1}});
  } catch (const TaskFailure& failure) {
    return failure.failure();
  }
  return {};
}

TEST(PersistentPrograms, AStartAndACellHaveLimitsOfTheirOwn) {
  const jobs::Failure deaf =
      program_failure_of("sleep 100", {.cell_seconds = 60, .start_seconds = 0.2});
  EXPECT_EQ(deaf.kind, "timeout");
  EXPECT_NE(deaf.message.find("did not begin to read within 0.2 s"), std::string::npos)
      << deaf.message;
  const jobs::Failure silent = program_failure_of("sleep 0.5; read line; sleep 100",
                                                  {.cell_seconds = 0.2, .start_seconds = 60});
  EXPECT_EQ(silent.kind, "timeout");
  EXPECT_EQ(silent.message, "no answer within 0.2 s");
  EXPECT_EQ(PersistentLimits::of_timeout(1).start_seconds, 600);
  EXPECT_EQ(PersistentLimits::of_timeout(3600).start_seconds, 3600);
  EXPECT_EQ(PersistentLimits::of_timeout(0).start_seconds, 0);
}

TEST(PersistentPrograms, AnAnswerThatIsTooLongIsToldItsLimit) {
  const std::string head =
      "read line; printf '{\"loss\": 1, \"request\": %s, \"x\": \"' \"$line\"; ";
  const jobs::Failure failure =
      program_failure_of(head + "head -c 3000000 /dev/zero | tr '\\0' x; echo '\"}'; sleep 100",
                         {.cell_seconds = 60, .start_seconds = 60});
  EXPECT_EQ(failure.kind, "output");
  EXPECT_TRUE(failure.message.starts_with(
      "wanted an answer of 1048576 bytes at most, found a longer line: `{\"loss\": 1"))
      << failure.message;
  const jobs::Failure none =
      program_failure_of(head + "head -c 1000000 /dev/zero | tr '\\0' x; echo '\"}'",
                         {.cell_seconds = 60, .start_seconds = 60});
  EXPECT_EQ(none.message, "");
}

}  // namespace
}  // namespace convoy::sweep

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/running_tasks.h"

#include <gtest/gtest.h>

namespace convoy {
namespace {

TEST(RunningTasks, AreOtherTasksOnHalfOfTheCpus) {
  EXPECT_FALSE(counts_other_tasks("9.00 9.00 9.00 1/412 29150\n", 2)) << "this one; past load";
  EXPECT_TRUE(counts_other_tasks("0.00 0.01 0.05 2/412 29150\n", 2));
  EXPECT_FALSE(counts_other_tasks("0.00 0.01 0.05 4/412 29150\n", 8));
  EXPECT_TRUE(counts_other_tasks("0.00 0.01 0.05 5/412 29150\n", 8));
  EXPECT_FALSE(counts_other_tasks("0.00 0.01 0.05 1/2 1\n", 1));
  for (const char* text : {"", "0.00", "0.00 0.01 0.05", "0.00 0.01 0.05 many/412", "a b c 7"})
    EXPECT_FALSE(counts_other_tasks(text, 2)) << text;
}

}  // namespace
}  // namespace convoy

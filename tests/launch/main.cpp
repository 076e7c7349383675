// SPDX-License-Identifier: Apache-2.0
//
// Exits with 77 when every selected test was skipped: ctest then shows "skipped" instead of
// "passed".
#include <gtest/gtest.h>

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  const int failed = RUN_ALL_TESTS();
  const ::testing::UnitTest& tests = *::testing::UnitTest::GetInstance();
  const bool all_skipped =
      tests.test_to_run_count() > 0 && tests.skipped_test_count() == tests.test_to_run_count();
  return failed == 0 && all_skipped ? 77 : failed;
}

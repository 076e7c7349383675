// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/ranks/shared_counts.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/telemetry/folder_test.h"

namespace convoy::telemetry {
namespace {

TEST(SharedCounts, WhoMapsTheFileSeesWhatTheOthersDid) {
  const TestFolder folder;
  SharedCounts first(folder.path() / "done", 3);
  SharedCounts second(folder.path() / "done", 3);
  EXPECT_EQ(first.sum(), 0);
  first.set(0, 5);
  second.set(2, 7);
  second.set(2, 8);
  EXPECT_EQ(first.sum(), 13);
  EXPECT_EQ(second.sum(), 13);
  EXPECT_THROW(SharedCounts(folder.path() / "no" / "folder", 2), IoError);
}

}  // namespace
}  // namespace convoy::telemetry

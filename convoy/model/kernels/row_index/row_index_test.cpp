// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/row_index/row_index.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/row_index/row_slots.h"

namespace convoy::kernels {
namespace {

TEST(RowIndex, KnowsItsRows) {
  const RowIndex rows({0, 5, 5, 12});
  EXPECT_EQ(rows.num_rows(), 3);
  EXPECT_EQ(rows.num_tokens(), 12);
  EXPECT_EQ(rows.begin(2), 5);
  EXPECT_EQ(rows.length(1), 0);
  EXPECT_EQ(rows.longest(), 7);
  EXPECT_TRUE(at::equal(rows.device_starts(), at::tensor({0, 5, 5, 12}, at::kInt)));
  EXPECT_EQ(RowIndex().num_tokens(), 0);
}

TEST(RowIndex, RefusesStartsThatDoNotAscendFromZero) {
  EXPECT_THROW(RowIndex({1, 2}), StateError);
  EXPECT_THROW(RowIndex({0, 3, 2}), StateError);
  EXPECT_THROW(RowIndex(std::vector<int64_t>{}), StateError);
}

TEST(RowSlots, AreThoseChosenOrTheRowsOwnNumbers) {
  const RowIndex rows({0, 5, 5, 12});
  EXPECT_EQ(row_slots({}, rows, 3, "op"), (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(row_slots({7, 0, 4}, rows, 8, "op"), (std::vector<int64_t>{7, 0, 4}));
  EXPECT_TRUE(row_slots({}, RowIndex(), 0, "op").empty());
}

TEST(RowSlots, RefuseWhatTwoRowsWouldShareOrNoneHas) {
  const RowIndex rows({0, 5, 12});
  EXPECT_THROW(row_slots({1}, rows, 3, "op"), StateError);
  EXPECT_THROW(row_slots({1, 3}, rows, 3, "op"), StateError);
  EXPECT_THROW(row_slots({-1, 0}, rows, 3, "op"), StateError);
  EXPECT_THROW(row_slots({2, 2}, rows, 3, "op"), StateError);
  EXPECT_THROW(row_slots({}, rows, 1, "op"), StateError);
}

}  // namespace
}  // namespace convoy::kernels

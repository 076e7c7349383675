// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/kernels/row_index/row_index.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

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

}  // namespace
}  // namespace convoy::kernels

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/request_target.h"

#include <gtest/gtest.h>

namespace convoy::http {
namespace {

TEST(RequestTarget, IsReadAsBrowsersWriteIt) {
  const RequestTarget target = parse_target("/api/a%20b+c?run=x%2Fy+z&run=2&empty&&last=");
  EXPECT_EQ(target.path, "/api/a b+c");
  EXPECT_EQ(target.parameter("run"), "x/y z");
  EXPECT_EQ(target.parameters.count("run"), 2U);
  EXPECT_EQ(target.parameters.size(), 4U);
  EXPECT_EQ(target.parameter("empty"), "");
  EXPECT_EQ(target.parameter("none"), "");
}

TEST(RequestTarget, AnIncompleteCodeStays) {
  EXPECT_EQ(parse_target("/%zz%4").path, "/%zz%4");
  EXPECT_TRUE(parse_target("/a?").parameters.empty());
  EXPECT_EQ(parse_target("").path, "");
}

}  // namespace
}  // namespace convoy::http

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/servers.h"

#include <gtest/gtest.h>

namespace convoy::remote {
namespace {

std::string quoted(const std::string& key, const std::string& text) {
  const Servers servers{.model = "m", .key = key};
  return servers.quoted(text);
}

TEST(Servers, QuoteAServerWithoutTheKey) {
  EXPECT_EQ(quoted("sk-1", "sk-1 is no key, sk-1!"), "*** is no key, ***!");
  EXPECT_EQ(quoted("", "no key"), "no key");
}

// The user copied the key from a page that shows stars in its place.
TEST(Servers, QuoteAServerThatNamesAKeyOfStars) {
  EXPECT_EQ(quoted("*", "key * is wrong"), "key *** is wrong");
  EXPECT_EQ(quoted("***", "key *** is wrong"), "key *** is wrong");
}

}  // namespace
}  // namespace convoy::remote

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/servers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

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

TEST(Servers, TakePortsThatThereAre) {
  const auto address_of = [](const std::string& address) {
    return read_servers({.engine = {address}, .engine_model = "m"}, {}).addresses[0];
  };
  for (const char* const good : {"http://host", "https://host/v1", "http://host:1/v1",
                                 "http://host:65535", "http://[::1]:8000/v1", "http://[::1]/v1"})
    EXPECT_EQ(address_of(good), good);
  for (const char* const bad : {"http://host:99999/v1", "http://host:0", "http://host:80a/v1",
                                "http://host:/v1", "http://[::1]:65536"})
    EXPECT_THROW(address_of(bad), ConfigError) << bad;
}

TEST(Servers, RefuseAddressesThatNameNoHost) {
  const auto refusal_of = [](const std::string& address) {
    try {
      read_servers({.engine = {address}, .engine_model = "m"}, {});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  for (const char* const bad : {"http://", "https://", "http:///v1", "http://:80/v1", "http://[]"})
    EXPECT_EQ(refusal_of(bad), fmt::format("`{}` has no host", bad));
  for (const char* const bad :
       {"http://a b/x", "http://host/a b", "http:// host", "http://host\t/"})
    EXPECT_EQ(refusal_of(bad), fmt::format("`{}` has white space", bad));
}

}  // namespace
}  // namespace convoy::remote

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/host_header.h"

#include <gtest/gtest.h>

namespace convoy::http {
namespace {

TEST(HostHeader, NamesAHostAndAPort) {
  const auto read = [](const char* header) {
    const HostAndPort found = read_host(header);
    return found.host + "|" + found.port;
  };
  EXPECT_EQ(read("a.example:80"), "a.example|80");
  EXPECT_EQ(read("a.example"), "a.example|");
  EXPECT_EQ(read("[::1]:6007"), "[::1]|6007");
  EXPECT_EQ(read("[::1]"), "[::1]|");
  EXPECT_EQ(read("[::1"), "|");
}

TEST(HostHeader, AddressesAndLocalhostBelongToNoSite) {
  for (const char* const host :
       {"127.0.0.1", "10.0.0.1", "[::1]", "localhost", "LocalHost", "LocalHost."})
    EXPECT_TRUE(belongs_to_no_site(host)) << host;
  for (const char* const host : {"", "a.example", "127.0.0.1.example", "localhost.example",
                                 "localhost..", ".", "[]", "[a]", "::1"})
    EXPECT_FALSE(belongs_to_no_site(host)) << host;
}

TEST(HostHeader, AddressesWithColonsStandInBrackets) {
  EXPECT_EQ(in_brackets("::1"), "[::1]");
  EXPECT_EQ(in_brackets("a.example"), "a.example");
}

}  // namespace
}  // namespace convoy::http

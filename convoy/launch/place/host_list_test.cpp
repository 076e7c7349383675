// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/host_list.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

using Hosts = std::vector<std::string>;

Hosts hosts(std::string_view list) { return expand_host_list(list, "LIST"); }

TEST(HostList, ExpandsRangesListsAndPlainNames) {
  EXPECT_EQ(hosts("node[01-03,7],gpu-[a,b]"),
            (Hosts{"node01", "node02", "node03", "node7", "gpu-a", "gpu-b"}));
  EXPECT_EQ(hosts("a,b-2,c.example.org"), (Hosts{"a", "b-2", "c.example.org"}));
  EXPECT_EQ(hosts("n[9-11]"), (Hosts{"n9", "n10", "n11"}));
  EXPECT_EQ(hosts("n[008-010]x"), (Hosts{"n008x", "n009x", "n010x"}));
  EXPECT_EQ(hosts("n[5]"), (Hosts{"n5"}));
  EXPECT_EQ(hosts("n[a-1]"), (Hosts{"na-1"}));
}

TEST(HostList, SeveralGroupsMultiplyTheFirstVaryingSlowest) {
  EXPECT_EQ(hosts("rack[1-2]node[0-1]"),
            (Hosts{"rack1node0", "rack1node1", "rack2node0", "rack2node1"}));
}

TEST(HostList, BadListsNameTheVariable) {
  for (const std::string bad : {"", "a,,b", "n[1-2", "n1-2]", "n[[1]]", "n[3-1]", "n[0-999999]",
                                "n[1,]", "n[0-999][0-999]"}) {
    try {
      hosts(bad);
      ADD_FAILURE() << "accepted " << bad;
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("LIST"), std::string::npos) << error.what();
    }
  }
}

// A hundred thousand names of a hundred thousand zeros would fill the memory.
TEST(HostList, NamesAreNoLongerThanNamesOfHosts) {
  const std::string zeros(100'000, '0');
  for (const std::string& bad : {"n[" + zeros + "-99999]", "n" + zeros, "n[" + zeros + "]"})
    EXPECT_THROW(hosts(bad), ConfigError) << bad.substr(0, 10);
  std::string groups = "n[1-900]";
  for (int group = 0; group < 1'000; ++group) groups += "[1]";
  EXPECT_THROW(hosts(groups), ConfigError);
  EXPECT_EQ(hosts(std::string(253, 'n')).front().size(), 253u);
}

TEST(Counts, ExpandRepeats) {
  EXPECT_EQ(expand_counts("2(x3),1", "C"), (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(expand_counts("4", "C"), (std::vector<int>{4}));
  for (const std::string bad :
       {"", "2(x", "2(x3", "2(x0)", "a", "2,", "2(x3)1", "-1", "1(x999999999)"})
    EXPECT_THROW(expand_counts(bad, "C"), ConfigError) << bad;
}

}  // namespace
}  // namespace convoy::launch

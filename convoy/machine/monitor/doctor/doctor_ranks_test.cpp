// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/doctor/doctor_ranks.h"

#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::monitor {
namespace {

Finding judged(const RanksFacts& facts) { return judge_ranks(facts).at(0); }

RanksFacts two_hosts() {
  RanksFacts facts{.nodes = 2, .ranks = {{"node0", "10.0.0.1"}, {"node1", "10.0.0.2"}}};
  facts.latency_s = 60e-6;
  facts.bytes_per_s = 3.0 * (1 << 30);
  facts.network = {.interfaces = {{"127.0.0.1", "lo"}, {"10.0.0.2", "ens3"}},
                   .wanted_interface = "",
                   .master = "node0",
                   .master_addresses = {"10.0.0.1"}};
  return facts;
}

TEST(DoctorOfRanks, FiguresNameTheInterfaceOfThisHost) {
  const Finding finding = judged(two_hosts());
  EXPECT_EQ(finding.level, FindingLevel::Fine);
  EXPECT_EQ(finding.text,
            "2 ranks on node0, node1 sum one number in 60 us, many at 3.0 GiB/s over ens3");
}

TEST(DoctorOfRanks, ASlowNetworkIsAWarningThatAsksForAnother) {
  RanksFacts facts = two_hosts();
  facts.bytes_per_s = 11.0 * (1 << 20);
  const Finding finding = judged(facts);
  EXPECT_EQ(finding.level, FindingLevel::Warning);
  EXPECT_NE(finding.fix.find("is ens3 the fastest network"), std::string::npos);
  EXPECT_EQ(finding.code, ExitCode::PeerLost);
}

TEST(DoctorOfRanks, ALateNumberIsANoteThatSaysWhy) {
  RanksFacts facts = two_hosts();
  facts.latency_s = 5.1e-3;
  const Finding finding = judged(facts);
  EXPECT_EQ(finding.level, FindingLevel::Note);
  EXPECT_NE(finding.text.find("over ens3: late for one number"), std::string::npos);
}

TEST(DoctorOfRanks, ClocksOfSeveralNodes) {
  RanksFacts facts = two_hosts();
  facts.ranks[0].clock_s = 1'000'000'100.0;
  facts.ranks[1].clock_s = 1'000'000'100.004;
  std::vector<Finding> findings = judge_ranks(facts);
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[1].level, FindingLevel::Fine);
  facts.ranks[1].clock_s += 90;
  findings = judge_ranks(facts);
  EXPECT_EQ(findings[1].level, FindingLevel::Warning);
  EXPECT_EQ(findings[1].text,
            "the clock of node0 is 90.0 s behind that of node1: their logs will not match");
  facts.nodes = 1;
  EXPECT_EQ(judge_ranks(facts).size(), 1U);
}

TEST(DoctorOfRanks, WhatIsNotCheckedSaysWhy) {
  const Finding finding = judged({.check = "nccl", .not_checked = "no GPU"});
  EXPECT_EQ(finding.level, FindingLevel::Note);
  EXPECT_EQ(finding.text, "not checked: no GPU");
}

TEST(DoctorOfRanks, EachCauseHasItsOneFix) {
  RanksFacts facts = two_hosts();
  facts.failure = "rank 0: join failed: Connect timeout (another rank ended or did not answer)";
  Finding finding = judged(facts);
  EXPECT_EQ(finding.level, FindingLevel::Blocking);
  EXPECT_EQ(finding.text,
            "the nodes met, but their ranks do not reach each other: rank 0: join failed: Connect "
            "timeout");
  EXPECT_NE(finding.fix.find("firewall"), std::string::npos);

  facts.elsewhere = true;
  EXPECT_NE(judged(facts).fix.find("the cause is there"), std::string::npos);
  facts.elsewhere = false;

  facts.met = false;
  EXPECT_NE(judged(facts).fix.find("start the same command on every node"), std::string::npos);

  facts.network.master_addresses = {"127.0.1.1"};
  finding = judged(facts);
  EXPECT_EQ(finding.text, "the rendezvous host node0 is 127.0.1.1 here: this host itself");
  EXPECT_NE(finding.fix.find("/etc/hosts"), std::string::npos);
  facts.network.is_master = true;  // Debian's /etc/hosts names the own host so
  EXPECT_NE(judged(facts).fix.find("start the same command"), std::string::npos);
  facts.network.is_master = false;

  facts.network.master_addresses.clear();
  EXPECT_NE(judged(facts).text.find("is unknown here"), std::string::npos);

  facts.network.wanted_interface = "eth7";
  finding = judged(facts);
  EXPECT_EQ(finding.text, "GLOO_SOCKET_IFNAME=eth7 is no interface of this host");
  EXPECT_EQ(finding.fix, "name one of ens3, lo");
}

TEST(DoctorOfRanks, OneHostThatTakesTooLong) {
  const Finding finding = judged({.timed_out = true, .limit_s = 40});
  EXPECT_EQ(finding.level, FindingLevel::Blocking);
  EXPECT_EQ(finding.text, "ranks did not get through an all-reduce within 40 s");
}

TEST(DoctorOfRanks, FiguresOfAWorker) {
  const testing::TemporaryFolder folder;
  RanksFacts facts;
  EXPECT_FALSE(read_ranks_figures(folder / "none.json", facts));
  write_file_atomic(folder / "torn.json", "{\"ranks\": [");
  EXPECT_FALSE(read_ranks_figures(folder / "torn.json", facts));
  write_file_atomic(
      folder / "rank-0.json",
      R"({"ranks": [{"host": "a", "address": "10.0.0.1"}], "latency_s": 0.5, "bytes_per_s": 7})");
  ASSERT_TRUE(read_ranks_figures(folder / "rank-0.json", facts));
  EXPECT_EQ(facts.ranks[0].address, "10.0.0.1");
  EXPECT_EQ(facts.latency_s, 0.5);
}

TEST(DoctorOfRanks, InterfacesOfThisHost) {
  const NetworkFacts facts = read_network("localhost", "");
  EXPECT_EQ(facts.interfaces.at("127.0.0.1"), "lo");
  ASSERT_FALSE(facts.master_addresses.empty());
  EXPECT_FALSE(facts.leads_back()) << "whoever says localhost means this host";
}

}  // namespace
}  // namespace convoy::monitor

// SPDX-License-Identifier: Apache-2.0
//
// Tests environments that contradict each other, are incomplete or have invalid values, and which
// of them flags decide.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/launch/place/environment_resolver_fixture_test.h"
#include "convoy/launch/place/master_address.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

using namespace resolver_tests;

TEST(Resolver, RanksBelowRanksAreRefused) {
  EXPECT_TRUE(contains(failure(kTask, {.nproc_per_node_given = true, .nproc_per_node = 2}),
                       {"srun", "SLURM_STEP_TASKS_PER_NODE=2", "--ranks 2",
                        "srun --ntasks-per-node=1", "--env-source none", "rank 5 of 7"}));
  EXPECT_EQ(resolve_place(kTask, {.nproc_per_node_given = true}).kind, PlaceKind::Rank);
  // The last node has one task, but the other nodes of the job have two.
  const Environment last =
      with(kTask, {{"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "3"}});
  EXPECT_TRUE(
      contains(failure(last, {.nproc_per_node_given = true, .nproc_per_node = 2}), {"srun"}));
  EXPECT_TRUE(contains(failure(kTorchrun, {.nproc_per_node_given = true, .nproc_per_node = 8}),
                       {"torchrun or convoy launch already started 2 ranks"}));
}

TEST(Resolver, BareRankAgainstSrunIsAConflictShownAndDecided) {
  const Environment both = with(
      kTask, {{"RANK", "1"}, {"WORLD_SIZE", "7"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "2"}});
  EXPECT_TRUE(contains(failure(both), {"SLURM_PROCID=5 (srun)", "RANK=1 (env)", "--env-source srun",
                                       "--env-source env"}));
  const ResolvedPlace srun = resolve_place(both, {.env_source = "srun"});
  EXPECT_EQ(srun.rank, 5);
  EXPECT_EQ(row(srun, "rank").overrode, "RANK=1");
  EXPECT_EQ(row(srun, "source").decided_by, "--env-source");
  EXPECT_EQ(resolve_place(both, {.env_source = "env"}).rank, 1);
  EXPECT_EQ(resolve_place(both, {.env_source = "none"}).kind, PlaceKind::Nothing);
  EXPECT_EQ(resolve_place(with(both, {{"RANK", "5"}})).source, "srun");
  EXPECT_TRUE(contains(failure(with(kTask, {{"WORLD_SIZE", "16"}})),
                       {"SLURM_STEP_NUM_TASKS=7", "WORLD_SIZE=16"}));
  EXPECT_TRUE(contains(failure(with(kOpenMpi, kMpich)), {"OMPI_COMM_WORLD_RANK=3", "PMI_RANK=1"}));
}

TEST(Resolver, UnknownAndAbsentSourcesAreNamed) {
  EXPECT_TRUE(contains(failure(kTask, {.env_source = "sruns"}), {"sruns", "did you mean `srun`"}));
  for (const auto& [word, name] :
       {std::pair("slurm", "srun"), std::pair("mpirun", "openmpi"), std::pair("k8s", "kubernetes")})
    EXPECT_TRUE(
        contains(failure(kTask, {.env_source = word}),
                 {"has no `" + std::string(word), "its name here is `" + std::string(name)}));
  EXPECT_TRUE(contains(failure(kTask, {.env_source = "openmpi"}),
                       {"openmpi", "found: srun (SLURM_PROCID=5"}));
}

TEST(Resolver, BrokenVariablesDoNotMatterOnceNothingCounts) {
  const Environment broken = with(kTask, {{"SLURM_PROCID", "five"}});
  EXPECT_EQ(resolve_place(broken, {.env_source = "none"}).kind, PlaceKind::Nothing);
}

TEST(Resolver, HalfSetSourcesNameWhatIsThereAndWhatIsNot) {
  EXPECT_TRUE(contains(failure({{"RANK", "1"}, {"WORLD_SIZE", "2"}}),
                       {"RANK=1, WORLD_SIZE=2 are set", "LOCAL_RANK, LOCAL_WORLD_SIZE are not"}));
  EXPECT_TRUE(contains(failure({{"RANK", "1"}}), {"RANK=1 is set", "LOCAL_WORLD_SIZE are not"}));
  EXPECT_TRUE(contains(failure(without(kOpenMpi, {"OMPI_COMM_WORLD_LOCAL_SIZE"})),
                       {"OMPI_COMM_WORLD_LOCAL_SIZE"}));
  EXPECT_TRUE(
      contains(failure(without(kTask, {"SLURM_LOCALID"})), {"SLURM_PROCID=5", "SLURM_LOCALID"}));
  EXPECT_TRUE(contains(failure(without(kTorchrun, {"WORLD_SIZE"})), {"WORLD_SIZE"}));
  // Variables that batch scripts export for other programs do not describe a rank.
  EXPECT_EQ(resolve_place({{"WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}, {"RANK", ""}}).kind,
            PlaceKind::Nothing);
  EXPECT_EQ(resolve_place({{"RANK", "0"}, {"WORLD_SIZE", "1"}}).kind, PlaceKind::Rank);
}

TEST(Resolver, StrayRankZeroIsIgnoredWithANotice) {
  for (const Environment& stray : std::vector<Environment>{
           {{"RANK", "0"}}, {{"LOCAL_RANK", "0"}}, {{"RANK", "0"}, {"LOCAL_RANK", "0"}}}) {
    for (const int ranks : {0, 4}) {
      ResolveOptions options;
      options.nproc_per_node_given = ranks > 0;
      options.nproc_per_node = ranks;
      const ResolvedPlace place = resolve_place(stray, options);
      EXPECT_EQ(place.kind, PlaceKind::Nothing);
      ASSERT_EQ(place.notes.size(), 1U);
      EXPECT_TRUE(contains(place.notes[0], {"RANK=0", "without WORLD_SIZE", "is ignored"}));
    }
  }
  // A RANK other than 0 or a WORLD_SIZE above 1 implies other ranks. Variables of a second launcher
  // count too, and must agree.
  EXPECT_TRUE(contains(failure({{"RANK", "0"}, {"LOCAL_RANK", "1"}}), {"only in part"}));
  EXPECT_TRUE(contains(failure({{"RANK", "0"}, {"WORLD_SIZE", "2"}}), {"only in part"}));
  EXPECT_TRUE(contains(failure(with(kTask, {{"RANK", "0"}})), {"SLURM_PROCID=5", "RANK=0"}));
  EXPECT_TRUE(contains(failure({{"RANK", "0"}}, {.env_source = "env"}), {"only in part"}));
}

TEST(Resolver, FlagsThatSayWhichNodeBeatABareRank) {
  const Environment pod = {
      {"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "127.0.0.1"}, {"MASTER_PORT", "29740"}};
  ResolveOptions flags;
  flags.nproc_per_node_given = true;
  flags.nproc_per_node = 2;
  flags.num_nodes = 2;
  EXPECT_TRUE(contains(failure(pod, flags), {"only in part"}))
      << "without a node rank nobody decides";
  flags.node_rank = 0;
  const ResolvedPlace place = resolve_place(pod, flags);
  EXPECT_EQ(place.kind, PlaceKind::Nothing);
  ASSERT_EQ(place.notes.size(), 1U);
  EXPECT_TRUE(contains(place.notes[0], {"RANK=0, WORLD_SIZE=2", "--nnodes 2", "--node-rank 0"}));
  EXPECT_EQ(row(place, "source").overrode, "env (RANK=0, WORLD_SIZE=2)");
  // Variables that describe a rank completely make it a rank, in spite of the flags.
  EXPECT_TRUE(contains(failure(with(pod, {{"LOCAL_RANK", "0"}, {"LOCAL_WORLD_SIZE", "2"}}), flags),
                       {"already started 2 ranks here"}));
}

TEST(Resolver, NonsenseIsNamed) {
  EXPECT_TRUE(
      contains(failure(with(kTask, {{"SLURM_PROCID", "five"}})), {"SLURM_PROCID", "`five`"}));
  EXPECT_TRUE(contains(failure(with(kTask, {{"SLURM_PROCID", "7"}})),
                       {"SLURM_PROCID=7", "SLURM_STEP_NUM_TASKS=7"}));
  EXPECT_TRUE(contains(failure(with(kTask, {{"SLURM_LOCALID", "2"}})),
                       {"SLURM_LOCALID=2", "SLURM_STEP_TASKS_PER_NODE=2"}));
  EXPECT_TRUE(contains(failure(with(kTask, {{"SLURM_STEP_TASKS_PER_NODE", "2(x4)"}})),
                       {"8 tasks on 4 nodes", "SLURM_STEP_NUM_TASKS=7"}));
  EXPECT_TRUE(
      contains(failure(with(kTorchrun, {{"MASTER_PORT", "70000"}})), {"MASTER_PORT", "`70000`"}));
  EXPECT_TRUE(contains(failure(with(kTorchrun, {{"RANK", "-1"}})), {"RANK", "`-1`"}));
  EXPECT_TRUE(contains(failure(with(kTorchrun, {{"LOCAL_SIZE", "9"}})),
                       {"LOCAL_WORLD_SIZE=2", "LOCAL_SIZE=9"}));
}

TEST(Resolver, FlagsForTheAddressBeatVariables) {
  const ResolvedPlace place = resolve_place(kTask, {.master_addr = "front", .master_port = 4000});
  EXPECT_EQ(place.master_addr, "front");
  EXPECT_EQ(row(place, "master_addr").overrode, "first host of SLURM_STEP_NODELIST=gpu09");
  EXPECT_EQ(place.master_port, 4000);
}

TEST(Explain, FlagsAreLaidOverTheEnvironment) {
  const ResolvedPlace place = resolve_place(kTask);
  const std::vector<Origin> flags = {{"nnodes", "2", "--nnodes", ""},
                                     {"nproc_per_node", "1", "default", ""}};
  const std::string text = explain_text(place, flags);
  EXPECT_TRUE(contains(text, {"srun started this process as one rank", "decided by", "SLURM_PROCID",
                              "4 of SLURM_STEP_NUM_NODES", "nproc_per_node"}));
  for (const char letter : text) EXPECT_TRUE(letter == '\n' || (letter >= ' ' && letter <= '~'));
  const auto json = nlohmann::json::parse(explain_json(place, flags));
  EXPECT_EQ(json["kind"], "rank");
  EXPECT_EQ(json["rank"], 5);
  EXPECT_EQ(json["origins"][0]["field"], "source");
  EXPECT_EQ(explain_json(place).find('\n'), std::string::npos);
}

TEST(Explain, WhatIsRefusedIsShownWithWhatWasFound) {
  const Environment both = with(kTask, {{"RANK", "1"}, {"UNRELATED", "x"}});
  const std::vector<Origin> flags = {{"nnodes", "2", "--nnodes", ""}};
  const std::string text = explain_refusal_text(both, "two things", flags);
  EXPECT_TRUE(contains(text, {"nothing would be started: two things", "SLURM_PROCID", "RANK",
                              "the environment", "--nnodes"}));
  EXPECT_EQ(text.find("UNRELATED"), std::string::npos);
  const auto json = nlohmann::json::parse(explain_refusal_json(both, "two things", flags));
  EXPECT_EQ(json["kind"], "refused");
  EXPECT_EQ(json["origins"][0]["field"], "RANK");
}

}  // namespace
}  // namespace convoy::launch

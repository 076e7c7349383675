// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/environment_resolver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/launch/place/master_address.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

Environment with(Environment base, const Environment& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

Environment without(Environment base, const std::vector<std::string>& names) {
  for (const std::string& name : names) base.erase(name);
  return base;
}

// The variables that srun gives task 5 of 7 on nodes of 2, 2, 2 and 1.
const Environment kTask = {{"SLURM_JOB_ID", "123456"},
                           {"SLURM_JOB_NODELIST", "gpu[08-12]"},
                           {"SLURM_STEP_ID", "0"},
                           {"SLURM_STEP_NODELIST", "gpu[09-12]"},
                           {"SLURM_STEP_NUM_NODES", "4"},
                           {"SLURM_STEP_NUM_TASKS", "7"},
                           {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"},
                           {"SLURM_NTASKS", "10"},
                           {"SLURM_NNODES", "5"},
                           {"SLURM_TASKS_PER_NODE", "2(x5)"},
                           {"SLURM_PROCID", "5"},
                           {"SLURM_LOCALID", "1"},
                           {"SLURM_NODEID", "2"},
                           {"SLURM_LAUNCH_NODE_IPADDR", "10.0.0.99"}};

// One task on each of two nodes.
const Environment kNodeTask = {{"SLURM_JOB_ID", "77"},
                               {"SLURM_JOB_NODELIST", "n[1-2]"},
                               {"SLURM_STEP_ID", "3"},
                               {"SLURM_STEP_NODELIST", "n[1-2]"},
                               {"SLURM_STEP_NUM_NODES", "2"},
                               {"SLURM_STEP_NUM_TASKS", "2"},
                               {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"},
                               {"SLURM_PROCID", "1"},
                               {"SLURM_LOCALID", "0"},
                               {"SLURM_NODEID", "1"}};

const Environment kBatchScript = {{"SLURM_JOB_ID", "77"},       {"SLURM_JOB_NODELIST", "n[1-2]"},
                                  {"SLURM_JOB_NUM_NODES", "2"}, {"SLURM_NTASKS", "1"},
                                  {"SLURM_PROCID", "0"},        {"SLURM_LOCALID", "0"},
                                  {"SLURM_NODEID", "0"},        {"SLURM_TASKS_PER_NODE", "1(x2)"}};

const Environment kTorchrun = {{"TORCHELASTIC_RUN_ID", "none"},
                               {"RANK", "3"},
                               {"WORLD_SIZE", "4"},
                               {"LOCAL_RANK", "1"},
                               {"LOCAL_WORLD_SIZE", "2"},
                               {"GROUP_RANK", "1"},
                               {"GROUP_WORLD_SIZE", "2"},
                               {"MASTER_ADDR", "head"},
                               {"MASTER_PORT", "29511"}};

const Environment kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "3"},
                              {"OMPI_COMM_WORLD_SIZE", "4"},
                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                              {"PMIX_RANK", "3"},
                              {"PMIX_NAMESPACE", "914096129"}};

const Environment kMpich = {
    {"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}};

std::string failure(const Environment& environment, const ResolveOptions& options = {}) {
  try {
    const ResolvedPlace place = resolve_place(environment, options);
    return "no error, source " + place.source;
  } catch (const ConfigError& error) {
    return error.sentence();
  }
}

::testing::AssertionResult contains(const std::string& text,
                                    const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos)
      return ::testing::AssertionFailure() << "`" << part << "` is not in: " << text;
  return ::testing::AssertionSuccess();
}

Origin row(const ResolvedPlace& place, const std::string& field) {
  for (const Origin& origin : place.origins)
    if (origin.field == field) return origin;
  ADD_FAILURE() << "no row " << field;
  return {};
}

TEST(Resolver, NobodyPlacedUs) {
  const ResolvedPlace place = resolve_place({{"HOME", "/root"}, {"MASTER_ADDR", "left"}});
  EXPECT_EQ(place.kind, PlaceKind::Nothing);
  EXPECT_EQ(place.source, "none");
  EXPECT_EQ(place.num_nodes, 1);
  EXPECT_EQ(place.master_addr, "");
}

TEST(Resolver, TorchrunRankIsAdopted) {
  const ResolvedPlace place = resolve_place(kTorchrun);
  EXPECT_EQ(place.kind, PlaceKind::Rank);
  EXPECT_EQ(place.source, "torchrun");
  EXPECT_EQ(place.rank, 3);
  EXPECT_EQ(place.world_size, 4);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 2);
  EXPECT_EQ(place.node_rank, 1);
  EXPECT_EQ(place.num_nodes, 2);
  EXPECT_EQ(place.master_addr, "head");
  EXPECT_EQ(place.master_port, 29511);
  EXPECT_EQ(row(place, "rank").decided_by, "RANK");
}

TEST(Resolver, SrunStepBeatsTheJobAndNodesMayBeUneven) {
  const ResolvedPlace place = resolve_place(kTask);
  EXPECT_EQ(place.kind, PlaceKind::Rank);
  EXPECT_EQ(place.source, "srun");
  EXPECT_EQ(place.rank, 5);
  EXPECT_EQ(place.world_size, 7);
  EXPECT_EQ(place.local_rank, 1);
  EXPECT_EQ(place.local_world_size, 2);
  EXPECT_EQ(place.node_rank, 2);
  EXPECT_EQ(place.num_nodes, 4);
  EXPECT_EQ(place.ranks_per_node, (std::vector<int>{2, 2, 2, 1}));
  EXPECT_EQ(place.hosts.size(), 4U);
  EXPECT_EQ(place.master_addr, "gpu09");
  EXPECT_EQ(place.master_port, 15000 + 3456);
  EXPECT_EQ(place.job_id, "123456");

  const ResolvedPlace last = resolve_place(
      with(kTask, {{"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "3"}}));
  EXPECT_EQ(last.local_world_size, 1);
}

TEST(Resolver, LaunchNodeAddressIsNeverTheMaster) {
  const Environment no_list = without(kTask, {"SLURM_JOB_NODELIST", "SLURM_STEP_NODELIST"});
  EXPECT_TRUE(contains(failure(no_list), {"srun", "several nodes", "--master-addr"}));
  EXPECT_EQ(resolve_place(no_list, {.master_addr = "n7"}).master_addr, "n7");
}

TEST(Resolver, BatchScriptIsNotATask) {
  for (const Environment& step : std::vector<Environment>{{},
                                                          {{"SLURM_STEP_ID", "4294967291"}},
                                                          {{"SLURM_STEPID", "4294967290"}},
                                                          {{"SLURM_STEP_ID", "batch"}},
                                                          {{"SLURM_STEP_ID", "-5"}}}) {
    const ResolvedPlace place = resolve_place(with(kBatchScript, step));
    EXPECT_EQ(place.kind, PlaceKind::Nothing);
    EXPECT_EQ(place.num_nodes, 1);
    EXPECT_EQ(place.job_id, "77");
    ASSERT_EQ(place.notes.size(), 2U);
    EXPECT_TRUE(contains(place.notes[1], {"2 nodes", "srun"}));
  }
}

TEST(Resolver, StepOfTheJobThatSubmittedThisOneDoesNotCount) {
  const ResolvedPlace place = resolve_place(
      with(kBatchScript, {{"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NODELIST", "login1"}}));
  EXPECT_EQ(place.kind, PlaceKind::Nothing);
  EXPECT_TRUE(contains(place.notes.at(0), {"SLURM_STEP_NODELIST=login1", "another job"}));
}

TEST(Resolver, StepOnTheSameNodeIsToldByItsTasks) {
  const Environment inherited = with(kBatchScript, {{"SLURM_JOB_NODELIST", "n1"},
                                                    {"SLURM_STEP_ID", "0"},
                                                    {"SLURM_STEP_NODELIST", "n1"},
                                                    {"SLURM_STEP_NUM_NODES", "1"},
                                                    {"SLURM_STEP_NUM_TASKS", "4"},
                                                    {"SLURM_STEP_TASKS_PER_NODE", "4"},
                                                    {"SLURM_GTIDS", "0"}});
  const ResolvedPlace place = resolve_place(inherited);
  EXPECT_EQ(place.kind, PlaceKind::Nothing);
  EXPECT_TRUE(contains(place.notes.at(0), {"SLURM_GTIDS=0", "4 tasks"}));
  EXPECT_EQ(resolve_place(with(inherited, {{"SLURM_GTIDS", "0,1,2,3"}})).world_size, 4);
}

TEST(Resolver, OneTaskPerNodeAndRanksAskedForIsANode) {
  const ResolveOptions four = {.nproc_per_node_given = true, .nproc_per_node = 4};
  const ResolvedPlace place = resolve_place(kNodeTask, four);
  EXPECT_EQ(place.kind, PlaceKind::Node);
  EXPECT_EQ(place.node_rank, 1);
  EXPECT_EQ(place.num_nodes, 2);
  EXPECT_EQ(place.rank, -1);
  EXPECT_EQ(place.master_addr, "n1");
  EXPECT_EQ(place.master_port, 15077);
  EXPECT_EQ(resolve_place(kNodeTask).kind, PlaceKind::Rank);
  // Batch scripts prepare these for the ranks to come.
  EXPECT_EQ(resolve_place(with(kNodeTask, {{"WORLD_SIZE", "8"}, {"RANK", "0"}}), four).kind,
            PlaceKind::Node);
}

TEST(Resolver, RanksBelowRanksAreRefused) {
  EXPECT_TRUE(contains(failure(kTask, {.nproc_per_node_given = true, .nproc_per_node = 2}),
                       {"srun", "SLURM_STEP_TASKS_PER_NODE=2", "--ranks 2",
                        "srun --ntasks-per-node=1", "--env-source none", "rank 5 of 7"}));
  EXPECT_EQ(resolve_place(kTask, {.nproc_per_node_given = true}).kind, PlaceKind::Rank);
  // The last node has one task, the job as a whole has more than one per node.
  const Environment last =
      with(kTask, {{"SLURM_PROCID", "6"}, {"SLURM_LOCALID", "0"}, {"SLURM_NODEID", "3"}});
  EXPECT_TRUE(
      contains(failure(last, {.nproc_per_node_given = true, .nproc_per_node = 2}), {"srun"}));
  EXPECT_TRUE(contains(failure(kTorchrun, {.nproc_per_node_given = true, .nproc_per_node = 8}),
                       {"torchrun or convoy launch already started 2 ranks"}));
}

TEST(Resolver, OpenMpiAcrossNodesNeedsAnAddress) {
  EXPECT_TRUE(
      contains(failure(kOpenMpi), {"openmpi", "several nodes", "--master-addr", "MASTER_ADDR"}));
  const ResolvedPlace given = resolve_place(with(kOpenMpi, {{"MASTER_ADDR", "n1"}}));
  EXPECT_EQ(given.kind, PlaceKind::Rank);
  EXPECT_EQ(given.rank, 3);
  EXPECT_EQ(given.node_rank, 1);
  EXPECT_EQ(given.num_nodes, 2);
  EXPECT_EQ(given.master_addr, "n1");
  EXPECT_EQ(given.master_port, 15000 + 6129);
  EXPECT_EQ(resolve_place(with(kOpenMpi, {{"SLURM_JOB_NODELIST", "n[4-5]"}})).master_addr, "n4");
}

TEST(Resolver, OpenMpiOnOneNodeUsesLoopback) {
  const ResolvedPlace place = resolve_place(
      with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_RANK", "3"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}}));
  EXPECT_EQ(place.num_nodes, 1);
  EXPECT_EQ(place.master_addr, "127.0.0.1");
}

TEST(Resolver, UnevenMpiNodesAreSaidToBeUnknown) {
  const Environment odd = with(kOpenMpi, {{"OMPI_COMM_WORLD_SIZE", "5"}, {"MASTER_ADDR", "n1"}});
  EXPECT_EQ(resolve_place(odd).num_nodes, 0);
  EXPECT_EQ(resolve_place(odd).node_rank, -1);
  const ResolvedPlace counted = resolve_place(with(odd, {{"OMPI_MCA_orte_num_nodes", "3"}}));
  EXPECT_EQ(counted.num_nodes, 3);
  EXPECT_EQ(counted.node_rank, -1);
}

TEST(Resolver, MpirunPerNodeLaunchersGetTheirNodeRank) {
  const ResolvedPlace place = resolve_place(with(kOpenMpi, {{"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"},
                                                            {"MASTER_ADDR", "a"}}),
                                            {.nproc_per_node_given = true, .nproc_per_node = 2});
  EXPECT_EQ(place.kind, PlaceKind::Node);
  EXPECT_EQ(place.node_rank, 3);
  EXPECT_EQ(place.num_nodes, 4);
}

TEST(Resolver, MpichMvapichAndJsrun) {
  EXPECT_EQ(resolve_place(kMpich).source, "mpich");
  EXPECT_EQ(resolve_place(kMpich).rank, 1);
  EXPECT_EQ(
      resolve_place(
          {{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}})
          .local_rank,
      1);
  const ResolvedPlace mvapich = resolve_place(with(kMpich, {{"MV2_COMM_WORLD_RANK", "1"},
                                                            {"MV2_COMM_WORLD_SIZE", "2"},
                                                            {"MV2_COMM_WORLD_LOCAL_RANK", "1"},
                                                            {"MV2_COMM_WORLD_LOCAL_SIZE", "2"}}));
  EXPECT_EQ(mvapich.source, "mvapich");
  EXPECT_EQ(mvapich.local_world_size, 2);
}

TEST(Resolver, JsrunSkipsTheBatchHostOfTheRankFile) {
  const testing::TemporaryFolder folder;
  std::ofstream(folder / "hosts") << "batch3\nc1\nc1\nc2\nc2\n";
  const Environment jsrun = {{"JSM_NAMESPACE_RANK", "2"},
                             {"JSM_NAMESPACE_SIZE", "4"},
                             {"JSM_NAMESPACE_LOCAL_RANK", "0"},
                             {"JSM_NAMESPACE_LOCAL_SIZE", "2"},
                             {"LSB_JOBID", "99"},
                             {"LSB_DJOB_RANKFILE", folder / "hosts"}};
  const ResolvedPlace place = resolve_place(jsrun);
  EXPECT_EQ(place.source, "jsrun");
  EXPECT_EQ(place.master_addr, "c1");
  EXPECT_EQ(place.hosts, (std::vector<std::string>{"c1", "c2"}));
  EXPECT_EQ(place.master_port, 15099);
  EXPECT_EQ(place.node_rank, 1);
  // Without jsrun the first line is the first host.
  EXPECT_EQ(resolve_place(with(kOpenMpi, {{"LSB_DJOB_RANKFILE", folder / "hosts"}})).master_addr,
            "batch3");
}

TEST(Resolver, InnermostWins) {
  const Environment all = with(with(kTask, kOpenMpi), kTorchrun);
  const ResolvedPlace place = resolve_place(all);
  EXPECT_EQ(place.source, "torchrun");
  EXPECT_EQ(place.outer_sources, (std::vector<std::string>{"openmpi", "srun"}));
  EXPECT_TRUE(contains(row(place, "source").overrode,
                       {"openmpi (OMPI_COMM_WORLD_RANK=3", "srun (SLURM_PROCID=5"}));
  const ResolvedPlace mpi = resolve_place(with(kTask, kOpenMpi));
  EXPECT_EQ(mpi.source, "openmpi");
  EXPECT_EQ(mpi.outer_sources, (std::vector<std::string>{"srun"}));
  EXPECT_EQ(mpi.master_addr, "gpu08");
}

TEST(Resolver, PmiAndPmixVariablesOfSrunAreSrun) {
  EXPECT_EQ(resolve_place(with(kTask, {{"PMI_RANK", "5"}, {"PMI_SIZE", "7"}})).source, "srun");
  EXPECT_EQ(
      resolve_place(with(kTask, {{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "slurm.pmix.123456.0"}}))
          .source,
      "srun");
  EXPECT_TRUE(contains(failure({{"PMIX_RANK", "5"}}), {"PMIX_RANK=5", "OMPI_COMM_WORLD_SIZE"}));
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

TEST(Resolver, DeepSpeedHasLocalSize) {
  const ResolvedPlace place = resolve_place({{"RANK", "1"},
                                             {"LOCAL_RANK", "1"},
                                             {"WORLD_SIZE", "2"},
                                             {"LOCAL_SIZE", "2"},
                                             {"CROSS_RANK", "0"},
                                             {"CROSS_SIZE", "1"},
                                             {"MASTER_ADDR", "h"},
                                             {"MASTER_PORT", "29500"}});
  EXPECT_EQ(place.source, "deepspeed");
  EXPECT_EQ(place.local_world_size, 2);
  EXPECT_EQ(place.num_nodes, 1);
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
  // A higher number implies other ranks; the values of another launcher count, and have to agree.
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
  // A whole description is a rank all the same.
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

TEST(Resolver, FiveKubeflowVariablesDescribeANode) {
  const Environment pod = {{"PET_NNODES", "3"},
                           {"PET_NPROC_PER_NODE", "2"},
                           {"PET_NODE_RANK", "2"},
                           {"PET_MASTER_ADDR", "job-0.svc"},
                           {"PET_MASTER_PORT", "23456"}};
  const ResolvedPlace place = resolve_place(pod);
  EXPECT_EQ(place.kind, PlaceKind::Node);
  EXPECT_EQ(place.source, "kubernetes");
  EXPECT_EQ(place.node_rank, 2);
  EXPECT_EQ(place.num_nodes, 3);
  EXPECT_EQ(place.master_addr, "job-0.svc");
  EXPECT_EQ(place.master_port, 23456);
  // The operator sets RANK to the number of the pod as well.
  EXPECT_EQ(resolve_place(with(pod, {{"RANK", "2"}, {"WORLD_SIZE", "6"}})).kind, PlaceKind::Node);
  EXPECT_TRUE(
      contains(failure(with(pod, {{"PET_NODE_RANK", "3"}})), {"PET_NODE_RANK=3", "PET_NNODES=3"}));
  EXPECT_TRUE(contains(failure(with(pod, {{"PET_NNODES", "two"}})), {"PET_NNODES", "two"}));
  EXPECT_EQ(resolve_place(with(pod, {{"PET_NNODES", "1:4"}})).num_nodes, 4);
}

TEST(Resolver, CompletionIndexIsANodeRankOnlyOfSeveralNodes) {
  const Environment pod = {{"JOB_COMPLETION_INDEX", "1"}};
  EXPECT_EQ(resolve_place(pod).kind, PlaceKind::Nothing);
  const ResolvedPlace place = resolve_place(pod, {.num_nodes = 2, .master_addr = "p0"});
  EXPECT_EQ(place.kind, PlaceKind::Node);
  EXPECT_EQ(place.node_rank, 1);
  EXPECT_EQ(place.master_addr, "p0");
  EXPECT_EQ(resolve_place(with(pod, {{"PET_NNODES", "2"}, {"PET_MASTER_ADDR", "x"}})).node_rank, 1);
}

TEST(Resolver, FlagsForTheAddressBeatVariables) {
  const ResolvedPlace place = resolve_place(kTask, {.master_addr = "front", .master_port = 4000});
  EXPECT_EQ(place.master_addr, "front");
  EXPECT_EQ(row(place, "master_addr").overrode, "first host of SLURM_STEP_NODELIST=gpu09");
  EXPECT_EQ(place.master_port, 4000);
}

TEST(Resolver, PortOfJobTakesTheLastFourDigits) {
  EXPECT_EQ(port_of_job("12"), 15012);
  EXPECT_EQ(port_of_job("1230007"), 15007);
  EXPECT_EQ(port_of_job("prterun-n1-94217@1"), 15000 + 4217);
  EXPECT_EQ(port_of_job("none"), 0);
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

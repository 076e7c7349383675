// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/environment_resolver.h"

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
  // Batch scripts set these variables for the ranks that the launcher will start.
  EXPECT_EQ(resolve_place(with(kNodeTask, {{"WORLD_SIZE", "8"}, {"RANK", "0"}}), four).kind,
            PlaceKind::Node);
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
  // Without jsrun, the first line of the file is the first host.
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

TEST(Resolver, PortOfJobTakesTheLastFourDigits) {
  EXPECT_EQ(port_of_job("12"), 15012);
  EXPECT_EQ(port_of_job("1230007"), 15007);
  EXPECT_EQ(port_of_job("prterun-n1-94217@1"), 15000 + 4217);
  EXPECT_EQ(port_of_job("none"), 0);
}

}  // namespace
}  // namespace convoy::launch

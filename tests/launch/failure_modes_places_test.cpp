// SPDX-License-Identifier: Apache-2.0
//
// Tests the failure modes of a launcher that depend on its surroundings: ports, devices, other
// nodes, outer launchers. The names have the numbers of docs/explanation/failure-modes.md.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>

#include "launch/launch_process.h"

namespace convoy::testing {
namespace {

using FailureModes = LaunchTest;

TEST_F(FailureModes, L08_PortTakenAfterItWasChosenIsAnotherOneAtTheNextAttempt) {
  // Rank 0 of the first attempt finds its port in use, as if another program had opened it first.
  const LaunchEnd end = run(shell(1,
                                  "echo $MASTER_PORT >> $HERE/ports; [ "
                                  "$TORCHELASTIC_RESTART_COUNT = 1 ] || exit 98",
                                  {"--max-restarts", "1"}));
  EXPECT_EQ(end.status, 0) << end.errors;
  const std::vector<pid_t> ports = numbers("ports");
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_NE(ports[0], ports[1]);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

// Opens a listening socket. Returns its descriptor and its port.
std::pair<int, int> listener_of_others() {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::listen(listener, 1), 0);  // the kernel chooses a port
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&address);
  return {listener, bytes[2] * 256 + bytes[3]};
}

TEST_F(FailureModes, L08_TakenPortOfOneNodeIsNamedBeforeRanksStart) {
  const auto [listener, port] = listener_of_others();
  const std::string number = std::to_string(port);
  const LaunchEnd end = run(shell(1, "echo started > $HERE/started", {"--master-port", number}));
  const LaunchEnd dry = run(shell(1, "true", {"--master-port", number, "--dry-run"}));
  ::close(listener);
  EXPECT_EQ(end.status, 2) << end.errors;
  EXPECT_NE(end.errors.find(fmt::format("port {} is taken by process {} (", number, ::getpid())),
            std::string::npos)
      << end.errors;
  EXPECT_EQ(file("started"), "");
  EXPECT_EQ(dry.status, 2);
  EXPECT_NE(dry.output.find("port " + number + " is taken"), std::string::npos) << dry.output;
  EXPECT_EQ(run(shell(1, "true", {"--master-port", number})).status, 0);
}

TEST_F(FailureModes, L08_MeetingAddressThatIsNotThisHostsIsSaidAtOnce) {
  // The address is in TEST-NET-2, which no host has. It might be the address of a service, so the
  // node waits for the others nevertheless.
  const std::vector<std::string> flags = {
      "--nnodes",       "2",           "--node-rank",   "0", "--rdzv-endpoint",
      "198.51.100.7:0", "--rdzv-conf", "join_timeout=1"};
  const LaunchEnd end = run(shell(1, "true", flags));
  EXPECT_EQ(end.status, 13) << end.errors;
  EXPECT_NE(end.errors.find("198.51.100.7:0 is not an address of this host"), std::string::npos)
      << end.errors;
}

TEST_F(FailureModes, L19_FlagsThatSayWhichNodeBeatTheNumbersOfAPod) {
  LaunchStart what = shell(2, "echo $RANK $WORLD_SIZE > $HERE/place.$LOCAL_RANK",
                           {"--nnodes", "1", "--node-rank", "0"});
  what.environment = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(file("place.1"), "1 2\n");
  EXPECT_NE(end.errors.find("RANK=0, WORLD_SIZE=2 without LOCAL_RANK"), std::string::npos)
      << end.errors;
}

TEST_F(FailureModes, L19_StrayRankZeroIsIgnoredWithANotice) {
  LaunchStart what = shell(2, "echo $RANK $WORLD_SIZE > $HERE/place.$LOCAL_RANK");
  what.environment = {{"RANK", "0"}};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(file("place.0") + file("place.1"), "0 2\n1 2\n");
  EXPECT_NE(end.errors.find("RANK=0 without WORLD_SIZE describes no rank and is ignored"),
            std::string::npos)
      << end.errors;
}

TEST_F(FailureModes, L19_ExplainShowsWhatContradictsItselfAndWhatStandaloneBeats) {
  LaunchStart what = shell(2, "true", {"--explain"});
  what.environment = {{"RANK", "0"}, {"WORLD_SIZE", "2"}};
  const LaunchEnd refused = run(what);
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.output.find("describes a rank only in part"), std::string::npos)
      << refused.output;
  EXPECT_NE(refused.output.find("the environment"), std::string::npos) << refused.output;
  const LaunchEnd alone = run({"--standalone", "--nnodes", "4", "--explain", "true"});
  EXPECT_EQ(alone.status, 0);
  EXPECT_NE(alone.output.find("nnodes      1      --standalone  --nnodes 4"), std::string::npos)
      << alone.output;
  EXPECT_EQ(alone.output.find("--env-source"), std::string::npos) << alone.output;
}

TEST_F(FailureModes, ExplainShowsTheVariablesOfTheRanksLibraries) {
  LaunchStart what = shell(2, "true", {"--explain"});
  what.environment = {{"HSA_ENABLE_SDMA", "1"}, {"NCCL_TIMEOUT", "1800"}};
  what.removed_variables = {"PYTHONHASHSEED", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF",
                            "PYTORCH_ALLOC_CONF"};
  const auto explained = [&] {
    std::string text = run(what).output;
    const auto both_blank = [](char first, char second) { return first == ' ' && second == ' '; };
    text.erase(std::unique(text.begin(), text.end(), both_blank), text.end());
    return text;
  };
  const std::string shown = explained();
  for (const char* const row :
       {"PYTORCH_CUDA_ALLOC_CONF expandable_segments:True default",
        "PYTHONHASHSEED - not set; ranks get the exported value",
        "HSA_ENABLE_SDMA 1 the environment", "note: neither NCCL nor PyTorch reads NCCL_TIMEOUT"})
    EXPECT_NE(shown.find(row), std::string::npos) << row << "\n" << shown;
  what.environment["PYTHONHASHSEED"] = "42";
  what.environment["PYTORCH_ALLOC_CONF"] = "max_split_size_mb:64";
  what.removed_variables = {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"};
  const std::string exported = explained();
  EXPECT_NE(exported.find("PYTHONHASHSEED 42 the environment"), std::string::npos) << exported;
  EXPECT_EQ(exported.find("PYTORCH_CUDA_ALLOC_CONF"), std::string::npos) << exported;
}

TEST_F(FailureModes, L08_TakenPortOfTheRendezvousIsNamed) {
  const auto [listener, port] = listener_of_others();
  const LaunchEnd end = run(shell(
      1, "echo started > $HERE/started",
      {"--nnodes", "2", "--node-rank", "0", "--rdzv-endpoint", fmt::format("127.0.0.1:{}", port)}));
  ::close(listener);
  EXPECT_EQ(end.status, 2);
  EXPECT_NE(end.errors.find(fmt::format("127.0.0.1:{} is taken by process {} (", port, ::getpid())),
            std::string::npos)
      << end.errors;
  EXPECT_EQ(file("started"), "");
  EXPECT_LT(end.seconds, 30);
}

TEST_F(FailureModes, L09_ManyJobsOnOneNodeHaveTheirOwnPorts) {
  constexpr int kJobs = 8;
  std::vector<std::unique_ptr<LaunchProcess>> jobs;
  for (int job = 0; job < kJobs; ++job)
    jobs.push_back(start(shell(2,
                               kReady + "while [ $(wc -l < $HERE/pids) -lt 16 ]; do sleep "
                                        "0.01; done",
                               {"--rdzv-id", "the_same"})));
  for (const auto& job : jobs) {
    const LaunchEnd end = job->wait();
    EXPECT_EQ(end.status, 0) << end.errors;
  }
  const std::vector<pid_t> ports = numbers("ports");
  EXPECT_EQ(ports.size(), 2U * kJobs);
  EXPECT_EQ(std::set<pid_t>(ports.begin(), ports.end()).size(), 1U * kJobs);
  EXPECT_TRUE(nothing_left(milliseconds(0)));
}

TEST_F(FailureModes, L11_CpuCountIsWhatThisProcessMayUse) {
  LaunchStart one_cpu;
  one_cpu.arguments = {"--nproc-per-node", "cpu", "sh", "-c", "echo $WORLD_SIZE > $HERE/world"};
  one_cpu.before = {"taskset", "-c", "0"};
  EXPECT_EQ(run(one_cpu).status, 0);
  EXPECT_EQ(file("world"), "1\n");
}

// The GPUs come from a stand-in for NVML: two whole GPUs and one with two MIG instances.
class GpusOfANode : public LaunchTest {
 protected:
  LaunchEnd run_on_gpus(const std::string& visible, std::vector<std::string> flags,
                        const char* nproc = "gpu") {
    LaunchStart what;
    what.arguments = {"--nproc-per-node", nproc};
    what.arguments.insert(what.arguments.end(), flags.begin(), flags.end());
    for (const char* word :
         {"sh", "-c", "echo $LOCAL_RANK/$LOCAL_WORLD_SIZE $CUDA_VISIBLE_DEVICES > $HERE/gpu.$RANK"})
      what.arguments.emplace_back(word);
    what.environment = {
        {"CONVOY_NVML_LIBRARY", fmt::format("{}/libfake_nvml.so", std::getenv("CONVOY_BIN_DIR"))},
        {"FAKE_NVML", gpus_}};
    if (visible != "unset") what.environment["CUDA_VISIBLE_DEVICES"] = visible;
    if (visible == "unset") what.removed_variables = {"CUDA_VISIBLE_DEVICES"};
    return run(what);
  }

  std::string gpus_ = "GPU-aa11 A100 0000:3b:00.0 80000;GPU-bb22 A100 0000:5e:00.0 80000";
};

TEST_F(GpusOfANode, L11_OneRankForEachVisibleGpu) {
  EXPECT_EQ(run_on_gpus("unset", {}).status, 0);
  EXPECT_EQ(file("gpu.0") + file("gpu.1"), "0/2\n1/2\n");  // each sees both, as under torchrun
  EXPECT_EQ(run_on_gpus("1", {}).status, 0);
  EXPECT_EQ(file("gpu.0"), "0/1 1\n");
}

TEST_F(GpusOfANode, L11_UuidsKeepTheirSpelling) {
  EXPECT_EQ(run_on_gpus("GPU-bb,GPU-aa", {"--virtual-local-rank"}).status, 0);
  EXPECT_EQ(file("gpu.0") + file("gpu.1"), "0/2 GPU-bb\n0/2 GPU-aa\n");
}

TEST_F(GpusOfANode, L11_ChosenByNumber) {
  EXPECT_EQ(run_on_gpus("unset", {"--gpu-ids", "1"}, "auto").status, 0);
  EXPECT_EQ(file("gpu.0"), "0/1 1\n");
}

TEST_F(GpusOfANode, L11_EachMigInstanceIsARanksOwn) {
  gpus_ = "GPU-cc33 H100 0000:3b:00.0 80000 MIG-a/1/0/10000 -/0/0/0 MIG-b/2/0/20000";
  EXPECT_EQ(run_on_gpus("MIG-b,MIG-a", {}).status, 0);
  // CUDA shows a process only one MIG instance.
  EXPECT_NE(file("gpu.0").find("MIG-b"), std::string::npos);
  EXPECT_EQ(file("gpu.0").find("MIG-a"), std::string::npos);
}

TEST_F(GpusOfANode, L11_ThoseWithoutARankAreAnnounced) {
  gpus_ += ";GPU-cc33 A100 0000:70:00.0 80000;GPU-dd44 A100 0000:88:00.0 80000";
  const std::string words = "4 GPUs are visible and 1 rank is planned";
  EXPECT_NE(run_on_gpus("unset", {}, "1").errors.find(words), std::string::npos);
  for (const char* const visible : {"2", "GPU-aa,GPU-cc"})
    EXPECT_EQ(run_on_gpus(visible, {}, visible[0] == 'G' ? "2" : "1").errors.find("visible and"),
              std::string::npos);
  EXPECT_EQ(run_on_gpus("unset", {}).errors.find("visible and"), std::string::npos);
}

TEST_F(GpusOfANode, L11_NoneIsSaid) {
  const LaunchEnd end = run_on_gpus("", {});
  EXPECT_EQ(end.status, 2);
  EXPECT_NE(end.errors.find("CUDA_VISIBLE_DEVICES"), std::string::npos) << end.errors;
}

TEST_F(FailureModes, L11_NodesMayHaveUnequalNumbersOfRanks) {
  const std::string port = std::to_string(30'000 + ::getpid() % 2'000);
  const auto node = [&](int rank, int ranks) {
    return shell(ranks,
                 "echo $RANK/$WORLD_SIZE $LOCAL_RANK/$LOCAL_WORLD_SIZE "
                 "$GROUP_RANK/$GROUP_WORLD_SIZE > $HERE/place.$RANK",
                 {"--nnodes", "2", "--node-rank", std::to_string(rank), "--rdzv-endpoint",
                  "127.0.0.1:" + port, "--rdzv-id", "l11"});
  };
  const auto first = start(node(0, 1)), second = start(node(1, 3));
  EXPECT_EQ(first->wait().status, 0) << first->errors();
  EXPECT_EQ(second->wait().status, 0) << second->errors();
  EXPECT_EQ(file("place.0"), "0/4 0/1 0/2\n");
  EXPECT_EQ(file("place.1"), "1/4 0/3 1/2\n");
  EXPECT_EQ(file("place.3"), "3/4 2/3 1/2\n");
  EXPECT_TRUE(nothing_left());
}

// As with torchrun's c10d backend, the first launcher at the port hosts the meeting, and the others
// of this host join it.
TEST_F(FailureModes, L11_LaunchersOfOneHostNeedNoNodeRanks) {
  const std::string port = std::to_string(32'000 + ::getpid() % 700);
  const auto node = [&] {
    return shell(2, "echo $RANK/$WORLD_SIZE > $HERE/place.$RANK",
                 {"--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:" + port,
                  "--rdzv-id", "l11"});
  };
  const auto first = start(node()), second = start(node());
  EXPECT_EQ(first->wait().status, 0) << first->errors();
  EXPECT_EQ(second->wait().status, 0) << second->errors();
  for (const std::string rank : {"0", "1", "2", "3"})
    EXPECT_EQ(file("place." + rank), rank + "/4\n");
  EXPECT_TRUE(nothing_left());
}

// The port is below the range from which the kernel takes ports for connections.
TEST_F(FailureModes, L12_AnElasticJobGoesOnWithoutANodeThatIsStopped) {
  const std::string port = std::to_string(29'501 + ::getpid() % 490);
  const auto node = [&](const std::string& name) {
    return shell(1,
                 "trap 'exit 75' TERM; echo $RANK/$WORLD_SIZE/$$ >> $HERE/places." + name +
                     "; while [ ! -e $HERE/done ]; do sleep 0.02; done",
                 {"--nnodes", "1:2", "--rdzv-backend", "c10d", "--rdzv-endpoint",
                  "localhost:" + port, "--rdzv-id", "l11", "--rdzv-conf", "last_call_timeout=1"});
  };
  const auto host = start(node("host"));
  ASSERT_TRUE(wait_for_lines("places.host", 1));
  const auto other = start(node("other"));
  ASSERT_TRUE(wait_for_lines("places.other", 1));
  ASSERT_TRUE(wait_for_lines("places.host", 2));  // a rank may otherwise end before it writes
  other->signal(SIGTERM);
  EXPECT_EQ(other->wait().status, 75) << other->errors();
  ASSERT_TRUE(wait_for_lines("places.host", 3)) << host->errors();
  EXPECT_NE(host->errors().find("was asked to stop and leaves the job"), std::string::npos)
      << host->errors();
  std::ofstream(path("done")) << "x";
  EXPECT_EQ(host->wait().status, 0) << host->errors();
  EXPECT_NE(file("places.other").find("1/2/"), std::string::npos);
  EXPECT_TRUE(nothing_left());
}

struct AroundCase {
  const char* name;
  std::map<std::string, std::string> variables;
};

class StartedByOthers : public LaunchTest, public ::testing::WithParamInterface<AroundCase> {};

TEST_P(StartedByOthers, L19_RankIsAdoptedNotSpawnedTwice) {
  LaunchStart what;
  what.arguments = {"sh", "-c", "echo $RANK/$WORLD_SIZE $LOCAL_RANK >> $HERE/place"};
  what.environment = GetParam().variables;
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(file("place"), "3/4 1\n") << end.errors;
}

const AroundCase kAroundCases[] = {
    {"Torchrun",
     {{"RANK", "3"},
      {"WORLD_SIZE", "4"},
      {"LOCAL_RANK", "1"},
      {"LOCAL_WORLD_SIZE", "2"},
      {"GROUP_RANK", "1"},
      {"GROUP_WORLD_SIZE", "2"},
      {"MASTER_ADDR", "127.0.0.1"},
      {"MASTER_PORT", "29511"},
      {"TORCHELASTIC_RUN_ID", "around"}}},
    {"Srun",
     {{"SLURM_PROCID", "3"},
      {"SLURM_NTASKS", "4"},
      {"SLURM_LOCALID", "1"},
      {"SLURM_NODEID", "1"},
      {"SLURM_NNODES", "2"},
      {"SLURM_JOB_ID", "77"},
      {"SLURM_STEP_ID", "0"},
      {"SLURM_STEPID", "0"},
      {"SLURM_STEP_NUM_TASKS", "4"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"},
      {"SLURM_TASKS_PER_NODE", "2(x2)"},
      {"SLURM_JOB_NODELIST", "node[1-2]"},
      {"SLURM_STEP_NODELIST", "node[1-2]"}}},
    {"Mpirun",
     {{"OMPI_COMM_WORLD_RANK", "3"},
      {"OMPI_COMM_WORLD_SIZE", "4"},
      {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
      {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
      {"MASTER_ADDR", "127.0.0.1"}}},
};
INSTANTIATE_TEST_SUITE_P(FailureModes, StartedByOthers, ::testing::ValuesIn(kAroundCases),
                         [](const auto& test) { return std::string(test.param.name); });

// Torchrun's agent listens at MASTER_PORT, and its attempts share one store. Without this variable
// a rank would listen there itself, or read keys of the previous attempt.
TEST_F(FailureModes, L19_TorchrunsAttemptAndStoreReachTheRank) {
  LaunchStart what;
  what.arguments = {"sh", "-c",
                    "echo $TORCHELASTIC_RESTART_COUNT/$TORCHELASTIC_MAX_RESTARTS "
                    "$TORCHELASTIC_USE_AGENT_STORE > $HERE/around"};
  what.environment = {{"RANK", "0"},
                      {"WORLD_SIZE", "2"},
                      {"LOCAL_RANK", "0"},
                      {"LOCAL_WORLD_SIZE", "2"},
                      {"GROUP_RANK", "0"},
                      {"GROUP_WORLD_SIZE", "1"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", "29511"},
                      {"TORCHELASTIC_RUN_ID", "around"},
                      {"TORCHELASTIC_RESTART_COUNT", "2"},
                      {"TORCHELASTIC_MAX_RESTARTS", "3"},
                      {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 0) << end.errors;
  EXPECT_EQ(file("around"), "2/3 True\n");
  what.environment["TORCHELASTIC_RESTART_COUNT"] = "two";
  EXPECT_EQ(run(what).status, 2);
}

TEST_F(FailureModes, L20_SourcesThatDisagreeAreShownAndNotGuessed) {
  LaunchStart what;
  what.arguments = {"sh", "-c", "echo $RANK >> $HERE/place"};
  what.environment = {{"SLURM_PROCID", "0"},
                      {"SLURM_NTASKS", "2"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_NODEID", "0"},
                      {"SLURM_NNODES", "1"},
                      {"SLURM_JOB_ID", "77"},
                      {"SLURM_STEP_ID", "0"},
                      {"SLURM_STEPID", "0"},
                      {"SLURM_STEP_NUM_TASKS", "2"},
                      {"SLURM_TASKS_PER_NODE", "2"},
                      {"SLURM_JOB_NODELIST", "localhost"},
                      {"RANK", "1"},
                      {"WORLD_SIZE", "2"},
                      {"LOCAL_RANK", "1"},
                      {"MASTER_ADDR", "127.0.0.1"},
                      {"MASTER_PORT", "29512"}};
  const LaunchEnd end = run(what);
  EXPECT_EQ(end.status, 2) << end.errors;
  EXPECT_EQ(file("place"), "");
  for (const char* shown : {"SLURM_PROCID", "RANK", "--env-source"})
    EXPECT_NE(end.errors.find(shown), std::string::npos) << shown << "\n" << end.errors;
  what.arguments.insert(what.arguments.begin(), {"--env-source", "srun"});
  EXPECT_EQ(run(what).status, 0);
  EXPECT_EQ(file("place"), "0\n");
}

}  // namespace
}  // namespace convoy::testing

// SPDX-License-Identifier: Apache-2.0
//
// Runs the script in bash with stand-ins for srun and scontrol; tests/slurm runs it with a real
// SLURM.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "convoy/core/base/files.h"
#include "convoy/launch/submit/job_text.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

SubmitSettings slurm_settings() {
  SubmitSettings settings;
  settings.engine = "slurm";
  settings.nodes = 2;
  return settings;
}

std::vector<std::string> directives(const std::string& script) {
  std::vector<std::string> found;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("#SBATCH ")) found.push_back(line.substr(8));
  return found;
}

bool has_line(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Runs the script as the batch step of a SLURM job, with fake SLURM programs.
class Slurm : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "bin");
    // A fake srun. It stores its arguments and its environment, and runs FAKE_SRUN.
    testing::write_executable(folder_ / "bin" / "srun",
                              "#!/bin/bash\nprintf '%s\\0' \"$@\" >srun.words\nenv >srun.env\n"
                              "stat -c %a logs/*.token >token.mode\neval \"$FAKE_SRUN\"\n");
    testing::write_executable(
        folder_ / "bin" / "scontrol",
        "#!/bin/bash\necho \"$*\" >>scontrol.calls\ncase $* in\n"
        "'show hostnames node[1-2]') printf 'node1\\nnode2\\n' ;;\n"
        "'-o show node node1') echo 'NodeName=node1 NodeAddr=10.0.0.7 NodeHostName=x' ;;\nesac\n");
  }

  testing::ScriptEnd run(const SubmitSettings& settings, const std::string& srun,
                         const std::vector<std::string>& command = {"convoy", "train", "a b.yaml"},
                         const std::string& variables = "") {
    std::filesystem::remove(folder_ / "scontrol.calls");
    return testing::run_script(folder_.path(), slurm_script(settings, command),
                               "env PATH=\"$PWD/bin:$PATH\" SLURM_JOB_ID=4217 "
                               "SLURM_JOB_NODELIST='node[1-2]' " +
                                   variables + " FAKE_SRUN='" + srun + "'");
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }
  bool requeued() const {
    return std::filesystem::exists(folder_ / "scontrol.calls") &&
           file("scontrol.calls").find("requeue 4217") != std::string::npos;
  }

  testing::TemporaryFolder folder_;
};

TEST(SlurmScript, EveryFlagBecomesADirective) {
  SubmitSettings settings = slurm_settings();
  settings.name = "demo";
  settings.gpus_per_node = 8;
  settings.cpus_per_task = 16;
  settings.mem = "64G";
  settings.time = "4:00:00";
  settings.partition = "gpu";
  settings.account = "lab";
  settings.qos = "high";
  settings.log_dir = "my logs";
  settings.signal_before = 120;
  settings.env.names = {"HF_TOKEN", "A=1"};
  settings.extra.names = {"--constraint=a100&nvlink", "#SBATCH --exclusive"};
  const std::vector<std::string> found = directives(slurm_script(settings, {"true"}));
  for (const char* wanted :
       {"--job-name=demo", "--nodes=2", "--ntasks-per-node=1", "--gpus-per-node=8",
        "--cpus-per-task=16", "--mem=64G", "--time=4:00:00", "--partition=gpu", "--account=lab",
        "--qos=high", "--output=\"my logs/%j.log\"", "--open-mode=append", "--signal=B:USR1@120",
        "--requeue", "--export=PATH,HF_TOKEN", "--constraint=a100&nvlink", "--exclusive"})
    EXPECT_TRUE(has_line(found, wanted)) << wanted;
  settings.no_requeue = true;
  EXPECT_TRUE(has_line(directives(slurm_script(settings, {"true"})), "--no-requeue"));
}

TEST(SlurmScript, DirectivesComeBeforeAnyCommand) {
  std::istringstream lines(slurm_script(slurm_settings(), {"true"}));
  bool commands_began = false;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) commands_began = true;
    EXPECT_FALSE(commands_began && line.starts_with("#SBATCH")) << line;
  }
}

TEST_F(Slurm, OneLauncherPerNodeKnowsItsPlaceAndTheSecret) {
  SubmitSettings settings = slurm_settings();
  settings.nproc_per_node = "8";
  settings.env.names = {"GREETING=it's $HOME\nagain"};
  const std::vector<std::string> command = {"convoy", "launch",          "a b",
                                            "it's",   "$(touch hacked)", ""};
  // The words behind the options are the command that each node runs.
  const testing::ScriptEnd end = run(settings,
                                     "while [ \"$1\" != bash ]; do shift; done; SLURM_NODEID=1 "
                                     "PATH=$PWD/bin:/usr/bin:/bin \"$@\"");
  EXPECT_EQ(end.code, 127) << "there is no program `convoy` here: " << end.out;
  testing::write_executable(folder_ / "bin" / "convoy",
                            "#!/bin/bash\nprintf '%s\\0' \"$@\" >convoy.words\nenv -0 >convoy.env\n"
                            "cp \"$CONVOY_JOB_TOKEN_FILE\" seen.token\n");
  const testing::ScriptEnd second =
      run(settings, "while [ \"$1\" != bash ]; do shift; done; SLURM_NODEID=1 \"$@\"", command);
  EXPECT_EQ(second.code, 0) << second.out;
  EXPECT_EQ(file("convoy.words"), testing::zero_ended({command.begin() + 1, command.end()}));
  const std::string environment = '\0' + file("convoy.env");
  for (const std::string wanted :
       {"PET_NNODES=2", "PET_NPROC_PER_NODE=8", "PET_NODE_RANK=1", "PET_MASTER_ADDR=10.0.0.7",
        "PET_MASTER_PORT=19217", "GREETING=it's $HOME\nagain"})
    EXPECT_NE(environment.find('\0' + wanted + '\0'), std::string::npos) << wanted;
  EXPECT_EQ(file("seen.token").size(), 64u);
  EXPECT_EQ(file("token.mode"), "600\n");
  EXPECT_EQ(slurm_script(settings, command).find(file("seen.token")), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "logs" / "4217.token")) << "gone with the job";
  EXPECT_FALSE(std::filesystem::exists(folder_ / "hacked"));
}

// A job that is submitted within another job inherits the variables of the outer job, which srun
// would take as options.
TEST_F(Slurm, VariablesOfAnotherJobDoNotReachTheStep) {
  SubmitSettings settings = slurm_settings();
  settings.mem = "300M";
  settings.extra.names = {"-C a100", "--hint=compute_bound"};
  const std::vector<std::string> foreign = {
      "SLURM_MEM_PER_CPU",       "SLURM_MEM_PER_GPU",   "SLURM_GPUS",
      "SLURM_GPUS_PER_TASK",     "SLURM_GRES",          "SLURM_NTASKS_PER_GPU",
      "SLURM_RESV_PORTS",        "SLURM_GPUS_PER_NODE", "SLURM_THREADS_PER_CORE",
      "SLURM_NTASKS_PER_SOCKET", "SLURM_CPU_BIND",      "SLURM_CPUS_PER_TASK",
      "SLURM_TRES_PER_TASK",     "SLURM_DISTRIBUTION",  "SRUN_CPUS_PER_TASK"};
  const std::vector<std::string> own = {"SLURM_MEM_PER_NODE", "SLURM_CONSTRAINT", "SLURM_HINT",
                                        "SLURM_NTASKS", "SLURM_CONF"};
  std::string variables;
  for (const auto* const list : {&foreign, &own})
    for (const std::string& name : *list) variables += name + "=1 ";
  ASSERT_EQ(run(settings, "exit 0", {"convoy"}, variables).code, 0);
  const std::string environment = '\n' + file("srun.env");
  for (const std::string& name : foreign)
    EXPECT_EQ(environment.find('\n' + name + '='), std::string::npos) << name;
  for (const std::string& name : own)
    EXPECT_NE(environment.find('\n' + name + "=1\n"), std::string::npos) << name;
}

TEST_F(Slurm, AStoppedJobIsRequeuedAndAFailedOneIsNot) {
  const SubmitSettings settings = slurm_settings();
  for (const int code : {75, 13}) {
    EXPECT_EQ(run(settings, "exit " + std::to_string(code)).code, code);
    EXPECT_TRUE(requeued()) << code;
  }
  for (const int code : {0, 1, 2, 10, 12, 14, 15, 16, 70, 137, 143}) {
    EXPECT_EQ(run(settings, "exit " + std::to_string(code)).code, code);
    EXPECT_FALSE(requeued()) << code;
  }
}

TEST_F(Slurm, RequeuesAreCounted) {
  SubmitSettings settings = slurm_settings();
  settings.max_requeues = 2;
  run(settings, "exit 75", {"convoy"}, "SLURM_RESTART_COUNT=1");
  EXPECT_TRUE(requeued());
  const testing::ScriptEnd last = run(settings, "exit 75", {"convoy"}, "SLURM_RESTART_COUNT=2");
  EXPECT_EQ(last.code, 75);
  EXPECT_FALSE(requeued());
  EXPECT_NE(last.out.find("not requeued"), std::string::npos);
  settings.no_requeue = true;
  run(settings, "exit 75");
  EXPECT_FALSE(requeued());
}

TEST_F(Slurm, TheWarningReachesTheStepAndItsOwnCodeCounts) {
  const testing::ScriptEnd end = run(
      slurm_settings(),
      "trap \"sleep 0.2; exit 75\" USR1; kill -USR1 $PPID; for i in {1..100}; do sleep 0.1; done");
  EXPECT_EQ(end.code, 75) << end.out;
  EXPECT_TRUE(requeued());
}

TEST_F(Slurm, ACancelledJobSavesAndStaysCancelled) {
  const testing::ScriptEnd end =
      run(slurm_settings(), "kill -TERM $PPID; sleep 0.3; echo saved; exit 75");
  EXPECT_EQ(end.code, 75) << end.out;
  EXPECT_NE(end.out.find("saved"), std::string::npos);
  EXPECT_FALSE(requeued());
}

TEST_F(Slurm, RanksAsTasksGetAnAddressAndNoLauncher) {
  SubmitSettings settings = slurm_settings();
  settings.task_per_rank = true;
  settings.nproc_per_node = "4";
  settings.port = 2222;
  EXPECT_EQ(run(settings, "exit 0", {"./prog", "x y"}).code, 0);
  EXPECT_TRUE(has_line(directives(slurm_script(settings, {"true"})), "--ntasks-per-node=4"));
  const std::string environment = '\n' + file("srun.env");
  EXPECT_NE(environment.find("\nMASTER_ADDR=10.0.0.7\n"), std::string::npos);
  EXPECT_NE(environment.find("\nMASTER_PORT=2222\n"), std::string::npos);
  EXPECT_EQ(environment.find("\nPET_"), std::string::npos);
  EXPECT_TRUE(file("srun.words").ends_with(std::string("./prog\0x y\0", 11)));
}

TEST_F(Slurm, CodeSurvivesASignalInTheMomentOfTheEnd) {
  // bash loses the code of a child if a trap interrupts its `wait` at that moment; here, that
  // happens in one of ten attempts.
  for (int attempt = 0; attempt < 12; ++attempt) {
    const testing::ScriptEnd end =
        run(slurm_settings(), "trap '' USR1; kill -USR1 $PPID; exit 75", {"convoy", "train"});
    ASSERT_EQ(end.code, 75) << "attempt " << attempt;
  }
}

TEST_F(Slurm, OnlyLaunchersOfConvoyAreTrustedToEndEachOther) {
  run(slurm_settings(), "exit 0", {"/opt/bin/convoy", "train"});
  EXPECT_NE(file("srun.words").find("--kill-on-bad-exit=0"), std::string::npos);
  run(slurm_settings(), "exit 0", {"torchrun", "train.py"});
  EXPECT_NE(file("srun.words").find("--kill-on-bad-exit=1"), std::string::npos);
}

}  // namespace
}  // namespace convoy::launch

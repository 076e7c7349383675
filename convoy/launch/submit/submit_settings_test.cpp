// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/submit_settings.h"

#include <gtest/gtest.h>

#include <functional>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

const std::vector<std::string> kCommand = {"convoy", "train", "run.yaml"};

SubmitSettings settings_for(const std::string& engine) {
  SubmitSettings settings;
  settings.engine = engine;
  if (engine == "kubernetes") settings.image = "registry/convoy:1";
  return settings;
}

std::string key_of_refusal(const SubmitSettings& settings,
                           const std::vector<std::string>& command = kCommand) {
  try {
    check_submit_settings(settings, command);
  } catch (const ConfigError& error) {
    return error.location().key;
  }
  return "accepted";
}

TEST(SubmitSettings, DefaultsAreAcceptedByEveryEngine) {
  for (const char* engine : {"slurm", "kubernetes", "mpi"})
    EXPECT_EQ(key_of_refusal(settings_for(engine)), "accepted") << engine;
}

TEST(SubmitSettings, AFlagThatTheEngineCannotHonourIsNamed) {
  using Change = std::function<void(SubmitSettings&)>;
  struct Case {
    std::string engine;
    std::string key;
    Change change;
  };
  const std::vector<Case> cases = {
      {"slurm", "image", [](SubmitSettings& settings) { settings.image = "x"; }},
      {"slurm", "namespace", [](SubmitSettings& settings) { settings.name_space = "x"; }},
      {"slurm", "volume", [](SubmitSettings& settings) { settings.volume.names = {"a:/b"}; }},
      {"slurm", "hostfile", [](SubmitSettings& settings) { settings.hostfile = "x"; }},
      {"kubernetes", "partition", [](SubmitSettings& settings) { settings.partition = "x"; }},
      {"kubernetes", "account", [](SubmitSettings& settings) { settings.account = "x"; }},
      {"kubernetes", "qos", [](SubmitSettings& settings) { settings.qos = "x"; }},
      {"kubernetes", "log-dir", [](SubmitSettings& settings) { settings.log_dir = "x"; }},
      {"kubernetes", "extra", [](SubmitSettings& settings) { settings.extra.names = {"x"}; }},
      {"kubernetes", "task-per-rank",
       [](SubmitSettings& settings) { settings.task_per_rank = true; }},
      {"mpi", "requeue", [](SubmitSettings& settings) { settings.requeue = true; }},
      {"mpi", "max-requeues", [](SubmitSettings& settings) { settings.max_requeues = 3; }},
      {"mpi", "signal-before", [](SubmitSettings& settings) { settings.signal_before = 90; }},
      {"mpi", "time", [](SubmitSettings& settings) { settings.time = "10"; }},
      {"mpi", "mem", [](SubmitSettings& settings) { settings.mem = "1G"; }},
      {"mpi", "gpus-per-node", [](SubmitSettings& settings) { settings.gpus_per_node = 1; }},
  };
  for (const Case& one : cases) {
    SubmitSettings settings = settings_for(one.engine);
    one.change(settings);
    EXPECT_EQ(key_of_refusal(settings), one.key) << one.engine;
  }
}

TEST(SubmitSettings, WrongValuesAreNamed) {
  EXPECT_EQ(key_of_refusal(SubmitSettings()), "engine");
  EXPECT_EQ(key_of_refusal(settings_for("pbs")), "engine");
  SubmitSettings settings = settings_for("slurm");
  settings.name = "two words";
  EXPECT_EQ(key_of_refusal(settings), "name");
  settings = settings_for("kubernetes");
  settings.name = std::string(62, 'a');
  EXPECT_EQ(key_of_refusal(settings), "name");
  settings.name = std::string(61, 'a');
  EXPECT_EQ(key_of_refusal(settings), "accepted");
  settings.nodes = 11;  // the names of the pods end in -0 to -10
  EXPECT_EQ(key_of_refusal(settings), "name");
  settings = settings_for("slurm");
  settings.partition = "a b";
  EXPECT_EQ(key_of_refusal(settings), "partition");
  settings = settings_for("slurm");
  settings.extra.names = {"--x\n#SBATCH --y"};
  EXPECT_EQ(key_of_refusal(settings), "extra");
  settings = settings_for("slurm");
  settings.log_dir = "logs/%u";
  EXPECT_EQ(key_of_refusal(settings), "log-dir");
  settings = settings_for("slurm");
  settings.mem = "lots";
  EXPECT_EQ(key_of_refusal(settings), "mem");
  settings = settings_for("slurm");
  settings.nproc_per_node = "0";
  EXPECT_EQ(key_of_refusal(settings), "nproc-per-node");
  settings.nproc_per_node = "auto";
  EXPECT_EQ(key_of_refusal(settings), "accepted");
  settings.task_per_rank = true;
  EXPECT_EQ(key_of_refusal(settings), "task-per-rank");
  settings = settings_for("slurm");
  settings.requeue = settings.no_requeue = true;
  EXPECT_EQ(key_of_refusal(settings), "requeue");
  settings = settings_for("slurm");
  settings.time = "1:00";
  EXPECT_EQ(key_of_refusal(settings), "time") << "shorter than the warning before it";
  settings = settings_for("kubernetes");
  settings.image.clear();
  EXPECT_EQ(key_of_refusal(settings), "image");
  EXPECT_NE(key_of_refusal(settings_for("slurm"), {}), "accepted");
}

TEST(SubmitSettings, VariablesAreAnAllowList) {
  SubmitSettings settings = settings_for("slurm");
  settings.env.names = {"HF_TOKEN", "A=1=2", "EMPTY="};
  const std::vector<TravellingVariable> variables = travelling_variables(settings);
  ASSERT_EQ(variables.size(), 3u);
  EXPECT_FALSE(variables[0].has_value);
  EXPECT_EQ(variables[1].value, "1=2");
  EXPECT_TRUE(variables[2].has_value);
  for (const char* wrong : {"1A=2", "", "=x", "A B=1", "PET_NNODES=3", "CONVOY_JOB_TOKEN=x"}) {
    settings.env.names = {wrong};
    EXPECT_EQ(key_of_refusal(settings), "env") << wrong;
  }
  settings.env.names = {"A=1", "A"};
  EXPECT_EQ(key_of_refusal(settings), "env");
}

TEST(SubmitSettings, VolumesAreClaimAndPath) {
  SubmitSettings settings = settings_for("kubernetes");
  settings.volume.names = {"data:/data", "runs:/runs"};
  ASSERT_EQ(claimed_volumes(settings).size(), 2u);
  EXPECT_EQ(claimed_volumes(settings)[1].claim, "runs");
  for (const char* wrong :
       {"data", "data:relative", ":/x", "Data:/x", "data:/a:ro", "d:/dev/shm"}) {
    settings.volume.names = {wrong};
    EXPECT_EQ(key_of_refusal(settings), "volume") << wrong;
  }
  settings.volume.names = {"a:/x", "b:/x"};
  EXPECT_EQ(key_of_refusal(settings), "volume");
}

TEST(SubmitSettings, TimeLimitsAreSpeltAsSbatchDoes) {
  EXPECT_EQ(time_limit_seconds("30"), 30 * 60);
  EXPECT_EQ(time_limit_seconds("30:15"), 30 * 60 + 15);
  EXPECT_EQ(time_limit_seconds("4:00:10"), 4 * 3600 + 10);
  EXPECT_EQ(time_limit_seconds("2-12"), 60 * 3600);
  EXPECT_EQ(time_limit_seconds("1-0:30"), 86400 + 1800);
  EXPECT_EQ(time_limit_seconds("1-1:01:01"), 86400 + 3661);
  for (const char* wrong : {"", "0", "x", "1:2:3:4", "-5", "1-", "1::2", "99999999999999999999"})
    EXPECT_THROW(time_limit_seconds(wrong), ConfigError) << wrong;
}

}  // namespace
}  // namespace convoy::launch

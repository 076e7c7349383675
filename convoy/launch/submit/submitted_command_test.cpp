// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/submitted_command.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

SubmitSettings settings_of_command(const std::string& engine) {
  SubmitSettings settings;
  settings.engine = engine;
  return settings;
}

bool is_refused(const SubmitSettings& settings, const std::vector<std::string>& command) {
  try {
    refuse_foreign_launcher(settings, command);
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("use `convoy launch` instead of"), std::string::npos)
        << error.sentence();
    return true;
  }
  return false;
}

TEST(SubmittedCommand, ForeignLaunchersAreToldByNameAndModule) {
  EXPECT_EQ(foreign_launcher({"torchrun", "train.py"}), "torchrun");
  EXPECT_EQ(foreign_launcher({"/opt/venv/bin/torchrun"}), "torchrun");
  EXPECT_EQ(foreign_launcher({"python3.11", "-u", "-m", "torch.distributed.run", "x.py"}),
            "torchrun");
  EXPECT_EQ(foreign_launcher({"python", "-m", "accelerate.commands.launch", "x.py"}), "accelerate");
  EXPECT_EQ(foreign_launcher({"deepspeed", "x.py"}), "deepspeed");
  EXPECT_EQ(foreign_launcher({"python", "train.py", "-m", "torch.distributed.run"}), "");
  EXPECT_EQ(foreign_launcher({"python", "-m", "torch.utils.collect_env"}), "");
  EXPECT_EQ(foreign_launcher({"convoy", "launch", "torchrun"}), "");
  EXPECT_EQ(foreign_launcher({"python", "-m"}), "");
}

TEST(SubmittedCommand, TorchrunIsRefusedWhereTheJobWouldTellItToSave) {
  SubmitSettings slurm = settings_of_command("slurm");
  EXPECT_TRUE(is_refused(slurm, {"torchrun", "x.py"}));
  EXPECT_FALSE(is_refused(slurm, {"convoy", "launch", "x.py"}));
  slurm.no_requeue = true;
  EXPECT_TRUE(is_refused(slurm, {"torchrun", "x.py"})) << "the signal still comes";
  slurm.signal_before = 0;
  EXPECT_FALSE(is_refused(slurm, {"torchrun", "x.py"}));
  EXPECT_TRUE(
      is_refused(settings_of_command("mpi"), {"python", "-m", "torch.distributed.run", "x.py"}));
  EXPECT_FALSE(is_refused(settings_of_command("kubernetes"), {"torchrun", "x.py"}));
  EXPECT_EQ(submit_warnings(settings_of_command("kubernetes"), {"torchrun", "x.py"}).size(), 1U);
}

TEST(SubmittedCommand, RanksOfAProgramThatStartsNoneAreSaid) {
  SubmitSettings settings = settings_of_command("slurm");
  settings.nproc_per_node = "8";
  const std::vector<std::string> warnings = submit_warnings(settings, {"python", "train.py"});
  ASSERT_EQ(warnings.size(), 1U);
  EXPECT_NE(warnings[0].find("`python` is started once on each node: --ranks 8"), std::string::npos)
      << warnings[0];
  EXPECT_TRUE(submit_warnings(settings, {"/usr/bin/convoy", "launch", "x"}).empty());
  EXPECT_TRUE(submit_warnings(settings, {"bash", "run.sh"}).empty());
  settings.task_per_rank = true;
  EXPECT_TRUE(submit_warnings(settings, {"python", "train.py"}).empty());
}

TEST(SubmittedCommand, AbsentHostfileIsSaid) {
  SubmitSettings settings = settings_of_command("mpi");
  settings.hostfile = "/nowhere/hosts";
  ASSERT_EQ(submit_warnings(settings, {"true"}).size(), 1U);
  EXPECT_NE(submit_warnings(settings, {"true"})[0].find("/nowhere/hosts"), std::string::npos);
  settings.hostfile = "/etc/passwd";
  EXPECT_TRUE(submit_warnings(settings, {"true"}).empty());
}

}  // namespace
}  // namespace convoy::launch

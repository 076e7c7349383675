// SPDX-License-Identifier: Apache-2.0
//
// Runs `convoy submit` as a user does, with stand-ins for the tools of the job systems.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "convoy/core/base/files.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

class SubmitCommand : public ::testing::Test {
 protected:
  void SetUp() override { fs::create_directory(folder_ / "bin"); }

  void tool(const std::string& name, const std::string& script) {
    testing::write_executable(folder_ / "bin" / name, "#!/bin/bash\n" + script + "\n");
  }

  testing::ScriptEnd submit(const std::string& arguments, const std::string& variables = "") {
    return testing::run_script(
        folder_.path(), fmt::format("PATH=$PWD/bin:/usr/bin:/bin {} {}/convoy submit {}", variables,
                                    std::getenv("CONVOY_BIN_DIR"), arguments));
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }

  testing::TemporaryFolder folder_;
};

TEST_F(SubmitCommand, WritesTheScriptAndSubmitsNothing) {
  tool("sbatch", "touch submitted");
  const testing::ScriptEnd end =
      submit("--engine slurm --nodes 2 -- convoy train 'a b.yaml' 2>/dev/null");
  EXPECT_EQ(end.code, 0);
  EXPECT_TRUE(end.out.starts_with("#!/bin/bash\n#SBATCH ")) << end.out;
  EXPECT_NE(end.out.find("command=(convoy train 'a b.yaml')"), std::string::npos);
  EXPECT_EQ(
      submit("--engine slurm --nodes 2 --output job.sh -- convoy train 'a b.yaml' 2>/dev/null").out,
      "");
  EXPECT_EQ(file("job.sh"), end.out);
  EXPECT_FALSE(fs::exists(folder_ / "submitted"));
}

TEST_F(SubmitCommand, GoHandsTheScriptToSbatchAndPrintsTheJobsId) {
  tool("sbatch", "echo \"$*\" >words; cat >script; ls -d my/logs >folder; echo '4217;cluster'");
  const std::string flags = "--engine slurm --log-dir my/logs --go ";
  const testing::ScriptEnd end = submit(flags + "-- convoy train run.yaml");
  EXPECT_EQ(end.code, 0) << end.out;
  EXPECT_EQ(end.out, "4217\n");
  EXPECT_EQ(file("words"), "--parsable\n");
  EXPECT_EQ(file("folder"), "my/logs\n") << "SLURM makes no folder for the output it was given";
  EXPECT_EQ(file("script"),
            submit("--engine slurm --log-dir my/logs -- convoy train run.yaml").out);
  const testing::ScriptEnd answer = submit(flags + "--name demo --json -- true");
  EXPECT_EQ(nlohmann::json::parse(answer.out),
            (nlohmann::json{{"engine", "slurm"}, {"name", "demo"}, {"job", "4217"}}));
}

TEST_F(SubmitCommand, WhatTheToolSaysIsTheReason) {
  tool("sbatch", "echo 'sbatch: error: invalid partition specified: gpu' >&2; exit 1");
  const testing::ScriptEnd end = submit("--engine slurm --partition gpu --go -- true");
  EXPECT_EQ(end.code, 2);
  EXPECT_NE(end.out.find("invalid partition specified: gpu"), std::string::npos) << end.out;
  const testing::ScriptEnd absent =
      submit("--engine kubernetes --image x --go -- true", "PATH=/nowhere");
  EXPECT_EQ(absent.code, 2);
  EXPECT_NE(absent.out.find("kubectl is not here"), std::string::npos) << absent.out;
}

TEST_F(SubmitCommand, UnderAParentThatIgnoresTheEndOfChildrenTheToolsCodeIsStillSeen) {
  tool("sbatch", "echo 'sbatch: error: no' >&2; exit 1");
  const std::string ignoring = "/usr/bin/env --ignore-signal=CHLD";
  EXPECT_EQ(submit("--engine slurm --go -- true", ignoring).code, 2);
  tool("sbatch", "cat >/dev/null; echo 4217");
  const testing::ScriptEnd end = submit("--engine slurm --go -- true", ignoring);
  EXPECT_EQ(end.code, 0) << end.out;
  EXPECT_EQ(end.out, "4217\n");
}

TEST_F(SubmitCommand, KubectlCreatesAndAManifestFileIsPrivate) {
  tool(
      "kubectl",
      "echo \"$*\" >words; cat >manifest; printf 'secret/demo\\nservice/demo\\njob.batch/demo\\n'");
  const testing::ScriptEnd end =
      submit("--engine kubernetes --name demo --image x --output demo.yaml --go -- true");
  EXPECT_EQ(end.out, "job.batch/demo\n");
  EXPECT_EQ(file("words"), "create -f - -o name\n");
  EXPECT_EQ(file("manifest"), file("demo.yaml"));
  EXPECT_EQ(fs::status(folder_ / "demo.yaml").permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(SubmitCommand, AnMpiJobRunsUnderTheTerminalAndItsCodeIsOurs) {
  tool("mpirun",
       "[ \"$1\" != --version ] || { echo 'mpirun (Open MPI) 4.1.4'; exit; }\n"
       "while [ \"$1\" != bash ]; do shift; done; exec \"$@\"");
  const testing::ScriptEnd end =
      submit("--engine mpi --quiet --go -- bash -c 'echo \"nodes $PET_NNODES\"; exit 16'");
  EXPECT_EQ(end.out, "nodes 1\n");
  EXPECT_EQ(end.code, 16);
}

TEST_F(SubmitCommand, WhatTheFlagsDoNotSuggestIsSaid) {
  const testing::ScriptEnd alone =
      submit("--engine slurm --nproc-per-node 8 -- python train.py 2>&1 >/dev/null");
  EXPECT_EQ(alone.code, 0);
  EXPECT_NE(alone.out.find("`python` is started once on each node"), std::string::npos)
      << alone.out;
  const testing::ScriptEnd hosts =
      submit("--engine mpi --hostfile /nonexist -- convoy launch x 2>&1 >/dev/null");
  EXPECT_EQ(hosts.code, 0);
  EXPECT_NE(hosts.out.find("--hostfile /nonexist: the file does not exist"), std::string::npos)
      << hosts.out;
  const testing::ScriptEnd plain =
      submit("--engine slurm --no-requeue --signal-before 0 --time 10 -- torchrun x.py");
  EXPECT_EQ(plain.code, 0) << plain.out;
  EXPECT_EQ(plain.out.find("--signal"), std::string::npos) << plain.out;
}

TEST_F(SubmitCommand, RefusalsNameTheFlag) {
  for (const auto& [arguments, word] : std::vector<std::pair<std::string, std::string>>{
           {"-- true", "--engine"},
           {"--engine pbs -- true", "slurm"},
           {"--engine slurm", "a command after --"},
           {"--engine mpi --mem 3G -- true", "--mem"},
           {"--engine slurm --nods 3 -- true", "--nodes"},
           {"--engine slurm --nodes 0 -- true", "--nodes"},
           {"--engine kubernetes -- true", "--image"},
           {"--engine slurm --env NOT_SET_X --go -- true", "NOT_SET_X"},
           {"--engine slurm -- torchrun x.py", "convoy launch"},
           {"--engine mpi -- python -m torch.distributed.run x.py", "convoy launch"}}) {
    const testing::ScriptEnd end = submit(arguments);
    EXPECT_EQ(end.code, 2) << arguments;
    EXPECT_NE(end.out.find(word), std::string::npos) << arguments << ": " << end.out;
  }
}

}  // namespace
}  // namespace convoy::apps

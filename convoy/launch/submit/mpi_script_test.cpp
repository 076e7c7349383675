// SPDX-License-Identifier: Apache-2.0
//
// Runs the script in bash with a stand-in for mpirun; tests/mpi runs it with real ones.
#include <gtest/gtest.h>

#include "convoy/core/base/files.h"
#include "convoy/launch/submit/job_text.h"
#include "files/run_script.h"
#include "files/temporary_folder.h"

namespace convoy::launch {
namespace {

SubmitSettings mpi_settings() {
  SubmitSettings settings;
  settings.engine = "mpi";
  settings.nodes = 2;
  return settings;
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_ / "bin");
    // A fake mpirun. It tells its version and the first host, and stores its arguments. Then it
    // runs FAKE_MPIRUN, if that is set, and the task behind the options as rank 1.
    testing::write_executable(
        folder_ / "bin" / "mpirun",
        "#!/bin/bash\ncase $* in\n--version) echo \"$FAKE_VERSION\"; exit ;;\n"
        "*' -np 1 hostname') echo first.host; exit ;;\nesac\n"
        "printf '%s\\0' \"$@\" >mpirun.words\n"
        "[ -z \"$FAKE_MPIRUN\" ] || eval \"$FAKE_MPIRUN\"\n"
        "while [ \"$1\" != bash ]; do shift; done\n"
        "OMPI_COMM_WORLD_RANK=1 exec \"$@\"\n");
    testing::write_executable(
        folder_ / "bin" / "prog",
        "#!/bin/bash\nprintf '%s\\0' \"$@\" >prog.words\nenv -0 >prog.env\n"
        "stat -c %a \"$CONVOY_JOB_TOKEN_FILE\" >token.mode\nexit \"$CODE\"\n");
  }

  testing::ScriptEnd run(const SubmitSettings& settings, const std::vector<std::string>& command,
                         const std::string& variables = "") {
    return testing::run_script(folder_.path(), mpi_script(settings, command),
                               "env PATH=\"$PWD/bin:$PATH\" CODE=0 FAKE_MPIRUN= "
                               "FAKE_VERSION='mpirun (Open MPI) 4.1.4' " +
                                   variables);
  }

  std::string file(const std::string& name) const { return read_file(folder_ / name); }
  // The searches include the zero bytes before and after an entry, so that only whole entries
  // match.
  bool was_word(const std::string& word) const {
    return ('\0' + file("mpirun.words")).find('\0' + word + '\0') != std::string::npos;
  }
  bool had_variable(const std::string& entry) const {
    return ('\0' + file("prog.env")).find('\0' + entry + '\0') != std::string::npos;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(Mpi, OneLauncherPerNodeKnowsItsPlaceAndTheSecret) {
  SubmitSettings settings = mpi_settings();
  settings.nproc_per_node = "8";
  settings.port = 2222;
  settings.hostfile = "my hosts";
  settings.env.names = {"GREETING=it's $HOME\nagain", "HOME"};
  settings.extra.names = {"--mca btl tcp,self"};
  const std::vector<std::string> arguments = {"a b", "it's", "$(touch hacked)", ""};
  std::vector<std::string> command = arguments;
  command.insert(command.begin(), "prog");
  const testing::ScriptEnd end = run(settings, command);
  EXPECT_EQ(end.code, 0) << end.out;
  EXPECT_EQ(file("prog.words"), testing::zero_ended(arguments));
  for (const char* wanted :
       {"PET_NNODES=2", "PET_NPROC_PER_NODE=8", "PET_NODE_RANK=1", "PET_MASTER_ADDR=first.host",
        "PET_MASTER_PORT=2222", "GREETING=it's $HOME\nagain"})
    EXPECT_TRUE(had_variable(wanted)) << wanted;
  for (const char* wanted : {"my hosts", "ppr:1:node", "CONVOY_JOB_TOKEN_FILE", "PET_MASTER_ADDR",
                             "GREETING", "HOME", "--mca", "btl", "tcp,self", "2"})
    EXPECT_TRUE(was_word(wanted)) << wanted;
  EXPECT_EQ(file("token.mode"), "600\n");
  EXPECT_FALSE(std::filesystem::exists(folder_ / "hacked"));
  EXPECT_TRUE(std::filesystem::is_empty(folder_ / "logs")) << "the secret is gone with the job";
}

TEST_F(Mpi, RanksAsTasksMeetAtTheFirstHost) {
  SubmitSettings settings = mpi_settings();
  settings.task_per_rank = true;
  settings.nproc_per_node = "4";
  EXPECT_EQ(run(settings, {"prog"}).code, 0);
  EXPECT_TRUE(was_word("ppr:4:node"));
  EXPECT_TRUE(was_word("8"));
  EXPECT_TRUE(had_variable("MASTER_ADDR=first.host"));
  EXPECT_EQ(file("prog.env").find("PET_"), std::string::npos);
}

TEST_F(Mpi, EachMpiIsSpokenToInItsOwnWords) {
  SubmitSettings settings = mpi_settings();
  settings.env.names = {"HOME"};
  for (const char* version : {"HYDRA build details:", "Intel(R) MPI Library for Linux* OS"}) {
    EXPECT_EQ(run(settings, {"prog"}, std::string("FAKE_VERSION='") + version + "'").code, 0);
    EXPECT_TRUE(was_word("-ppn"));
    EXPECT_TRUE(was_word(
        "PATH,CONVOY_JOB_TOKEN_FILE,PET_NNODES,PET_NPROC_PER_NODE,PET_MASTER_ADDR,PET_MASTER_PORT,"
        "HOME"));
  }
  const testing::ScriptEnd unknown = run(settings, {"prog"}, "FAKE_VERSION='another'");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.out.find("no mpirun of"), std::string::npos);
}

TEST_F(Mpi, CodesArriveAndASavedTaskDoesNotMakeMpirunEndTheOthers) {
  EXPECT_EQ(run(mpi_settings(), {"prog"}, "CODE=16").code, 16);
  // mpirun gets code 0 from a task that ends with 75; the script still ends with 75.
  EXPECT_EQ(run(mpi_settings(), {"prog"}, "CODE=75").code, 75);
  const testing::ScriptEnd task = run(
      mpi_settings(), {"prog"},
      "CODE=75 FAKE_MPIRUN='while [ \"$1\" != bash ]; do shift; done; \"$@\"; echo \"task $?\"; "
      "exit 3'");
  EXPECT_NE(task.out.find("task 0"), std::string::npos);
  EXPECT_EQ(task.code, 3) << "a failure of another task counts more";
}

TEST_F(Mpi, AFirstRequestToStopIsForSavingAndASecondEnds) {
  const testing::ScriptEnd saved =
      run(mpi_settings(), {"prog"},
          "FAKE_MPIRUN='trap \"echo got USR1; exit 0\" USR1; kill "
          "-TERM $PPID; for i in {1..50}; do sleep 0.1; done; exit 1'");
  EXPECT_NE(saved.out.find("got USR1"), std::string::npos);
  EXPECT_EQ(saved.code, 0);
  const testing::ScriptEnd hurried =
      run(mpi_settings(), {"prog"},
          "FAKE_MPIRUN='trap \"echo got USR1; kill -INT $PPID\" USR1; trap \"exit 143\" TERM; "
          "kill -TERM $PPID; for i in {1..50}; do sleep 0.1; done'");
  EXPECT_NE(hurried.out.find("got USR1"), std::string::npos);
  EXPECT_EQ(hurried.code, 143);
}

}  // namespace
}  // namespace convoy::launch

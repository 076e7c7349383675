// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/descendants.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "files/temporary_folder.h"

namespace convoy::processes {
namespace {

// The environment of a process cannot be read during an exec. The process of this test execs itself
// without end.
TEST(KillMarked, FindsAProcessInTheMiddleOfAnExec) {
  const testing::TemporaryFolder folder;
  const std::string script = (folder / "again.sh").string();
  std::ofstream(script) << "exec sh " << script << "\n";
  for (int life = 0; life < 30; ++life) {
    const std::string mark = fmt::format("CONVOY_TEST_MARK={}.{}", ::getpid(), life);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::execlp("env", "env", mark.c_str(), "sh", script.c_str(), nullptr);
      ::_exit(127);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10 + life % 7));
    kill_marked(mark, std::chrono::milliseconds(1'500));
    int status = 0;
    const pid_t reaped = ::waitpid(child, &status, WNOHANG);
    EXPECT_EQ(reaped, child) << "life " << life;
    if (reaped == child) continue;
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
}

}  // namespace
}  // namespace convoy::processes

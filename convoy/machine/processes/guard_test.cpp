// SPDX-License-Identifier: Apache-2.0
//
// Runs a guard on kernels with and without close_range (Linux before 5.9, and seccomp profiles that
// do not know that call).
#include "convoy/machine/processes/guard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/process_descriptor.h"
#include "convoy/machine/processes/child_process.h"
#include "files/refused_calls.h"
#include "files/temporary_folder.h"

namespace convoy::processes {
namespace {

namespace fs = std::filesystem;

constexpr int kNoSeccomp = 77;

// Runs `work` in a child in which `calls` fail with `error` (0: they do not fail). Returns the exit
// status of the child.
int in_child(const std::vector<long>& calls, int error, const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (error != 0 && !testing::refuse_calls(calls, error)) ::_exit(kNoSeccomp);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool comes_true(const std::function<bool()>& condition) {
  for (int turn = 0; turn < 3'000 && !condition(); ++turn)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

class GuardOnAKernel : public ::testing::TestWithParam<int> {
 protected:
  fs::path scratch() const {
    fs::create_directories(folder_ / "scratch");
    return folder_ / "scratch";
  }
  testing::TemporaryFolder folder_;
};

// The scratch folder is gone, so the guard ended by itself: a killed guard does not remove the
// folder.
TEST_P(GuardOnAKernel, EndsByItselfWithItsOwner) {
  const int status = in_child({SYS_close_range}, GetParam(), [&] {
    { const Guard guard(scratch(), "CONVOY_TEST_MARK=none"); }
    return fs::exists(folder_ / "scratch") ? 1 : 0;
  });
  if (status == kNoSeccomp) GTEST_SKIP() << "no seccomp";
  EXPECT_EQ(status, 0);
}

// The killed owner leaves a process that a rank started in a session of its own, and a scratch
// folder. The guard kills the process and removes the folder.
TEST_P(GuardOnAKernel, ClearsUpAfterAKilledOwner) {
  const std::string mark = fmt::format("CONVOY_TEST_MARK={}.{}", ::getpid(), GetParam());
  int line[2];
  ASSERT_EQ(::pipe(line), 0);
  const int status = in_child({SYS_close_range}, GetParam(), [&] {
    const Guard guard(scratch(), mark);
    const pid_t loader = ::fork();
    if (loader == 0) {
      ::setsid();
      ::execlp("env", "env", mark.c_str(), "sleep", "600", nullptr);
      ::_exit(127);
    }
    // The environment of the process has the mark once the process is `sleep`.
    const bool runs = comes_true([&] {
      std::error_code ignored;
      return fs::read_symlink(fmt::format("/proc/{}/exe", loader), ignored).filename() !=
             fs::read_symlink("/proc/self/exe").filename();
    });
    if (!runs || ::write(line[1], &loader, sizeof(loader)) != sizeof(loader)) return 1;
    return ::kill(::getpid(), SIGKILL);
  });
  if (status == kNoSeccomp) GTEST_SKIP() << "no seccomp";
  EXPECT_EQ(status, -1) << "the owner was killed";
  ::close(line[1]);
  pid_t loader = 0;
  ASSERT_EQ(::read(line[0], &loader, sizeof(loader)), static_cast<ssize_t>(sizeof(loader)));
  ::close(line[0]);
  EXPECT_TRUE(comes_true([&] { return !fs::exists(folder_ / "scratch"); }));
  EXPECT_TRUE(comes_true(
      [&] { return ::kill(loader, 0) != 0 || ::waitpid(loader, nullptr, WNOHANG) == loader; }));
}

INSTANTIATE_TEST_SUITE_P(Kernels, GuardOnAKernel, ::testing::Values(0, ENOSYS, EPERM),
                         [](const auto& kernel) {
                           return kernel.param == 0        ? "WithCloseRange"
                                  : kernel.param == ENOSYS ? "BeforeLinux59"
                                                           : "UnderSeccomp";
                         });

// A refusal names the oldest kernel that Convoy supports, because a rank cannot do without these
// calls.
TEST(ProcessDescriptors, ARefusalNamesTheOldestKernel) {
  for (const long call : {SYS_pidfd_open, SYS_pidfd_send_signal}) {
    const int status = in_child({call}, ENOSYS, [] {
      return why_no_process_descriptors().find("is refused (Function not implemented)") ==
             std::string::npos;
    });
    EXPECT_TRUE(status == 0 || status == kNoSeccomp) << status;
  }
  const int status = in_child({SYS_pidfd_open}, ENOSYS, [] {
    sigset_t none;
    ::sigemptyset(&none);
    try {
      ChildStart start;
      start.program = {"/bin/true"};
      start.signals = none;
      start_child(start);
      return 1;
    } catch (const IoError& error) {
      return error.sentence().find("Linux 5.3") == std::string::npos ? 2 : 0;
    }
  });
  EXPECT_TRUE(status == 0 || status == kNoSeccomp) << status;
  EXPECT_EQ(why_no_process_descriptors(), "");
}

}  // namespace
}  // namespace convoy::processes

// SPDX-License-Identifier: Apache-2.0
//
// A disk for logs that is full, failing or missing never stops the job.
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <fstream>
#include <thread>

#include "convoy/launch/logs/log_file.h"
#include "convoy/launch/logs/router_fixture_test.h"
#include "load/slowdown.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;

class LogDisk : public RouterTest {
 protected:
  // Number of warnings among the lines of the console.
  long num_warnings() const {
    const std::vector<std::string> shown = lines(errors());
    return std::count_if(shown.begin(), shown.end(),
                         [](const std::string& line) { return line.starts_with("warning: "); });
  }
};

TEST_F(LogDisk, FullIsOneWarningAndTheConsoleHasTheRest) {
  for (const char* const name : {"stdout.log", "stderr.log"}) {
    for (const int rank : {0, 1}) {
      fs::create_directories(folder_ / fmt::format("attempt_0/{}", rank));
      fs::create_symlink("/dev/full", folder_ / fmt::format("attempt_0/{}/{}", rank, name));
    }
  }
  LogOptions wanted = with_files(2, LogLayout::Torchrun);
  wanted.redirects = StreamSelection::parse("0:3", "-r");
  {
    LogRouter router(wanted);
    for (int line = 0; line < 1'000; ++line)
      for (const int rank : {0, 1}) router.take(rank, kOut, fmt::format("line {}\n", line));
  }
  EXPECT_EQ(num_warnings(), 1) << errors();
  EXPECT_NE(
      errors().find((folder_ / "attempt_0/0/stdout.log: ").string() + "No space left on device"),
      std::string::npos)
      << errors();
  // Lines that were meant only for the file are shown on the console, since they would be lost
  // otherwise.
  EXPECT_TRUE(output().ends_with("[ranks 0-1] line 999\n"));
}

TEST_F(LogDisk, AFolderThatCanNotBeMadeIsOneWarning) {
  std::ofstream(folder_ / "file") << "x";
  for (const LogLayout layout : {LogLayout::Convoy, LogLayout::Torchrun}) {
    LogOptions wanted = with_files(3, layout);
    wanted.folder = folder_ / "file" / "logs";
    wanted.redirects = StreamSelection::parse("3", "-r");
    wanted.output_filters = {"x"};
    const long before = num_warnings();
    LogRouter router(wanted);
    EXPECT_EQ(num_warnings(), before + 1) << errors();
    for (int rank = 0; rank < 3; ++rank) {
      router.take(rank, kOut, "shown\n");
      EXPECT_EQ(router.file(rank), fs::path());
    }
    router.note(0, "x");
    EXPECT_EQ(num_warnings(), before + 1) << errors();
  }
  EXPECT_EQ(output(), "[ranks 0-2] shown\n[ranks 0-2] shown\n");
}

TEST_F(LogDisk, AFolderWithoutPermissionIsAWarning) {
  fs::create_directories(folder_ / "attempt_0");
  const pid_t child = ::fork();
  if (child == 0) {
    // File permissions do not restrict root, so root becomes another user.
    const bool changed = ::geteuid() != 0 || (::chown(folder_.c_str(), 65'534, 65'534) == 0 &&
                                              ::setresuid(65'534, 65'534, 65'534) == 0);
    fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
    {
      LogRouter router(with_files(1, LogLayout::Convoy));
      router.take(0, kOut, "shown\n");
    }
    ::_exit(changed ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "another user cannot be taken on";
  EXPECT_EQ(status, 0);
  EXPECT_NE(errors().find("rank-00.log: Permission denied"), std::string::npos) << errors();
  EXPECT_EQ(output(), "[rank 0] shown\n");
}

TEST_F(LogDisk, ASmallFileSystemRunsFull) {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, "") != 0 ||
        ::mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=64k") != 0)
      ::_exit(3);
    LogOptions wanted = with_files(1, LogLayout::Convoy);
    wanted.redirects = StreamSelection::parse("3", "-r");
    {
      LogRouter router(wanted);
      for (int line = 0; line < 2'000; ++line) router.take(0, kOut, fmt::format("{:099}\n", line));
    }
    // Every line is in the file or on the console; one line may begin in the file and end on the
    // console.
    const std::string stored = read_file(folder_ / "rank-00.log");
    const std::string shown = output();
    const bool whole = stored.size() >= 32'768 && stored.starts_with(fmt::format("{:099}\n", 0)) &&
                       stored.size() / 100 * 109 + shown.size() >= 2'000 * 109 &&
                       shown.ends_with(fmt::format("[rank 0] {:099}\n", 1'999));
    ::_exit(whole ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 3) GTEST_SKIP() << "no file system can be mounted here";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(num_warnings(), 1) << errors();
}

TEST_F(LogDisk, StoringGoesOnWhenThereIsRoomAgain) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  LogFile file(folder_ / "log", FileStart::Append, std::chrono::milliseconds(0));
  EXPECT_TRUE(file.write("first\n"));
  rlimit small = before;
  small.rlim_cur = 8;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const bool stored = file.write("second\n");
  const bool stored_later = file.write("third\n");
  const int failure = file.failure();
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_DFL);
  EXPECT_FALSE(stored);
  EXPECT_FALSE(stored_later);
  EXPECT_EQ(failure, EFBIG);
  EXPECT_TRUE(file.write("fourth\n"));
  EXPECT_EQ(file.failure(), 0);
  EXPECT_EQ(this->file("log"),
            "first\nse\n[convoy: 11 bytes are missing here: File too large]\nfourth\n");
}

TEST_F(LogDisk, AFailingFileIsNotTriedAgainAtOnce) {
  fs::create_symlink("/dev/full", folder_ / "log");
  LogFile file(folder_ / "log", FileStart::Append, std::chrono::seconds(10));
  EXPECT_FALSE(file.write("x"));
  fs::remove(folder_ / "log");
  const auto begin = LogFile::Clock::now();
  for (int turn = 0; turn < 100'000; ++turn) EXPECT_FALSE(file.write("x"));
  EXPECT_LT(LogFile::Clock::now() - begin, testing::within(1));
  EXPECT_EQ(file.failure(), ENOSPC);
}

TEST_F(LogDisk, ARedirectedStreamReturnsToItsFile) {
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  LogOptions wanted = with_files(1, LogLayout::Torchrun);
  wanted.redirects = StreamSelection::parse("3", "-r");
  wanted.file_retry_wait = std::chrono::milliseconds(0);
  Pipe pipe = make_pipe();  // RLIMIT_FSIZE does not limit pipes
  wanted.console_output = wanted.console_errors = pipe.write_end.get();
  LogRouter router(wanted);
  router.take(0, kErr, "stored\n");
  rlimit small = before;
  small.rlim_cur = 7;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  router.take(0, kErr, "shown\nbegun");
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, SIG_DFL);
  router.take(0, kErr, " again\n");
  EXPECT_EQ(file("attempt_0/0/stderr.log"),
            "stored\n\n[convoy: 11 bytes are missing here: File too large]\n again\n");
  char bytes[1024];
  const ssize_t size = ::read(pipe.read_end.get(), bytes, sizeof(bytes));
  const std::vector<std::string> shown =
      lines(std::string(bytes, static_cast<size_t>(std::max<ssize_t>(size, 0))));
  ASSERT_EQ(shown.size(), 3U);
  EXPECT_TRUE(shown[0].starts_with("warning: ")) << shown[0];
  EXPECT_EQ(shown[1], "[rank 0] shown");
  EXPECT_EQ(shown[2], "[rank 0] begun");
}

}  // namespace
}  // namespace convoy::launch

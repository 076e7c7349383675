// SPDX-License-Identifier: Apache-2.0
//
// Tests consoles that are slow, stopped, shared, or gone.
#include "convoy/launch/logs/console_queue.h"

#include <fmt/format.h>
#include <poll.h>

#include <thread>

#include "convoy/launch/logs/router_fixture_test.h"
#include "load/slowdown.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;

class Consoles : public RouterTest {
 protected:
  static std::string read_to_end(int descriptor) {
    std::string text;
    char bytes[16 << 10];
    for (ssize_t size; (size = ::read(descriptor, bytes, sizeof(bytes))) > 0;)
      text.append(bytes, static_cast<size_t>(size));
    return text;
  }
  // Reads the bytes that are available now.
  static std::string read_some(int descriptor) {
    char bytes[16 << 10];
    pollfd watched{descriptor, POLLIN, 0};
    if (::poll(&watched, 1, 0) <= 0) return {};
    const ssize_t size = ::read(descriptor, bytes, sizeof(bytes));
    return {bytes, size > 0 ? static_cast<size_t>(size) : 0};
  }
};

TEST_F(Consoles, AStoppedConsoleHoldsTheRanksUpAndLosesNothing) {
  Pipe pipe = make_pipe();
  LogOptions wanted = options(2);
  wanted.console_output = pipe.write_end.get();
  std::string sent;
  {
    LogRouter router(wanted);
    router.finish(1);
    const auto begin = LogRouter::Clock::now();
    int line = 0;
    for (; line < 1'000'000 && router.accepts(0, kOut); ++line) {
      const std::string text = fmt::format("line {} {}\n", line, std::string(100, 'x'));
      sent += "[rank 0] " + text;
      router.take(0, kOut, text);
    }
    EXPECT_LT(line, 30'000);  // 1 MiB in the queue, and the pipe's buffer
    EXPECT_LT(LogRouter::Clock::now() - begin, testing::within(5));
    EXPECT_TRUE(router.accepts(0, kErr));  // standard error goes to another console
    EXPECT_EQ(router.waiting_consoles()[1], -1);
    ASSERT_GE(router.waiting_consoles()[0], 0);
    // Other processes share the pipe, so its flags are left alone.
    EXPECT_EQ(::fcntl(pipe.write_end.get(), F_GETFL) & O_NONBLOCK, 0);
    std::string got;
    while (router.waiting_consoles()[0] >= 0) {
      got += read_some(pipe.read_end.get());
      router.handle_deadline();
    }
    EXPECT_TRUE(router.accepts(0, kOut));
    while (got.size() < sent.size()) got += read_some(pipe.read_end.get());
    EXPECT_EQ(got, sent);
  }
}

TEST_F(Consoles, RanksThatAreToEndAreNotHeldUp) {
  Pipe pipe = make_pipe();
  LogOptions wanted = with_files(1, LogLayout::Torchrun);
  wanted.console_output = wanted.console_errors = pipe.write_end.get();
  LogRouter router(wanted);
  const std::string chunk(50'000, 'x');
  while (router.accepts(0, kOut)) router.take(0, kOut, chunk + "\n");
  router.hurry();
  for (int turn = 0; turn < 1'000; ++turn) {
    ASSERT_TRUE(router.accepts(0, kOut));
    router.take(0, kOut, chunk + "\n");
  }
  const std::string stored = file("attempt_0/0/stdout.log");
  EXPECT_GE(stored.size(), 1'000 * chunk.size());
  std::string got;
  while (router.waiting_consoles()[0] >= 0) {
    got += read_some(pipe.read_end.get());
    router.handle_deadline();
  }
  EXPECT_LT(got.size(), LogRouter::kMostHurriedBytes + (2 << 20));
  router.close();
  for (std::string more; !(more = read_some(pipe.read_end.get())).empty();) got += more;
  EXPECT_TRUE(got.ends_with("bytes of output were not shown, the console did not take them\n"))
      << got.substr(got.size() - 200);
}

TEST_F(Consoles, ClosingWaitsForASlowReader) {
  Pipe pipe = make_pipe();
  LogOptions wanted = options(1);
  wanted.console_output = wanted.console_errors = pipe.write_end.get();
  std::string got;
  std::thread reader([&] {
    std::this_thread::sleep_for(milliseconds(50));
    got = read_to_end(pipe.read_end.get());
  });
  {
    LogRouter router(wanted);
    router.take(0, kErr, std::string(500'000, 'x') + "\n");
    router.close();
    EXPECT_EQ(router.waiting_consoles()[0], -1);
  }
  pipe.write_end.reset();
  reader.join();
  EXPECT_EQ(got, "[rank 0] " + std::string(500'000, 'x') + "\n");
}

TEST_F(Consoles, ClosingCanBeInterrupted) {
  Pipe stuck = make_pipe();
  Pipe signal = make_pipe();
  LogOptions wanted = options(1);
  wanted.console_output = stuck.write_end.get();
  LogRouter router(wanted);
  router.take(0, kOut, std::string(500'000, 'x') + "\n");
  ASSERT_EQ(::write(signal.write_end.get(), "!", 1), 1);
  router.close(signal.read_end.get());
  EXPECT_GE(router.waiting_consoles()[0], 0);
}

TEST_F(Consoles, ClosingGivesUpOnAStoppedConsoleButNotOnASlowOne) {
  Pipe pipe = make_pipe();
  LogOptions wanted = options(1);
  wanted.console_output = pipe.write_end.get();
  LogRouter router(wanted);
  router.take(0, kOut, std::string(500'000, 'x') + "\n");
  const auto begin = LogRouter::Clock::now();
  router.close(-1, milliseconds(20));
  EXPECT_GE(router.waiting_consoles()[0], 0);
  EXPECT_LT(LogRouter::Clock::now() - begin, testing::within(1));
  const std::jthread reader([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      read_some(pipe.read_end.get());
      std::this_thread::sleep_for(milliseconds(10));
    }
  });
  // The reader needs about a third of a second for all bytes, less than the limit of 2 s.
  router.close(-1, milliseconds(2'000));
  EXPECT_EQ(router.waiting_consoles()[0], -1);
}

TEST_F(Consoles, LinesOfTwoWritersOnOnePipeAreNotTorn) {
  Pipe pipe = make_pipe();
  std::string got;
  std::thread reader([&] { got = read_to_end(pipe.read_end.get()); });
  constexpr int kLines = 2'000;
  const auto write_lines = [&](char letter) {
    LogOptions wanted = options(1);
    wanted.console_output = pipe.write_end.get();
    LogRouter router(wanted);
    std::string chunk;
    for (int line = 0; line < kLines; ++line) {
      chunk += std::string(static_cast<size_t>(line) % 3'000, letter) + "\n";
      if (line % 7 != 0) continue;
      router.take(0, kOut, chunk);
      chunk.clear();
    }
    router.take(0, kOut, chunk);
    router.close();
  };
  std::thread one(write_lines, 'a');
  std::thread other(write_lines, 'b');
  one.join();
  other.join();
  pipe.write_end.reset();
  reader.join();
  const std::vector<std::string> shown = lines(got);
  EXPECT_EQ(shown.size(), 2U * kLines);
  for (const std::string& line : shown) {
    ASSERT_TRUE(line.starts_with("[rank 0] ")) << line;
    EXPECT_EQ(line.find_first_not_of(line.back(), 9), std::string::npos) << line;
  }
}

TEST_F(Consoles, OneThatIsGoneIsOneWarningAndFilesGoOn) {
  Pipe pipe = make_pipe();
  pipe.read_end.reset();
  LogOptions wanted = with_files(2, LogLayout::Torchrun);
  wanted.console_output = pipe.write_end.get();
  {
    LogRouter router(wanted);
    for (int line = 0; line < 1'000; ++line) router.take(line % 2, kOut, "some line\n");
    EXPECT_TRUE(router.accepts(0, kOut));
    router.take(0, kErr, "still here\n");
  }
  EXPECT_EQ(file("attempt_0/0/stdout.log").size(), 500 * std::string("some line\n").size());
  const std::vector<std::string> shown = lines(errors());
  ASSERT_EQ(shown.size(), 2U) << errors();
  EXPECT_EQ(shown[0], "warning: standard output: Broken pipe; the job goes on without it");
  EXPECT_EQ(shown[1], "[rank 0] still here");
}

TEST_F(Consoles, BothGoneIsNoTrouble) {
  Pipe pipe = make_pipe();
  pipe.read_end.reset();
  LogOptions wanted = with_files(1, LogLayout::Convoy);
  wanted.console_output = wanted.console_errors = pipe.write_end.get();
  LogRouter router(wanted);
  for (int line = 0; line < 100; ++line) router.take(0, kErr, "x\n");
  router.close();
  EXPECT_EQ(file("rank-00.log").size(), 200U);
}

TEST_F(Consoles, AFileOnAFullDiskGetsWhatFitsLater) {
  Descriptor full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  LogOptions wanted = options(1);
  wanted.console_output = full.get();
  LogRouter router(wanted);
  router.take(0, kOut, "lost\n");
  ASSERT_EQ(::dup2(output_.get(), full.get()), full.get());
  router.take(0, kOut, "stored\n");
  EXPECT_EQ(output(), "[rank 0] stored\n");
  EXPECT_EQ(errors(),
            "warning: standard output: No space left on device; the job goes on without it\n");
}

TEST_F(Consoles, ColorsThePrefixOnATerminalOnly) {
  const Descriptor terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal.open() || ::grantpt(terminal.get()) != 0 || ::unlockpt(terminal.get()) != 0)
    GTEST_SKIP() << "no pseudo terminal";
  const Descriptor side(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(side.open());
  LogOptions wanted = options(1);
  wanted.console_output = side.get();
  for (const bool color : {true, false}) {
    wanted.color = color;
    LogRouter router(wanted);
    router.take(0, kOut, "text\n");
    router.take(0, kErr, "text\n");
    EXPECT_EQ(read_some(terminal.get()),
              color ? "\x1b[36m[rank 0]\x1b[0m text\r\n" : "[rank 0] text\r\n");
  }
  EXPECT_EQ(errors(), "[rank 0] text\n[rank 0] text\n");
  // A terminal that nobody reads, as after Ctrl-S, stops the ranks' output and not the launcher.
  LogRouter router(wanted);
  for (int line = 0; line < 1'000'000 && router.accepts(0, kOut); ++line)
    router.take(0, kOut, std::string(100, 'x') + "\n");
  EXPECT_FALSE(router.accepts(0, kOut));
  {
    const std::jthread reader([&](const std::stop_token& stop) {
      while (!stop.stop_requested())
        if (read_some(terminal.get()).empty()) std::this_thread::sleep_for(milliseconds(1));
    });
    router.close();
  }
  EXPECT_EQ(router.waiting_consoles()[0], -1);
}

TEST_F(Consoles, BothStreamsOnOneKeepTheirOrder) {
  LogOptions wanted = options(1);
  wanted.console_errors = wanted.console_output;
  LogRouter router(wanted);
  std::string expected;
  for (int line = 0; line < 10; ++line) {
    router.take(0, line % 2 == 0 ? kOut : kErr, fmt::format("{}\n", line));
    expected += fmt::format("[rank 0] {}\n", line);
  }
  EXPECT_EQ(output(), expected);
}

}  // namespace
}  // namespace convoy::launch

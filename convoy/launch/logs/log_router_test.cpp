// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/log_router.h"

#include <fmt/format.h>

#include <random>
#include <thread>

#include "convoy/launch/logs/router_fixture_test.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;

class Router : public RouterTest {};

TEST_F(Router, LeadsLinesByHostGlobalRankAndTime) {
  LogOptions wanted = options(2);
  wanted.prefix = LinePrefix::HostRank;
  wanted.host = "node7";
  wanted.timestamps = true;
  wanted.first_global_rank = 10;
  {
    LogRouter router(wanted);
    router.take(1, kOut, "hello \x1b[31mworld\x1b[0m \xe2\x82\xac\n");
  }
  const std::string line = output();
  ASSERT_TRUE(line.starts_with("[node7 11] ")) << line;
  const std::string time = line.substr(11, 12);
  for (size_t at = 0; at < time.size(); ++at) {
    const char* const separators = "--:--:--.---";
    if (separators[at] == '-')
      EXPECT_TRUE(std::isdigit(static_cast<unsigned char>(time[at]))) << time;
    else
      EXPECT_EQ(time[at], separators[at]) << time;
  }
  EXPECT_EQ(line.substr(23), " hello \x1b[31mworld\x1b[0m \xe2\x82\xac\n");
  EXPECT_EQ(errors(), "");
}

TEST_F(Router, StreamsStayApartAndLinesWhole) {
  LogRouter router(options(1));
  router.take(0, kOut, "half ");
  router.take(0, kErr, "error\nunfin");
  EXPECT_EQ(output(), "");
  router.take(0, kOut, "line\n");
  router.take(0, kErr, "ished");
  router.finish(0);
  EXPECT_EQ(output(), "[rank 0] half line\n");
  EXPECT_EQ(errors(), "[rank 0] error\n[rank 0] unfinished\n");
}

TEST_F(Router, TorchrunLayoutKeepsBytesAsWritten) {
  LogOptions wanted = with_files(11, LogLayout::Torchrun);
  wanted.attempt = 2;
  wanted.first_global_rank = 100;
  std::filesystem::create_directories(folder_ / "attempt_2/10");
  write_file_atomic(folder_ / "attempt_2/10/stdout.log", "of an earlier one\n");
  const std::string bytes("a\r\nbar 1\rbar 2\0\xff no end", 23);
  LogRouter router(wanted);
  EXPECT_EQ(router.file(10), folder_ / "attempt_2/10/stdout.log");
  router.take(10, kOut, bytes.substr(0, 6));
  router.take(10, kErr, "oops\n");
  router.take(10, kOut, bytes.substr(6));
  router.finish(10);
  router.note(10, "not by the rank");
  EXPECT_EQ(file("attempt_2/10/stdout.log"), bytes);
  EXPECT_EQ(file("attempt_2/10/stderr.log"), "oops\n");
  EXPECT_EQ(file("attempt_2/3/stderr.log"), "");
  EXPECT_EQ(router.file(10), folder_ / "attempt_2/10/stderr.log");
}

TEST_F(Router, ConvoyLayoutKeepsWholeLinesOfBothStreams) {
  LogOptions wanted = with_files(2, LogLayout::Convoy);
  wanted.first_global_rank = 8;
  for (int run = 0; run < 2; ++run) {
    LogRouter router(wanted);
    router.take(1, kOut, "half");
    router.take(1, kErr, "10%\r20%\r");
    router.take(1, kErr, "30%\nerror\n");
    router.take(1, kOut, " line\nlast");
    router.finish(1);
    router.note(1, "why it ended");
    EXPECT_EQ(router.file(1), folder_ / "rank-09.log");
  }
  const std::string once = "30%\nerror\nhalf line\nlast\nwhy it ended\n";
  EXPECT_EQ(file("rank-09.log"), once + once);
}

TEST_F(Router, ConvoyLayoutStoresLongUnfinishedLines) {
  const std::string longest(1'000'000, 'x');
  {
    LogRouter router(with_files(1, LogLayout::Convoy));
    for (size_t at = 0; at < longest.size(); at += 10'000)
      router.take(0, kOut, std::string_view(longest).substr(at, 10'000));
    // A progress bar that is redrawn without end takes no room in the file.
    for (int turn = 0; turn < 100'000; ++turn)
      router.take(0, kErr, "\rbar " + std::to_string(turn));
    router.take(0, kOut, "\n");
    router.finish(0);
  }
  EXPECT_EQ(file("rank-00.log"), longest + "\nbar 99999\n");
}

TEST_F(Router, RedirectsAndTeeDecideWhereAStreamGoes) {
  for (const bool every_stream : {false, true}) {
    LogOptions wanted = with_files(4, LogLayout::Torchrun);
    wanted.attempt = every_stream ? 1 : 0;
    wanted.redirects = StreamSelection::parse("1:3,2:1,3:3", "-r");
    wanted.tee = StreamSelection::parse("3:2", "-t");
    wanted.file_for_every_stream = every_stream;
    std::string shown;
    {
      LogRouter router(wanted);
      for (int rank = 0; rank < 4; ++rank) {
        router.take(rank, kOut, fmt::format("out {}\n", rank));
        router.take(rank, kErr, fmt::format("err {}\n", rank));
      }
    }
    const std::string attempt = fmt::format("attempt_{}/", wanted.attempt);
    EXPECT_TRUE(exists(attempt + "0"));  // the folder for error files
    EXPECT_EQ(exists(attempt + "0/stdout.log"), every_stream);
    EXPECT_EQ(exists(attempt + "2/stderr.log"), every_stream);
    EXPECT_EQ(file(attempt + "1/stdout.log"), "out 1\n");
    EXPECT_EQ(file(attempt + "1/stderr.log"), "err 1\n");
    EXPECT_EQ(file(attempt + "2/stdout.log"), "out 2\n");
    EXPECT_EQ(file(attempt + "3/stdout.log"), "out 3\n");
    EXPECT_EQ(file(attempt + "3/stderr.log"), "err 3\n");
  }
  const std::string once_output = "[rank 0] out 0\n";
  const std::string once_errors = "[rank 0] err 0\n[rank 2] err 2\n[rank 3] err 3\n";
  EXPECT_EQ(output(), once_output + once_output);
  EXPECT_EQ(errors(), once_errors + once_errors);
}

TEST_F(Router, RanksFilterCountsForTheConsoleOnly) {
  LogOptions wanted = with_files(3, LogLayout::Torchrun);
  wanted.shown_local_ranks = {0, 2};
  {
    LogRouter router(wanted);
    for (int rank = 0; rank < 3; ++rank) router.take(rank, kOut, fmt::format("out {}\n", rank));
  }
  EXPECT_EQ(output(), "[rank 0] out 0\n[rank 2] out 2\n");
  EXPECT_EQ(file("attempt_0/1/stdout.log"), "out 1\n");
}

TEST_F(Router, MatchingLinesAreCopied) {
  LogOptions wanted = with_files(4, LogLayout::Torchrun);
  wanted.redirects = StreamSelection::parse("3:3", "-r");
  wanted.shown_local_ranks = {0, 1, 3};
  wanted.output_filters = {"apple", "a,b"};
  wanted.errors_filters = {"apple"};
  {
    LogRouter router(wanted);
    for (int rank = 0; rank < 4; ++rank) {
      router.take(rank, kOut, fmt::format("one apple\npear {}\nap", rank));
      router.take(rank, kOut, fmt::format("ple\na,b {}", rank));
      router.finish(rank);
    }
  }
  std::string expected;
  for (int rank = 0; rank < 2; ++rank)
    expected += fmt::format("[rank {0}] one apple\n[rank {0}] apple\n[rank {0}] a,b {0}\n", rank);
  EXPECT_EQ(file("attempt_0/filtered_stdout.log"), expected);
  EXPECT_EQ(file("attempt_0/filtered_stderr.log"), "");
}

TEST_F(Router, TemplateReplacesThePrefix) {
  LogOptions wanted = options(2);
  wanted.prefix_template = "[${role_name}${local_rank}|${rank}]:";
  wanted.first_global_rank = 4;
  {
    LogRouter router(wanted);
    for (const int rank : {0, 1}) router.take(rank, kOut, "same\n");
  }
  EXPECT_EQ(output(), "[default0|4]:same\n[default1|5]:same\n");
}

TEST_F(Router, IdenticalLinesOfManyRanksBecomeOne) {
  LogOptions wanted = options(300);
  wanted.prefix = LinePrefix::HostRank;
  wanted.host = "h";
  LogRouter router(wanted);
  for (int rank = 0; rank < 300; ++rank) router.take(rank, kOut, "ready\n");
  EXPECT_EQ(output(), "[h 0-299] ready\n");
  EXPECT_EQ(router.next_deadline(), std::nullopt);
  for (const int rank : {7, 0, 1, 2, 3}) router.take(rank, kOut, "some\n");
  router.take(9, kOut, "other\n");
  router.close();
  EXPECT_EQ(output(), "[h 0-299] ready\n[h 0-3,7] some\n[h 9] other\n");
}

TEST_F(Router, ALoneLineIsShownWithinTheWindow) {
  LogRouter router(options(2));
  const auto begin = LogRouter::Clock::now();
  router.take(0, kOut, "alone\n");
  ASSERT_TRUE(router.next_deadline());
  EXPECT_LE(*router.next_deadline() - begin, milliseconds(110));
  std::this_thread::sleep_until(*router.next_deadline());
  router.handle_deadline();
  EXPECT_EQ(output(), "[rank 0] alone\n");
  // The line of a rank is shown at once if all other ranks have ended.
  router.finish(1);
  router.take(0, kOut, "next\n");
  EXPECT_EQ(output(), "[rank 0] alone\n[rank 0] next\n");
}

TEST_F(Router, RanksThatEndAtOnceAreFoldedToo) {
  LogRouter router(options(3));
  for (int rank = 0; rank < 3; ++rank) {
    router.take(rank, kErr, "same\n");
    router.finish(rank);
  }
  EXPECT_EQ(errors(), "[ranks 0-2] same\n");
}

TEST_F(Router, WithoutFoldingLinesComeAtOnce) {
  LogOptions wanted = options(2);
  wanted.fold = false;
  LogRouter router(wanted);
  for (const int rank : {0, 1}) router.take(rank, kOut, "same\n");
  EXPECT_EQ(output(), "[rank 0] same\n[rank 1] same\n");
}

TEST_F(Router, ProgressBarsAreShownNowAndThen) {
  LogOptions wanted = with_files(1, LogLayout::Torchrun);
  wanted.redraw_interval = milliseconds(30);
  LogRouter router(wanted);
  std::string bytes;
  const auto draw = [&](const std::string& piece) {
    bytes += piece;
    router.take(0, kErr, piece);
  };
  for (int percent = 0; percent < 50; ++percent) draw(fmt::format("\r{}%", percent));
  EXPECT_EQ(errors(), "");
  ASSERT_TRUE(router.next_deadline());
  std::this_thread::sleep_until(*router.next_deadline());
  router.handle_deadline();
  EXPECT_EQ(errors(), "[rank 0] 49%\n");
  EXPECT_EQ(router.next_deadline(), std::nullopt);  // nothing was drawn since
  draw("\r60%\r100%");
  std::this_thread::sleep_until(*router.next_deadline());
  router.handle_deadline();
  draw("\n");  // ends a line that is shown already
  draw("50%\r51%\nnext\n");
  EXPECT_EQ(errors(), "[rank 0] 49%\n[rank 0] 100%\n[rank 0] 51%\n[rank 0] next\n");
  EXPECT_EQ(file("attempt_0/0/stderr.log"), bytes);
}

TEST_F(Router, RankZeroMayDrawItself) {
  LogOptions wanted = with_files(2, LogLayout::Convoy);
  wanted.console = Console::RankZeroPlain;
  {
    LogRouter router(wanted);
    router.take(0, kErr, "\r10%");
    EXPECT_EQ(errors(), "\r10%");
    router.take(1, kErr, "mine\n");
    router.take(0, kErr, "\r20%");
    router.finish(0);
  }
  EXPECT_EQ(errors(), "\r10%\n[rank 1] mine\n\r20%\n");
  EXPECT_EQ(file("rank-00.log"), "20%\n");
}

// Sleeps until the deadline of the unfinished text and handles it.
void wait_for_deadline(LogRouter& router) {
  ASSERT_TRUE(router.next_deadline());
  std::this_thread::sleep_until(*router.next_deadline());
  router.handle_deadline();
}

LogOptions prompting(LogOptions wanted) {
  wanted.prompting_local_rank = 0;
  wanted.prompt_wait = wanted.fold_window = milliseconds(200);
  return wanted;
}

TEST_F(Router, PromptOfTheRankThatReadsIsShownBeforeItsLineEnds) {
  LogRouter router(prompting(options(2)));
  router.take(0, kOut, "welcome\nname? ");
  EXPECT_EQ(output(), "");
  wait_for_deadline(router);
  if (router.next_deadline()) wait_for_deadline(router);
  EXPECT_EQ(output(), "[rank 0] welcome\n[rank 0] name? ");
  router.take(0, kOut, "hello Ada\nnext\n");
  router.finish(0);
  router.close();
  EXPECT_EQ(output(), "[rank 0] welcome\n[rank 0] name? hello Ada\n[rank 0] next\n");
}

TEST_F(Router, LinesOfOthersGoBelowAPromptAndItsRestFollows) {
  LogOptions wanted = prompting(options(2));
  wanted.fold = false;
  LogRouter router(wanted);
  router.take(0, kOut, "(Pdb) ");
  wait_for_deadline(router);
  router.take(1, kOut, "half of a ");
  EXPECT_EQ(router.next_deadline(), std::nullopt) << "only one rank prompts";
  router.take(1, kOut, "line\n");
  router.take(0, kOut, "5\n");
  EXPECT_EQ(output(), "[rank 0] (Pdb) \n[rank 1] half of a line\n[rank 0] 5\n");
  router.take(0, kOut, "ends here");
  wait_for_deadline(router);
  router.take(1, kOut, "mine\n");
  router.take(0, kOut, "\n");  // ends a line that is shown already
  router.take(0, kOut, "last\n");
  EXPECT_EQ(output(),
            "[rank 0] (Pdb) \n[rank 1] half of a line\n[rank 0] 5\n[rank 0] ends here\n[rank 1] "
            "mine\n[rank 0] last\n");
}

TEST_F(Router, LinesOfTheRankThatReadsAreFoldedUnlessAPartIsShown) {
  LogRouter router(prompting(options(3)));
  for (const int rank : {0, 1, 2}) router.take(rank, kOut, "loading");
  for (const int rank : {0, 1, 2}) router.take(rank, kOut, " done\n");
  EXPECT_EQ(output(), "[ranks 0-2] loading done\n");
  wait_for_deadline(router);  // a deadline of a line that has ended
  router.take(0, kOut, "again");
  wait_for_deadline(router);
  for (const int rank : {1, 2, 0}) router.take(rank, kOut, rank == 0 ? "\n" : "again\n");
  router.close();
  EXPECT_EQ(output(), "[ranks 0-2] loading done\n[rank 0] again\n[ranks 1-2] again\n");
}

TEST_F(Router, WhoWritesToTheConsoleBesideARankThatPromptsBeginsALine) {
  LogRouter router(prompting(options(1)));
  router.end_open_lines();
  EXPECT_EQ(output(), "");
  router.take(0, kOut, "name? ");
  wait_for_deadline(router);
  router.end_open_lines();
  EXPECT_EQ(output(), "[rank 0] name? \n");
  router.take(0, kOut, "Ada\n");
  EXPECT_EQ(output(), "[rank 0] name? \n[rank 0] Ada\n");
}

TEST_F(Router, SilentShowsNothing) {
  LogOptions wanted = with_files(1, LogLayout::Convoy);
  wanted.console = Console::Silent;
  LogRouter router(wanted);
  router.take(0, kOut, "x\n");
  EXPECT_EQ(output(), "");
  EXPECT_EQ(file("rank-00.log"), "x\n");
}

TEST_F(Router, LongLinesReachTheFileWhole) {
  std::string longest;
  while (longest.size() < 300'000) longest += "\xe2\x82\xac";
  LogOptions wanted = with_files(1, LogLayout::Torchrun);
  LogRouter router(wanted);
  for (size_t at = 0; at < longest.size(); at += 65'536)
    router.take(0, kOut, std::string_view(longest).substr(at, 65'536));
  router.take(0, kOut, "\nshort\n");
  EXPECT_EQ(file("attempt_0/0/stdout.log"), longest + "\nshort\n");
  std::string joined;
  const std::vector<std::string> shown = lines(output());
  for (const std::string& line : shown) {
    EXPECT_TRUE(line.starts_with("[rank 0] ")) << line.substr(0, 20);
    joined += line.substr(9);
  }
  EXPECT_EQ(joined, longest + "short");
  EXPECT_GT(shown.size(), 4U);
}

TEST_F(Router, RemembersTheLastLinesOfEveryRank) {
  LogOptions wanted = options(2);
  wanted.console = Console::Silent;
  LogRouter router(wanted);
  for (int line = 0; line < 50; ++line) router.take(1, kOut, fmt::format("line {}\n", line));
  router.take(1, kErr, "Segmentation fa");
  EXPECT_TRUE(router.last_lines(1).starts_with("line 31\n")) << router.last_lines(1);
  EXPECT_TRUE(router.last_lines(1).ends_with("line 49\nSegmentation fa")) << router.last_lines(1);
  EXPECT_EQ(router.last_lines(0), "");
  EXPECT_EQ(router.file(1), std::filesystem::path());
}

// The files hold the bytes that were written, and the console holds the lines of each rank,
// whatever the pieces and their order.
TEST_F(Router, RandomOutputArrivesWhole) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const int ranks = 1 + static_cast<int>(random() % 12);
    LogOptions wanted = with_files(ranks, LogLayout::Torchrun);
    wanted.attempt = static_cast<int>(seed);
    wanted.fold_window = milliseconds(random() % 3);
    Descriptor console(::memfd_create("console", MFD_CLOEXEC));
    wanted.console_output = wanted.console_errors = console.get();
    std::vector<std::string> sent[2];
    for (auto& streams : sent) streams.resize(static_cast<size_t>(ranks));
    std::vector<std::string> expected(static_cast<size_t>(ranks));  // lines in order of their ends
    std::vector<std::string> begun[2];
    for (auto& streams : begun) streams.resize(static_cast<size_t>(ranks));
    {
      LogRouter router(wanted);
      for (int turn = 0; turn < 2'000; ++turn) {
        const size_t rank = random() % static_cast<size_t>(ranks);
        const size_t stream = random() % 2;
        std::string chunk;
        for (size_t size = random() % 60; size > 0; --size)
          chunk += random() % 8 == 0 ? '\n' : static_cast<char>('a' + random() % 2);
        if (random() % 4 == 0) chunk = "the same for all\n";
        sent[stream][rank] += chunk;
        for (const char letter : chunk) {
          begun[stream][rank] += letter;
          if (letter == '\n') expected[rank] += std::exchange(begun[stream][rank], "");
        }
        router.take(static_cast<int>(rank), stream == 0 ? kOut : kErr, chunk);
      }
      for (size_t rank = 0; rank < static_cast<size_t>(ranks); ++rank) {
        router.finish(static_cast<int>(rank));
        for (const auto& streams : begun)
          if (!streams[rank].empty()) expected[rank] += streams[rank] + "\n";
      }
    }
    std::vector<std::string> got(static_cast<size_t>(ranks));
    for (const std::string& line : lines(all_of(console))) {
      const size_t end = line.find("] ");
      ASSERT_TRUE(line.starts_with("[rank") && end != std::string::npos) << line;
      std::istringstream list(line.substr(line.find(' ') + 1, end - line.find(' ') - 1));
      for (std::string range; std::getline(list, range, ',');) {
        const size_t dash = range.find('-');
        const int last = std::stoi(dash == std::string::npos ? range : range.substr(dash + 1));
        for (int rank = std::stoi(range); rank <= last; ++rank)
          got[static_cast<size_t>(rank)] += line.substr(end + 2) + "\n";
      }
    }
    EXPECT_EQ(got, expected);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string place = fmt::format("attempt_{}/{}/", seed, rank);
      EXPECT_EQ(file(place + "stdout.log"), sent[0][static_cast<size_t>(rank)]);
      EXPECT_EQ(file(place + "stderr.log"), sent[1][static_cast<size_t>(rank)]);
    }
  }
}

}  // namespace
}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/line_fold.h"

#include <gtest/gtest.h>

#include <random>

#include "convoy/launch/logs/line_prefix.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;

class Folding : public ::testing::Test {
 protected:
  Folding() {
    for (int rank = 0; rank < 4; ++rank)
      for (const Stream stream : {Stream::Output, Stream::Errors})
        fold_.set_writer(rank, stream, true);
  }
  void add(int rank, const std::string& text, Stream stream = Stream::Output) {
    fold_.add(rank, stream, text, now_, {});
  }
  // Returns every line that is due, as "RANKS TEXT", for example "0-1 loading".
  std::string due(milliseconds later = milliseconds(0)) {
    std::string text;
    while (fold_.due(now_ + later)) {
      const FoldedLine line = fold_.pop();
      text += rank_ranges(line.local_ranks) + " " + line.text + "\n";
    }
    return text;
  }

  LineFold::Clock::time_point now_ = LineFold::Clock::now();
  LineFold fold_{milliseconds(100), 4};
};

TEST_F(Folding, ALineOfAllRanksIsDueAtOnce) {
  for (const int rank : {2, 0, 3}) add(rank, "same");
  EXPECT_EQ(due(), "");
  add(1, "same");
  EXPECT_EQ(due(), "0-3 same\n");
  EXPECT_TRUE(fold_.empty());
}

TEST_F(Folding, ALoneLineIsDueAfterTheWindow) {
  add(1, "alone");
  EXPECT_EQ(due(milliseconds(99)), "");
  EXPECT_EQ(fold_.next_due(), now_ + milliseconds(100));
  EXPECT_EQ(due(milliseconds(100)), "1 alone\n");
  EXPECT_EQ(fold_.next_due(), std::nullopt);
}

TEST_F(Folding, ComesOutInTheOrderOfTheFirst) {
  add(0, "a");
  add(0, "b");
  add(1, "b");
  add(2, "c");
  add(3, "a");
  EXPECT_EQ(due(milliseconds(100)), "0,3 a\n0-1 b\n2 c\n");
}

TEST_F(Folding, DoesNotChangeTheOrderOfOneRank) {
  add(0, "a");
  add(0, "b");
  add(1, "b");
  add(1, "a");  // a new line: joined to the first it would precede b
  EXPECT_EQ(due(milliseconds(100)), "0 a\n0-1 b\n1 a\n");
}

TEST_F(Folding, LinesOfARanksOwnDoNotPartWhatRanksShare) {
  for (const int rank : {0, 1, 2})
    for (const std::string& text :
         {"own " + std::to_string(rank), std::string("a"), std::string("b")})
      add(rank, text);
  EXPECT_EQ(due(), "");
  EXPECT_EQ(due(milliseconds(100)), "0 own 0\n1 own 1\n2 own 2\n0-2 a\n0-2 b\n");
  EXPECT_TRUE(fold_.empty());
}

TEST_F(Folding, ASharedLineIsDueWhenAllHaveItBehindTheirOwn) {
  add(0, "a");
  for (const int rank : {1, 2, 3}) {
    add(rank, "own " + std::to_string(rank));
    EXPECT_EQ(due(), "");
    add(rank, "a");
  }
  EXPECT_EQ(due(), "1 own 1\n2 own 2\n3 own 3\n0-3 a\n");
}

TEST_F(Folding, ALineThatOneRankWritesTwiceStaysTwo) {
  for (const int rank : {0, 0, 0, 1, 1}) add(rank, "again");
  EXPECT_EQ(due(milliseconds(100)), "0-1 again\n0-1 again\n0 again\n");
}

TEST_F(Folding, StreamsAreNotMixed) {
  add(0, "x", Stream::Output);
  add(1, "x", Stream::Errors);
  EXPECT_EQ(due(milliseconds(100)), "0 x\n1 x\n");
}

TEST_F(Folding, RanksThatHaveEndedAreNotWaitedFor) {
  add(0, "x");
  add(1, "x");
  // Both ranks that wrote the line have ended. Ranks 2 and 3 may still write the same line.
  fold_.set_writer(0, Stream::Output, false);
  fold_.set_writer(1, Stream::Output, false);
  EXPECT_EQ(due(), "");
  add(2, "x");
  fold_.set_writer(3, Stream::Output, false);
  EXPECT_EQ(due(), "0-2 x\n");
}

TEST_F(Folding, HoldsABoundedAmount) {
  for (int line = 0; line < 100; ++line) add(0, std::to_string(line) + std::string(50'000, 'x'));
  size_t held = 0;
  due();
  while (!fold_.empty()) held += fold_.pop().text.size();
  EXPECT_LE(held, LineFold::kMostHeldBytes);
  for (size_t line = 0; line < 2 * LineFold::kMostHeldLines; ++line) add(1, "");
  due();
  size_t lines = 0;
  for (; !fold_.empty(); fold_.pop()) ++lines;
  EXPECT_EQ(lines, LineFold::kMostHeldLines);
}

TEST_F(Folding, RandomLinesComeOutOncePerRankAndInOrder) {
  std::mt19937 random(7);
  std::vector<std::string> sent(4);
  std::vector<std::string> got(4);
  const auto collect = [&](const FoldedLine& line) {
    for (const int rank : line.local_ranks) got[static_cast<size_t>(rank)] += line.text;
  };
  for (int turn = 0; turn < 20'000; ++turn) {
    const size_t rank = random() % 4;
    const std::string text(1, static_cast<char>('a' + random() % 3));
    sent[rank] += text;
    add(static_cast<int>(rank), text);
    if (random() % 10 == 0) now_ += milliseconds(random() % 60);
    while (fold_.due(now_)) collect(fold_.pop());
  }
  while (!fold_.empty()) collect(fold_.pop());
  EXPECT_EQ(sent, got);
}

TEST(RankRanges, AreShort) {
  EXPECT_EQ(rank_ranges({3}), "3");
  EXPECT_EQ(rank_ranges({7, 0, 2, 1, 3}), "0-3,7");
  EXPECT_EQ(rank_ranges({0, 2, 4, 5}), "0,2,4-5");
}

TEST(LinePrefixes, FillTorchrunsTemplateIn) {
  const auto prefix = [](const std::string& pattern, int local_rank) {
    LogOptions options;
    options.prefix_template = pattern;
    options.role = "trainer";
    options.num_local_ranks = 12;
    options.first_global_rank = 100;
    options.timestamps = true;  // has no effect beside a template
    std::string text;
    LinePrefixes(options).append(text, {&local_rank, 1}, {}, false);
    return text;
  };
  EXPECT_EQ(prefix("[${role_name}:${rank}/${local_rank}]:", 11), "[trainer:111/11]:");
  EXPECT_EQ(prefix("[$rank] ", 1), "[101] ");
  EXPECT_EQ(prefix("${unknown} $ranks $$rank ${rank", 1), "${unknown} $ranks $rank ${rank");
}

}  // namespace
}  // namespace convoy::launch

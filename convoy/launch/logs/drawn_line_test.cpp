// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/logs/drawn_line.h"

#include <gtest/gtest.h>

#include <vector>

#include "convoy/launch/logs/last_lines.h"

namespace convoy::launch {
namespace {

using Lines = std::vector<std::string>;

// Returns the lines of `bytes`, which are taken in pieces of `piece` bytes.
Lines lines_of(std::string_view bytes, size_t piece) {
  Lines lines;
  DrawnLines from;
  const auto add = [&](std::string_view line) { lines.emplace_back(line); };
  for (size_t at = 0; at < bytes.size(); at += piece) from.take(bytes.substr(at, piece), add);
  from.finish(add);
  return lines;
}

TEST(DrawnLines, AreTheSameHoweverTheBytesAreCut) {
  struct Case {
    std::string bytes;
    Lines lines;
  };
  const Case cases[] = {
      {"one\ntwo\n", {"one", "two"}},
      {"no end", {"no end"}},
      {"\n\nx\n", {"", "", "x"}},
      {"10%\r20%\r30%\nnext\n", {"30%", "next"}},
      {"\r10%\r20%", {"20%"}},
      {"bar\r", {"bar"}},
      {"bar\r\n", {"bar"}},
      {"bar\r\r\r\nx\r\n", {"bar", "x"}},
      {"long one\rs\n", {"s"}},
      {"\x1b[31mred\x1b[0m \xe2\x82\xac\n", {"\x1b[31mred\x1b[0m \xe2\x82\xac"}},
      {std::string("a\0b\n", 4), {std::string("a\0b", 3)}},
  };
  for (const Case& one : cases)
    for (size_t piece = 1; piece <= one.bytes.size(); ++piece)
      EXPECT_EQ(lines_of(one.bytes, piece), one.lines) << one.bytes << " by " << piece;
}

TEST(DrawnLines, LongOnesComeInPiecesOfWholeLetters) {
  constexpr size_t kLimit = DrawnLines::kLongestLineBytes;
  std::string euros;
  while (euros.size() < 3 * kLimit) euros += "\xe2\x82\xac";
  for (const size_t piece : {size_t{1000}, size_t{4096}, size_t{65536}}) {
    const Lines lines = lines_of(euros + "\nshort\n", piece);
    ASSERT_GT(lines.size(), 3U);
    std::string joined;
    for (size_t index = 0; index + 1 < lines.size(); ++index) {
      EXPECT_EQ(lines[index].size() % 3, 0U);
      EXPECT_LE(lines[index].size(), kLimit + piece);
      joined += lines[index];
    }
    EXPECT_EQ(joined, euros);
    EXPECT_EQ(lines.back(), "short");
  }
  // A line of exactly the limit's length is not followed by an empty line.
  EXPECT_EQ(lines_of(std::string(kLimit, 'x') + "\n", 1024).size(), 1U);
}

TEST(DrawnLines, BytesThatAreNoLettersAreCutToo) {
  const std::string continuation(DrawnLines::kLongestLineBytes + 100, '\x80');
  std::string joined;
  for (const std::string& line : lines_of(continuation, 1000)) joined += line;
  EXPECT_EQ(joined, continuation);
}

TEST(LastLines, AreTwentyOfBothStreams) {
  for (const size_t piece : {size_t{1}, size_t{7}, size_t{100'000}}) {
    LastLines last;
    std::string bytes;
    for (int line = 0; line < 100; ++line) bytes += "line " + std::to_string(line) + "\n";
    for (size_t at = 0; at < bytes.size(); at += piece)
      last.add(Stream::Output, std::string_view(bytes).substr(at, piece));
    last.add(Stream::Errors, "Traceback\n");
    last.add(Stream::Errors, "half");
    const std::string text = last.text();
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 19) << text;
    EXPECT_TRUE(text.starts_with("line 82\n")) << text;
    EXPECT_TRUE(text.ends_with("line 99\nTraceback\nhalf")) << text;
  }
}

TEST(LastLines, AChunkJoinsTheLineThatWasBegun) {
  LastLines last;
  last.add(Stream::Output, "be");
  last.add(Stream::Output, "gun\nnext\n10%\r20%");
  EXPECT_EQ(last.text(), "begun\nnext\n20%");
  last.add(Stream::Output, "\n");
  last.add(Stream::Output, "\n");
  EXPECT_EQ(last.text(), "begun\nnext\n20%\n");
}

TEST(LastLines, ExactlyTwentyLinesInOneChunkStillJoinTheOneBegun) {
  for (const int count : {19, 20, 21}) {
    LastLines last;
    last.add(Stream::Output, "begun ");
    std::string bytes;
    for (int line = 0; line < count; ++line) bytes += std::to_string(line) + "\n";
    last.add(Stream::Output, bytes);
    const std::string text = last.text();
    EXPECT_EQ(text.starts_with("begun 0\n"), count <= 20) << text;
    EXPECT_EQ(text.starts_with("1\n"), count == 21) << text;
  }
}

TEST(LastLines, MemoryIsBounded) {
  LastLines last;
  for (int chunk = 0; chunk < 100; ++chunk) last.add(Stream::Output, std::string(60'000, 'x'));
  EXPECT_EQ(last.text().size(), LastLines::kLongestLineBytes);
  last.add(Stream::Output, "\rnew\n");
  EXPECT_EQ(last.text(), "new");
}

}  // namespace
}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/telemetry/progress.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "convoy/core/base/files.h"
#include "convoy/core/telemetry/folder_test.h"

namespace convoy::telemetry {
namespace {

// Shows the progress of `total` steps of `seconds_per_step` each and returns what was written.
std::string shown(ProgressStyle style, ColorChoice color, int64_t total, double seconds_per_step) {
  const TestFolder folder;
  const auto path = folder.path() / "out";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  double now = 0;
  {
    Progress progress({.total = total,
                       .descriptor = descriptor,
                       .style = style,
                       .color = color,
                       .now_seconds = [&now] { return now; }});
    for (int64_t step = 1; step <= total; ++step) {
      now += seconds_per_step;
      progress.update({.done = step, .loss = 1.5, .per_second = 1234.0, .memory_bytes = 3 << 20});
      if (step == total / 2) progress.message("halfway");
    }
    progress.finish();
  }
  ::close(descriptor);
  return read_file(path);
}

int64_t count(const std::string& text, char letter) {
  return std::count(text.begin(), text.end(), letter);
}

TEST(Progress, AFileGetsPacedPlainLines) {
  const std::string text = shown(ProgressStyle::Auto, ColorChoice::Auto, 1000, 1.0);
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  // 5 % of the work takes 50 s, which exceeds 30 s, so there is a line every 50 steps, besides the
  // first line and the message.
  EXPECT_EQ(count(text, '\n'), 22) << text;
  EXPECT_TRUE(text.starts_with(
      "train: step 1/1000   0%  loss 1.5000  1.2k tokens/s  3 MiB  16m 39s left\n"))
      << text;
  EXPECT_NE(text.find("train: step 1000/1000 100%  loss 1.5000"), std::string::npos);
}

TEST(Progress, AFastJobSaysFirstAndLast) {
  const std::string text = shown(ProgressStyle::Lines, ColorChoice::Auto, 100, 0.1);
  EXPECT_EQ(count(text, '\n'), 3) << text;
}

// The loss of a training from rewards is negative where rewards are good.
TEST(Progress, ShowsLossesBelowZero) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress({.total = 3, .style = ProgressStyle::Lines});
    progress.update({.done = 1, .loss = -0.25, .eval_loss = -1});
    progress.update({.done = 3});
    progress.finish();
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("loss -0.2500  eval -1.0000"), std::string::npos) << text;
  EXPECT_EQ(text.find("loss", text.find('\n')), std::string::npos) << "it is not known: " << text;
}

// The run has done more steps than its total, because the total was lowered.
TEST(Progress, NeverShowsMoreThanAll) {
  const TestFolder folder;
  const auto path = folder.path() / "out";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  {
    Progress progress({.total = 6, .descriptor = descriptor, .style = ProgressStyle::Lines});
    progress.update({.done = 10});
    progress.finish();
  }
  ::close(descriptor);
  const std::string text = read_file(path);
  EXPECT_NE(text.find("10/6 100%"), std::string::npos) << text;
}

TEST(Progress, WithoutASpeedThereIsNoTimeLeft) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress({.total = 300, .style = ProgressStyle::Lines});
    progress.update({.done = 1, .per_second = 0});
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "train: step 1/300   0%\n");
}

TEST(Progress, ABarRedrawsInPlaceAndEndsItsLine) {
  const std::string text = shown(ProgressStyle::Bar, ColorChoice::Always, 100, 1.0);
  EXPECT_GE(count(text, '\r'), 100);
  EXPECT_NE(text.find("\x1b[36m"), std::string::npos);
  EXPECT_NE(text.find(" 25/100  25%  loss 1.5000"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n"));
  EXPECT_EQ(count(text, '\n'), 2);
}

TEST(Progress, ABarIsPaced) {
  EXPECT_LT(count(shown(ProgressStyle::Bar, ColorChoice::Never, 1000, 0.001), '\r'), 30);
}

TEST(Progress, NeverMeansNoColour) {
  const std::string text = shown(ProgressStyle::Bar, ColorChoice::Never, 10, 1.0);
  EXPECT_EQ(text.find("\x1b[3"), std::string::npos);
}

TEST(Progress, ANanLossIsShown) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress({.total = 2, .style = ProgressStyle::Lines});
    progress.update({.done = 1, .loss = std::nan("")});
  }
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("loss nan"), std::string::npos);
}

TEST(Progress, ANarrowTerminalKeepsTheTimeThatIsLeft) {
  const TestFolder folder;
  const auto path = folder.path() / "out";
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  double now = 0;
  {
    Progress progress({.label = "sweep ssm",
                       .unit = "guess",
                       .total = 7'000'000'000,
                       .descriptor = descriptor,
                       .style = ProgressStyle::Bar,
                       .now_seconds = [&now] { return now; }});
    now = 60;
    progress.update({.done = 1'234'567'890,
                     .per_second = 24.1e6,
                     .per_second_unit = "guesses/s",
                     .extra = "23.4k accepted  cells 12/56",
                     .seconds_left = 11'100});
  }
  ::close(descriptor);
  const std::string text = read_file(path);
  // A figure that does not fit into the line is left out whole.
  EXPECT_NE(text.find("1234567890/7000000000  17%  3h 05m left  24.10M guesses/s\n"),
            std::string::npos)
      << text;
}

TEST(Progress, TextsOfFigures) {
  EXPECT_EQ(duration_text(59.4), "59s");
  EXPECT_EQ(duration_text(185), "3m 05s");
  EXPECT_EQ(duration_text(8040), "2h 14m");
  EXPECT_EQ(duration_text(360000), "4d 4h");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1000), "1000 B");
  EXPECT_EQ(bytes_text(12 << 10), "12 KiB");
  EXPECT_EQ(bytes_text(3 << 20), "3 MiB");
  EXPECT_EQ(bytes_text(851443712), "812 MiB");
  EXPECT_EQ(bytes_text(int64_t{3} << 30), "3.00 GiB");
  EXPECT_EQ(count_text(950), "950");
  EXPECT_EQ(count_text(12345), "12.3k");
  EXPECT_EQ(count_text(4560000), "4.56M");
}

}  // namespace
}  // namespace convoy::telemetry

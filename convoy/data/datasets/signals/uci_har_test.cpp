// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/uci_har.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

class UciHar : public ::testing::Test {
 protected:
  void SetUp() override {
    write("train/Inertial Signals/acc_train.txt", "1 2 3\n4 5 6\n");
    write("train/Inertial Signals/gyro_train.txt", " -1.5  2.5e-3 +0.0\r\n 1e2 -0 7\n\n");
    write("train/y_train.txt", "2\n1\n");
  }
  void write(const std::string& name, const std::string& text) const {
    write_file_atomic(folder_ / name, text);
  }
  SignalWindows read() const { return read_signal_split(folder_.path(), "train", 2); }

  // Expects a refusal that names this file and this line and contains `text`.
  void expect_refused(const std::string& file, int64_t line, const std::string& text) const {
    try {
      read();
      ADD_FAILURE() << "read " << file;
    } catch (const DataError& error) {
      EXPECT_EQ(fs::path(error.location().file).filename(), file) << error.what();
      EXPECT_EQ(error.location().line, line) << error.what();
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  }

  testing::TemporaryFolder folder_;
};

TEST_F(UciHar, ReadsChannelsByNameAndWindowsByLine) {
  const SignalWindows windows = read();
  EXPECT_EQ(windows.num_windows, 2);
  EXPECT_EQ(windows.window_rows, 3);
  EXPECT_EQ(windows.channel_names, (std::vector<std::string>{"acc", "gyro"}));
  EXPECT_EQ(windows.values,
            (std::vector<float>{1, -1.5F, 2, 2.5e-3F, 3, 0, 4, 100, 5, -0.0F, 6, 7}));
  EXPECT_EQ(windows.classes, (std::vector<int64_t>{2, 1}));  // the labels as the file has them
  EXPECT_TRUE(windows.subjects.empty());
  EXPECT_EQ(windows.window(1)[0], 4);
}

TEST_F(UciHar, NamesFileAndLineOfWhatIsWrong) {
  const auto with = [&](const std::string& gyro) {
    write("train/Inertial Signals/gyro_train.txt", gyro);
  };
  with("1 2 3\n1 2\n");
  expect_refused("gyro_train.txt", 2, "wanted 3 numbers as in the first line, found 2");
  with("1 2 3\n1 nan 3\n");
  expect_refused("gyro_train.txt", 2, "place 2 of the line, found `nan`");
  with("1 2 3\n1 2 1e39\n");
  expect_refused("gyro_train.txt", 2, "place 3 of the line, found `1e39`");
  with("1 2 3\n1 2x 3\n");
  expect_refused("gyro_train.txt", 2, "found `2x`");
  with("1 2 3\n\n1 2 3\n");
  expect_refused("gyro_train.txt", 2, "found 0");
  with("1 2 3\n");
  expect_refused("gyro_train.txt", 0, "wanted 2 lines, one for each window, found 1");
  with("1 2\n3 4\n");
  expect_refused("gyro_train.txt", 1, "wanted 3 numbers a line as in acc_train.txt, found 2");
  with("");
  expect_refused("gyro_train.txt", 0, "no windows");
}

TEST_F(UciHar, LabelsAreWholeNumbersOfAnySize) {
  const std::vector<std::pair<std::string, std::vector<int64_t>>> cases = {
      {"0\n-1\n", {0, -1}},
      {"406516\n16777217\n", {406516, 16777217}},  // 16777217 is no float
      {"9223372036854775807\n+4\n", {9223372036854775807, 4}},
      {" 2.000000000000000000e+00 \r\n1.0\n", {2, 1}}};  // the form of numpy.savetxt
  for (const auto& [text, labels] : cases) {
    write("train/y_train.txt", text);
    EXPECT_EQ(read().classes, labels) << text;
  }
}

TEST_F(UciHar, RefusesLabelsThatAreNone) {
  for (const char* const wrong : {"1.5", "nan", "1e300", "2 1", "WALKING", "0x10", "1,5"}) {
    write("train/y_train.txt", fmt::format("2\n{}\n", wrong));
    expect_refused("y_train.txt", 2,
                   fmt::format("wanted one whole number, a label, found `{}`", wrong));
  }
  write("train/y_train.txt", "2\n\n1\n");
  expect_refused("y_train.txt", 2, "found ``");
  write("train/y_train.txt", "2\n");
  expect_refused("y_train.txt", 0, "wanted 2 lines");
  fs::remove(folder_ / "train/y_train.txt");
  EXPECT_THROW(read(), DataError);
  EXPECT_TRUE(has_signal_split(folder_.path(), "train"));
  EXPECT_FALSE(has_signal_split(folder_.path(), "test"));
  EXPECT_THROW(read_signal_split(folder_.path(), "test", 1), DataError);
}

// Reads numbers in every form that digits may have and compares them with strtod.
TEST_F(UciHar, NumbersAreTheNearestFloats) {
  const std::vector<std::string> texts = {"-3.6550001e-003",
                                          "1.0164",
                                          "0.1",
                                          "123456789.123456789",
                                          "1.8085150e-004",
                                          ".5",
                                          "5.",
                                          "9007199254740993",
                                          "1e22",
                                          "1e23",
                                          "-1e-22",
                                          "3.4028234e38",
                                          "1.17549435e-38",
                                          "0.0000000001",
                                          "12345678901234567890123",
                                          "0.3333333333333333333333333"};
  std::string line;
  for (const std::string& text : texts) line += text + " ";
  write("train/Inertial Signals/acc_train.txt", line + "\n");
  fs::remove(folder_ / "train/Inertial Signals/gyro_train.txt");
  write("train/y_train.txt", "1\n");
  const SignalWindows windows = read();
  ASSERT_EQ(windows.values.size(), texts.size());
  for (size_t index = 0; index < texts.size(); ++index)
    EXPECT_EQ(windows.values[index], static_cast<float>(std::strtod(texts[index].c_str(), nullptr)))
        << texts[index];
}

SignalWindows numbered_windows(int64_t count) {
  SignalWindows windows;
  windows.num_windows = count;
  windows.window_rows = 1;
  windows.channel_names = {"x"};
  for (int64_t index = 0; index < count; ++index) {
    windows.values.push_back(static_cast<float>(index));
    windows.classes.push_back(index % 3);
  }
  return windows;
}

TEST(HoldOut, TakesTheShareAndKeepsTheOrder) {
  const SignalWindows windows = numbered_windows(50);
  const auto [train, held] = hold_out(windows, 0.2, 7);
  EXPECT_EQ(held.num_windows, 10);
  EXPECT_EQ(train.num_windows, 40);
  std::multiset<float> all(train.values.begin(), train.values.end());
  all.insert(held.values.begin(), held.values.end());
  EXPECT_EQ(all, std::multiset<float>(windows.values.begin(), windows.values.end()));
  EXPECT_TRUE(std::is_sorted(held.values.begin(), held.values.end()));
  EXPECT_EQ(hold_out(windows, 0.2, 7).second.values, held.values);
  EXPECT_NE(hold_out(windows, 0.2, 8).second.values, held.values);
  EXPECT_THROW(hold_out(windows, 0.001, 7), DataError);
}

TEST(HoldOut, NeverSplitsASubject) {
  SignalWindows windows = numbered_windows(60);
  for (int64_t index = 0; index < 60; ++index) windows.subjects.push_back(1 + index / 10);
  for (const uint64_t seed : {1, 2, 3, 4}) {
    const auto [train, held] = hold_out(windows, 0.3, seed);
    EXPECT_EQ(held.num_windows, 20);
    const std::set<int64_t> of_train(train.subjects.begin(), train.subjects.end());
    for (const int64_t subject : held.subjects) EXPECT_FALSE(of_train.contains(subject));
  }
  windows.subjects.assign(60, 1);
  EXPECT_THROW(hold_out(windows, 0.3, 1), DataError);
}

TEST(SignalWindows, HashTellsEverythingApart) {
  const SignalWindows windows = numbered_windows(5);
  SignalWindows other = windows;
  EXPECT_EQ(other.content_hash(), windows.content_hash());
  other.classes[4] = 0;
  EXPECT_NE(other.content_hash(), windows.content_hash());
  other = windows;
  other.values[2] = 9;
  EXPECT_NE(other.content_hash(), windows.content_hash());
  other = windows;
  other.channel_names = {"y"};
  EXPECT_NE(other.content_hash(), windows.content_hash());
}

// Runs only if the real data set is there. The C++ library's stream reads the reference values.
TEST(UciHarData, IsReadWhole) {
  const fs::path folder = fs::path(std::getenv("CONVOY_SOURCE_DIR")) / "../shared/data/uci-har";
  if (!has_signal_split(folder, "test")) GTEST_SKIP() << "no " << folder;
  const SignalWindows windows = read_signal_split(folder, "test", 2);
  EXPECT_EQ(windows.num_channels(), 9);
  EXPECT_EQ(windows.window_rows, 128);
  EXPECT_EQ(static_cast<int64_t>(windows.classes.size()), windows.num_windows);
  std::ifstream file(folder / "test/Inertial Signals" / (windows.channel_names[4] + "_test.txt"));
  int64_t at = 0;
  for (double value = 0; file >> value; ++at)
    ASSERT_EQ(windows.values[static_cast<size_t>(at * 9 + 4)], static_cast<float>(value)) << at;
  EXPECT_EQ(at, windows.num_windows * 128);
}

}  // namespace
}  // namespace convoy::data

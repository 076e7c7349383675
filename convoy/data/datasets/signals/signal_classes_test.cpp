// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/signal_classes.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "files/temporary_folder.h"

namespace convoy::data {
namespace {

using Names = std::vector<std::string>;
using Labels = std::vector<int64_t>;

class Classes : public ::testing::Test {
 protected:
  void list(const std::string& text) const { write_file_atomic(list_, text); }
  SignalClasses read(const Labels& labels) const {
    SignalWindows windows;
    windows.classes = labels;
    return read_signal_classes(folder_.path(), windows);
  }
  void expect_refused(const std::string& text, int64_t line, const std::string& words) const {
    list(text);
    try {
      read({1, 2});
      ADD_FAILURE() << "read " << text;
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().file, list_.string());
      EXPECT_EQ(error.location().line, line);
      EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
    }
  }

  testing::TemporaryFolder folder_;
  std::filesystem::path list_ = folder_ / "activity_labels.txt";
};

TEST_F(Classes, AreTheLabelsThatOccurInAscendingOrder) {
  const SignalClasses classes = read({406516, 404516, -1, 406516, 0});
  EXPECT_EQ(classes.labels, (Labels{-1, 0, 404516, 406516}));
  EXPECT_EQ(classes.names, (Names{"-1", "0", "404516", "406516"}));
  SignalWindows windows;
  windows.classes = {0, 406516, -1};
  number_classes(windows, classes, "y_test.txt");
  EXPECT_EQ(windows.classes, (Labels{1, 3, 0}));
}

TEST_F(Classes, AreThoseOfTheFileThatListsThem) {
  list("7 LYING\n 1 WALKING\r\n\n2\tSITTING  DOWN \n");
  const SignalClasses classes = read({1, 1});
  EXPECT_EQ(classes.labels, (Labels{1, 2, 7}));
  EXPECT_EQ(classes.names, (Names{"WALKING", "SITTING  DOWN", "LYING"}));
}

TEST_F(Classes, AreTwoAtLeast) {
  try {
    read({4, 4, 4});
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().file, (folder_ / "train/y_train.txt").string());
    EXPECT_EQ(error.location().key, "classify.data_dir");
    EXPECT_STREQ(error.what(), "wanted two classes at least in classify.data_dir, found 4 alone");
  }
  expect_refused("1 WALKING\n", 0, "found WALKING alone");
}

TEST_F(Classes, NeedAFileThatListsThemOnce) {
  expect_refused("1 WALKING\nSITTING\n", 2, "wanted `LABEL NAME` with a whole number");
  expect_refused("1 WALKING\n2\n", 2, "found `2`");
  expect_refused("1 WALKING\n\n1 SITTING\n", 3, "label 1 stands on an earlier line too");
  expect_refused("\n \n", 0, "names no class");
}

// The refusal names the file, the line, the key, the label and the known classes.
TEST_F(Classes, ALabelThatIsNoneIsNamed) {
  const auto refusal = [&](const SignalClasses& classes) -> DataError {
    SignalWindows windows;
    windows.classes = {1, 0};
    try {
      number_classes(windows, classes, "y_train.txt");
    } catch (const DataError& error) {
      return error;
    }
    return DataError("accepted");
  };
  const DataError unlisted = refusal(read({1, 2, 7}));
  EXPECT_EQ(unlisted.location().file, "y_train.txt");
  EXPECT_EQ(unlisted.location().line, 2);
  EXPECT_EQ(unlisted.location().key, "classify.data_dir");
  EXPECT_STREQ(unlisted.what(),
               "label 0 is no class: the training windows have the labels 1, 2, 7");
  list("1 WALKING\n2 SITTING\n");
  EXPECT_EQ(std::string(refusal(read({1})).what()),
            "label 0 is no class: " + list_.string() + " lists 1, 2");
}

}  // namespace
}  // namespace convoy::data

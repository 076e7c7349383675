// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/split_remarks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace convoy::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

SignalWindows windows_of(const std::vector<int64_t>& classes,
                         const std::vector<int64_t>& subjects = {}) {
  SignalWindows windows;
  windows.num_windows = static_cast<int64_t>(classes.size());
  windows.classes = classes;
  windows.subjects = subjects;
  return windows;
}

struct Parts {
  SignalWindows train = windows_of({0, 1, 2, 0, 1, 2, 0, 1, 2});
  SignalWindows validation;
  SignalWindows test;
  double held_share = 0;

  std::vector<std::string> remarks() const {
    const std::vector<std::string> names = {"1", "2", "7"};
    return split_remarks({train, validation, test, names, held_share});
  }
};

TEST(SplitRemarks, AreNoneOfASoundDivision) {
  EXPECT_THAT(Parts{}.remarks(), IsEmpty());
  const Parts parts{.train = windows_of({0, 1, 2, 0, 1, 2}, {1, 1, 1, 2, 2, 2}),
                    .validation = windows_of({2, 1, 0}, {3, 3, 3}),
                    .test = windows_of({2, 1, 0}, {4, 4, 4}),
                    .held_share = 0.3};
  EXPECT_THAT(parts.remarks(), IsEmpty());
}

TEST(SplitRemarks, NameClassesThatAPartLacks) {
  const Parts parts{.train = windows_of({0, 0, 0, 0, 0, 0}),
                    .validation = windows_of({0, 1, 2}),
                    .test = windows_of({1})};
  EXPECT_THAT(parts.remarks(),
              ElementsAre("no training window is of classes 2, 7: the network cannot learn them",
                          "no test window is of classes 1, 7: its figures say nothing about them"));
  Parts held = parts;
  held.held_share = 0.3;
  EXPECT_THAT(held.remarks()[0], HasSubstr("take another seed or classify.val_ratio"));
}

TEST(SplitRemarks, NameAShareThatIsFarFromTheWantedOne) {
  const Parts far{.train = windows_of({0, 1, 2}, {1, 1, 1}),
                  .validation = windows_of({0, 1, 2, 0, 1, 2}, {2, 2, 2, 3, 3, 3}),
                  .held_share = 0.1};
  EXPECT_THAT(far.remarks(),
              ElementsAre("classify.val_ratio asks for 10 % of the training windows, and 66.67 % "
                          "are held out: all windows of 2 subjects, because subjects are not "
                          "divided; another seed holds out others, a folder val holds out yours"));
  Parts near = far;
  near.held_share = 0.5;
  EXPECT_THAT(near.remarks(), IsEmpty());
  Parts given = far;
  given.held_share = 0;
  EXPECT_THAT(given.remarks(), IsEmpty());
}

TEST(SplitRemarks, NameSubjectsOfTwoParts) {
  const Parts parts{.train = windows_of({0, 1, 2, 0, 1, 2}, {1, 1, 1, 2, 2, 2}),
                    .validation = windows_of({0, 1, 2}, {2, 2, 2}),
                    .test = windows_of({2, 1, 0}, {1, 2, 5})};
  EXPECT_THAT(parts.remarks(),
              ElementsAre(HasSubstr("subject 2 has windows in the training and in the validation"),
                          HasSubstr("subjects 1, 2 have windows in the training and in the test"),
                          HasSubstr("subject 2 has windows in the validation and in the test")));
}

TEST(SplitRemarks, NameLabelsThatAreMeasurements) {
  const Parts parts{.train = windows_of({0, 1, 2, 2})};
  EXPECT_THAT(parts.remarks(), ElementsAre(HasSubstr("3 classes for 4 training windows")));
}

}  // namespace
}  // namespace convoy::data

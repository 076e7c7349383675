// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/signals/split_remarks.h"

#include <gtest/gtest.h>

namespace convoy::data {
namespace {

using Sentences = std::vector<std::string>;

SignalWindows signal_windows(const std::vector<int64_t>& classes,
                             const std::vector<int64_t>& subjects = {}) {
  SignalWindows windows;
  windows.num_windows = static_cast<int64_t>(classes.size());
  windows.classes = classes;
  windows.subjects = subjects;
  return windows;
}

struct Parts {
  SignalWindows train = signal_windows({0, 1, 2, 0, 1, 2, 0, 1, 2});
  SignalWindows validation = {};
  SignalWindows test = {};
  double held_share = 0;

  std::vector<std::string> remarks() const {
    const std::vector<std::string> names = {"1", "2", "7"};
    return split_remarks({train, validation, test, names, held_share});
  }
};

// Each remark begins with one of these texts, in order.
void expect_begins(const Sentences& remarks, const Sentences& beginnings) {
  ASSERT_EQ(remarks.size(), beginnings.size());
  for (size_t place = 0; place < remarks.size(); ++place)
    EXPECT_EQ(remarks[place].substr(0, beginnings[place].size()), beginnings[place]);
}

TEST(SplitRemarks, AreNoneOfASoundDivision) {
  EXPECT_EQ(Parts{}.remarks(), Sentences());
  const Parts parts{.train = signal_windows({0, 1, 2, 0, 1, 2}, {1, 1, 1, 2, 2, 2}),
                    .validation = signal_windows({2, 1, 0}, {3, 3, 3}),
                    .test = signal_windows({2, 1, 0}, {4, 4, 4}),
                    .held_share = 0.3};
  EXPECT_EQ(parts.remarks(), Sentences());
}

TEST(SplitRemarks, NameClassesThatAPartLacks) {
  const Parts parts{.train = signal_windows({0, 0, 0, 0, 0, 0}),
                    .validation = signal_windows({0, 1, 2}),
                    .test = signal_windows({1})};
  EXPECT_EQ(parts.remarks(),
            (Sentences{"no training window is of classes 2, 7: the network cannot learn them",
                       "no test window is of classes 1, 7: its figures say nothing about them"}));
  Parts held = parts;
  held.held_share = 0.3;
  bool has_way_out = false;
  for (const std::string& remark : held.remarks())
    has_way_out =
        has_way_out || remark.find("take another seed or classify.val_ratio") != std::string::npos;
  EXPECT_TRUE(has_way_out);
}

TEST(SplitRemarks, NameAShareThatIsFarFromTheWantedOne) {
  const Parts far{.train = signal_windows({0, 1, 2}, {1, 1, 1}),
                  .validation = signal_windows({0, 1, 2, 0, 1, 2}, {2, 2, 2, 3, 3, 3}),
                  .held_share = 0.1};
  EXPECT_EQ(far.remarks(),
            (Sentences{"classify.val_ratio asks for 10 % of the training windows, and 66.67 % "
                       "are held out: all windows of 2 subjects, because subjects are not "
                       "divided; another seed holds out others, a folder val holds out yours"}));
  Parts near = far;
  near.held_share = 0.5;
  EXPECT_EQ(near.remarks(), Sentences());
  Parts given = far;
  given.held_share = 0;
  EXPECT_EQ(given.remarks(), Sentences());
}

TEST(SplitRemarks, NameSubjectsOfTwoParts) {
  const Parts parts{.train = signal_windows({0, 1, 2, 0, 1, 2}, {1, 1, 1, 2, 2, 2}),
                    .validation = signal_windows({0, 1, 2}, {2, 2, 2}),
                    .test = signal_windows({2, 1, 0}, {1, 2, 5})};
  expect_begins(parts.remarks(), {"subject 2 has windows in the training and in the validation",
                                  "subjects 1, 2 have windows in the training and in the test",
                                  "subject 2 has windows in the validation and in the test"});
}

TEST(SplitRemarks, NameLabelsThatAreMeasurements) {
  const Parts parts{.train = signal_windows({0, 1, 2, 2})};
  expect_begins(parts.remarks(), {"3 classes for 4 training windows"});
}

}  // namespace
}  // namespace convoy::data

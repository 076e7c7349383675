// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/mixed_rows.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/files_test.h"

namespace convoy::data {
namespace {

std::string mixed_rows_of(const std::string& name, int count) {
  std::string bytes;
  for (int row = 0; row < count; ++row) bytes += fmt::format("{{\"text\":\"{}{}\"}}\n", name, row);
  return bytes;
}

WeighedSet set_of(const std::filesystem::path& path, std::optional<double> weight = {}) {
  return {.dataset = find_dataset({.name = path.string()}), .weight = weight};
}

std::string texts_of(MixedRows& rows) {
  std::string texts;
  while (const auto row = rows.next()) texts += row->value["text"].get<std::string>() + " ";
  return texts;
}

TEST(MixedRows, WithoutWeightsOneSetFollowsAnother) {
  const ScratchFolder folder;
  MixedRows rows({set_of(folder.write("a.jsonl", mixed_rows_of("a", 2))),
                  set_of(folder.write("none.jsonl", "")),
                  set_of(folder.write("b.jsonl", mixed_rows_of("b", 3)))},
                 MixStop::AllExhausted);
  EXPECT_EQ(texts_of(rows), "a0 a1 b0 b1 b2 ");
  EXPECT_EQ(rows.drawn(), (std::vector<int64_t>{2, 0, 3}));
}

TEST(MixedRows, WithWeightsEachHasItsShareAndSmallerOnesComeAgain) {
  const ScratchFolder folder;
  const auto a = folder.write("a.jsonl", mixed_rows_of("a", 6));
  const auto b = folder.write("b.jsonl", mixed_rows_of("b", 2));
  MixedRows rows({set_of(a, 0.5), set_of(b, 0.5)}, MixStop::AllExhausted);
  EXPECT_EQ(texts_of(rows), "a0 b0 a1 b1 a2 b0 a3 b1 a4 b0 a5 ");
  MixedRows shorter({set_of(a, 3), set_of(b, 1)}, MixStop::FirstExhausted);
  texts_of(shorter);
  EXPECT_EQ(shorter.drawn(), (std::vector<int64_t>{5, 2}));
}

TEST(MixedRows, ABadRowCostsItself) {
  const ScratchFolder folder;
  MixedRows rows({set_of(folder.write("a.jsonl", "{\"text\":\"a0\"}\n{torn\n{\"text\":\"a2\"}\n")),
                  set_of(folder.write("b.jsonl", mixed_rows_of("b", 1)))},
                 MixStop::AllExhausted);
  EXPECT_EQ(rows.next()->value["text"], "a0");
  EXPECT_THROW(rows.next(), DataError);
  EXPECT_TRUE(rows.row_is_lost());
  EXPECT_EQ(rows.next()->value["text"], "a2");
  EXPECT_EQ(rows.next()->index, 3);
}

TEST(MixedRows, WeightsAreForAllOrForNone) {
  const ScratchFolder folder;
  const auto a = folder.write("a.jsonl", mixed_rows_of("a", 1));
  EXPECT_THROW(MixedRows({set_of(a, 1.0), set_of(a)}, MixStop::AllExhausted), ConfigError);
  EXPECT_THROW(MixedRows({set_of(a, 1.0), set_of(folder.write("none.jsonl", ""), 1.0)},
                         MixStop::AllExhausted),
               ConfigError);
}

}  // namespace
}  // namespace convoy::data

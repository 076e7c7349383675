// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/row_split.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/chain/length_figures.h"
#include "convoy/data/datasets/chain/row_check.h"
#include "convoy/data/datasets/encoding/split_builder.h"
#include "convoy/data/datasets/files_test.h"

namespace convoy::data {
namespace {

RowPass split_pass_of(const std::filesystem::path& path) {
  return {.dataset = find_dataset({.name = path.string()})};
}

// Returns rows of the users 0 to 40. One row in ten has the kind "rare".
std::string user_rows(int count) {
  std::string bytes;
  for (int row = 0; row < count; ++row)
    bytes += fmt::format("{{\"text\":\"t{}\",\"user\":\"u{}\",\"kind\":\"{}\"}}\n", row,
                         row * row % 41, row % 10 == 0 ? "rare" : "common");
  return bytes;
}

const std::vector<PartSize> kThirds = {
    {.name = "train", .share = 0.7}, {.name = "val", .share = 0.1}, {.name = "test", .share = 0.2}};

TEST(SplitRows, AreThoseOfDataSplit) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", user_rows(101));
  const RowParts parts =
      split_rows(split_pass_of(path), {.parts = kThirds, .seed = 7}, folder.path());
  settings::DataSettings data;
  data.train_path = path.string();
  data.cache_dir = "none";
  data.split = {0.7, 0.1, 0.2};
  const Log log(LogLevel::Quiet);
  const EncodedSplits splits = build_splits({.data = data,
                                             .task = "sft",
                                             .max_seq_len = 8,
                                             .seed = 7,
                                             .encode =
                                                 [](const Sample&) {
                                                   return EncodedRow{{1, 2}, {0, 1}, 0};
                                                 },
                                             .policy = [](const Sample&) { return ""; },
                                             .show = [](const std::vector<int32_t>&) { return ""; },
                                             .bos_id = 1,
                                             .encoder_hash = "",
                                             .log = log},
                                            Splits::All);
  const TokenDataset* datasets[] = {&splits.train, &splits.val, &splits.test};
  for (size_t part = 0; part < 3; ++part) {
    EXPECT_EQ(parts.rows_of_part[part], datasets[part]->num_rows());
    for (int64_t row = 0; row < datasets[part]->num_rows(); ++row)
      EXPECT_EQ(parts.part_of_row[static_cast<size_t>(datasets[part]->source_index(row))], part);
  }
}

TEST(SplitRows, GroupsStayTogether) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", user_rows(400));
  const RowParts parts =
      split_rows(split_pass_of(path), {.parts = kThirds, .by = SplitBy::Groups, .column = "user"},
                 folder.path());
  std::map<int, std::set<uint8_t>> of_user;
  for (int row = 0; row < 400; ++row)
    of_user[row * row % 41].insert(parts.part_of_row[static_cast<size_t>(row)]);
  for (const auto& [user, found] : of_user) EXPECT_EQ(found.size(), 1u) << user;
  EXPECT_EQ(parts.num_values, std::ssize(of_user));
  EXPECT_NEAR(static_cast<double>(parts.rows_of_part[0]), 280, 20);
  EXPECT_NEAR(static_cast<double>(parts.rows_of_part[1]), 40, 20);
}

TEST(SplitRows, StrataHaveTheSameMix) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", user_rows(400));
  const RowParts parts =
      split_rows(split_pass_of(path), {.parts = kThirds, .by = SplitBy::Strata, .column = "kind"},
                 folder.path());
  EXPECT_EQ(parts.rows_of_part, (std::vector<int64_t>{280, 40, 80}));
  std::vector<int64_t> rare(3, 0);
  for (size_t row = 0; row < 400; row += 10) ++rare[parts.part_of_row[row]];
  EXPECT_EQ(rare, (std::vector<int64_t>{28, 4, 8}));
  EXPECT_THROW(
      split_rows(split_pass_of(path), {.parts = kThirds, .by = SplitBy::Groups, .column = "nobody"},
                 folder.path()),
      DataError);
}

TEST(PartSizes, OfASplitWithoutSharesHaveAMost) {
  EXPECT_EQ(part_sizes(parts_of_split({}), 1000), (std::vector<int64_t>{900, 100, 0}));
  EXPECT_EQ(part_sizes(parts_of_split({}), 20'000), (std::vector<int64_t>{19'500, 500, 0}));
  EXPECT_THROW(parts_of_split({0.9, {}, 0.2}), ConfigError);
}

TEST(PartSizes, SharesCountsAndWhatIsLeft) {
  EXPECT_EQ(part_sizes(kThirds, 10), (std::vector<int64_t>{7, 1, 2}));
  EXPECT_EQ(part_sizes({{.name = "a", .rows = 3}, {.name = "b", .share = 1}}, 10),
            (std::vector<int64_t>{3, 7}));
  EXPECT_THROW(part_sizes({{.name = "a", .rows = 11}, {.name = "b", .share = 1}}, 10), ConfigError);
  EXPECT_THROW(part_sizes({{.name = "a", .share = 0.5}}, 10), ConfigError);
  EXPECT_THROW(part_sizes({{.name = "a", .rows = 3}}, 10), ConfigError);
}

TEST(CheckRows, EveryBadRowWithItsPlace) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.json",
                                 "[\n{\"text\": \"a\"},\n{\"text\":\n  \"b\" 1},\n"
                                 "{\"other\": 1},\n{\"prompt\": \"p\", \"completion\": \"c\"},\n"
                                 "{\"text\": \"z\"}]");
  std::vector<RowFault> faults;
  const RowCheckReport report = check_rows(find_dataset({.name = path.string()}), {},
                                           [&](const RowFault& fault) { faults.push_back(fault); });
  EXPECT_EQ(report.rows, 5);
  EXPECT_EQ(report.faults, 3);
  EXPECT_EQ(report.schema, "text");
  ASSERT_EQ(faults.size(), 3u);
  EXPECT_EQ(faults[0].line, 4);
  EXPECT_EQ(faults[0].column, 7);
  EXPECT_EQ(faults[1].line, 5);
  EXPECT_NE(faults[1].reason.find("no row schema fits"), std::string::npos);
  EXPECT_EQ(faults[2].index, 3);
  EXPECT_NE(faults[2].reason.find("has the schema prompt_completion"), std::string::npos);
}

// Empty answers are counted and dropped as in training. With EmptyAnswers::Error their rows count
// as bad rows.
TEST(CheckRows, EmptyAnswersAreWhatTrainingMakesOfThem) {
  const ScratchFolder folder;
  const std::string user = R"({"messages":[{"role":"user","content":"q"},{"role":"assistant",)";
  const auto checked = [&](const std::string& bytes, RowCheck check) {
    std::string lines;
    const RowCheckReport report =
        check_rows(find_dataset({.name = folder.write("rows.jsonl", bytes).string()}), check,
                   [&](const RowFault& fault) { lines += fmt::format("{} ", fault.line); });
    const int64_t counted = report.losses.empty_answers.rows + report.losses.empty_sides.rows;
    return fmt::format("bad {}| counted {}, dropped {}", lines, counted, report.rows_dropped);
  };
  const RowCheck strict{.schema = {}, .empty_answers = EmptyAnswers::Error};
  const std::string chats = user + "\"content\":\"a\"}]}\n" + user + "\"content\":\" \"}]}\n" +
                            user + "\"content\":[{\"type\":\"text\",\"text\":\"\"}]}]}\n" + user +
                            "\"content\":null,\"tool_calls\":[{}]}]}\n" + user +
                            R"("content":""},{"role":"user","content":"r"},)" +
                            R"({"role":"assistant","content":"a"}]})" + "\n";
  EXPECT_EQ(checked(chats, strict), "bad 2 3 5 | counted 0, dropped 0");
  EXPECT_EQ(checked(chats, {}), "bad | counted 3, dropped 2") << "row 5 has another answer";
  const std::string texts = R"({"prompt":"p","completion":"c"})"
                            "\n"
                            R"({"prompt":"p","completion":""})"
                            "\n";
  EXPECT_EQ(checked(texts, strict), "bad 2 | counted 0, dropped 0");
  EXPECT_EQ(checked(texts, {}), "bad | counted 1, dropped 1");
  const std::string pairs = R"({"prompt":"p","chosen":"c","rejected":"d"})"
                            "\n"
                            R"({"prompt":"p","chosen":"c","rejected":""})"
                            "\n"
                            R"({"prompt":"p","chosen":" ","rejected":"d"})"
                            "\n";
  EXPECT_EQ(checked(pairs, {.schema = {.task = "dpo"}}), "bad | counted 2, dropped 2");
}

TEST(CheckRows, FiguresOfPairsAreThoseOfTheirSides) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", R"({"prompt":"p","chosen":"abc","rejected":"d"})"
                                               "\n"
                                               R"({"prompt":"p","chosen":"a","rejected":"bcdef"})"
                                               "\n");
  const RowFigures figures =
      measure_rows({.dataset = find_dataset({.name = path.string()})}, {.task = "dpo"}, nullptr);
  EXPECT_EQ(figures.chosen.total(), 4);
  EXPECT_EQ(figures.rejected.total(), 6);
  EXPECT_EQ(figures.rejected.largest(), 5);
}

TEST(LengthFigures, AreExact) {
  LengthFigures figures;
  for (int64_t length = 1; length <= 100; ++length) figures.add(length);
  EXPECT_EQ(figures.percentile(50), 50);
  EXPECT_EQ(figures.percentile(99), 99);
  EXPECT_EQ(figures.percentile(100), 100);
  EXPECT_EQ(figures.count_above(90), 10);
  EXPECT_DOUBLE_EQ(figures.mean(), 50.5);
  int64_t counted = 0;
  for (const auto& bin : figures.histogram(8)) counted += bin.count;
  EXPECT_EQ(counted, 100);
  EXPECT_LE(figures.histogram(8).size(), 9u);
  EXPECT_NE(histogram_svg(figures, "t", "x", 50).find(">length 50<"), std::string::npos);
  EXPECT_EQ(histogram_svg(figures, "t", "x", 500).find(">length"), std::string::npos);
  EXPECT_NE(histogram_svg(LengthFigures(), "t", "x", 50).find("<svg"), std::string::npos);
  EXPECT_EQ(LengthFigures().percentile(50), 0);
}

}  // namespace
}  // namespace convoy::data

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/csv_record.h"

#include <gtest/gtest.h>

#include <utility>

namespace convoy {
namespace {

using Cells = std::vector<std::string>;

TEST(CsvRecord, ReadsPlainAndQuotedCells) {
  CsvRecord record(',');
  for (const auto& [line, cells] :
       std::vector<std::pair<std::string, Cells>>{{"1,2", {"1", "2"}},
                                                  {"1,2\r", {"1", "2"}},
                                                  {"1,", {"1", ""}},
                                                  {"", {""}},
                                                  {R"("a, ""b""",c)", {R"(a, "b")", "c"}},
                                                  {R"("",""""x)", {"", "\""}},
                                                  {R"(a"b,c)", {R"(a"b)", "c"}}}) {
    const bool is_broken = line.ends_with("\"x");
    EXPECT_EQ(record.add(line), is_broken ? CsvRecord::State::Broken : CsvRecord::State::Whole);
    EXPECT_EQ(record.cells(), cells) << line;
  }
  CsvRecord tabs('\t');
  EXPECT_EQ(tabs.add("a,b\tc"), CsvRecord::State::Whole);
  EXPECT_EQ(tabs.cells(), (Cells{"a,b", "c"}));
}

TEST(CsvRecord, AQuotedCellGoesOnInTheNextLine) {
  CsvRecord record(',');
  EXPECT_EQ(record.add("1,\"x\r"), CsvRecord::State::OpenQuote);
  EXPECT_EQ(record.add(""), CsvRecord::State::OpenQuote);
  EXPECT_EQ(record.add("y\",\"z\"\r"), CsvRecord::State::Whole);
  EXPECT_EQ(record.cells(), (Cells{"1", "x\r\n\ny", "z"}));
  EXPECT_EQ(record.add("2"), CsvRecord::State::Whole);
  EXPECT_EQ(record.cells(), Cells{"2"});
}

TEST(CsvRecord, NamesTheTextBehindABrokenCell) {
  CsvRecord record(',');
  EXPECT_EQ(record.add("\"1\"x,2"), CsvRecord::State::Broken);
  EXPECT_EQ(record.rest(), "x,2");
  EXPECT_EQ(record.add("a\rb"), CsvRecord::State::Broken);
  EXPECT_EQ(record.cells(), Cells{"a"});
  EXPECT_EQ(record.rest(), "b");
  EXPECT_EQ(record.add("1"), CsvRecord::State::Whole);
  EXPECT_EQ(record.rest(), "");
}

}  // namespace
}  // namespace convoy

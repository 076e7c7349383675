// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/row_source.h"

#include <gtest/gtest.h>

#include <random>

#include "convoy/core/base/files.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

std::vector<Row> read_rows(const std::filesystem::path& path) {
  const auto source = open_rows(path);
  std::vector<Row> rows;
  while (auto row = source->next()) rows.push_back(std::move(*row));
  return rows;
}

Json source_values_of(const std::vector<Row>& rows) {
  Json values = Json::array();
  for (const Row& row : rows) values.push_back(row.value);
  return values;
}

Json golden_source(const char* member) {
  return Json::parse(read_file(golden_data() / "rows.json")).at(member);
}

// Expects equal JSON values; the order of their keys does not count.
void expect_same(const Json& found, const Json& wanted) {
  EXPECT_EQ(nlohmann::json::parse(found.dump()), nlohmann::json::parse(wanted.dump()));
}

DataError source_error_of(const std::filesystem::path& path) {
  try {
    read_rows(path);
  } catch (const DataError& error) {
    return error;
  }
  ADD_FAILURE() << path << " was read without an error";
  return DataError("none");
}

TEST(RowSource, ReadsWhatTheReferenceWritersWrote) {
  for (const char* name : {"minimal.csv", "quoted_crlf.csv", "tabs.tsv", "ascii.jsonl",
                           "pretty.json", "data_key.json", "rows.parquet"}) {
    SCOPED_TRACE(name);
    const auto rows = read_rows(golden_data() / name);
    expect_same(source_values_of(rows), golden_source("rows"));
    for (size_t row = 0; row < rows.size(); ++row) {
      EXPECT_EQ(rows[row].index, static_cast<int64_t>(row));
      EXPECT_EQ(rows[row].file, (golden_data() / name).string());
    }
  }
}

TEST(RowSource, ParquetTypesBecomeJson) {
  expect_same(source_values_of(read_rows(golden_data() / "typed.parquet")), golden_source("typed"));
  expect_same(source_values_of(read_rows(golden_data() / "nested.parquet")),
              golden_source("nested"));
}

TEST(RowSource, DamagedCharactersAreReplacedWhereThatIsAsked) {
  const auto mended = [](std::string text) {
    const int64_t count = replace_damaged_text(text);
    return fmt::format("{} {}", count, text);
  };
  EXPECT_EQ(mended(R"({"a":"b"})"), R"(0 {"a":"b"})");
  EXPECT_EQ(mended(R"("\\ud83d \\\ud83d")"), "1 \"\\\\ud83d \\\\\uFFFD\"");
  EXPECT_EQ(mended(R"("\ud83d\ude42 \uDE42\uD83D")"), "2 \"\\ud83d\\ude42 \uFFFD\uFFFD\"");
  EXPECT_EQ(mended(R"("\ud83d\ud83d\ude42")"), "1 \"\uFFFD\\ud83d\\ude42\"");
  EXPECT_EQ(mended("\"\xff\xc3\xa9\xed\xa0\x80\""), "4 \"\uFFFD\u00e9\uFFFD\uFFFD\uFFFD\"");
  EXPECT_EQ(mended("\"\\ud8"), "0 \"\\ud8");
  const ScratchFolder folder;
  const auto source =
      open_rows(folder.write("rows.jsonl", "{\"text\":\"a\\ud83d\"}\n{\"text\":\"b\"}\n"));
  const Row row = parse_row(*source->next_raw(), BadRows::Replace);
  EXPECT_EQ(row.value["text"], "a\uFFFD");
  EXPECT_EQ(row.characters_replaced, 1);
  EXPECT_EQ(parse_row(*source->next_raw(), BadRows::Replace).characters_replaced, 0);
}

TEST(RowSource, DamagedCharactersInJsonTextsWithinARowAreReplaced) {
  const nlohmann::ordered_json damaged = R"({"x": "a\ud83d"})";
  const nlohmann::ordered_json mended = "{\"x\": \"a\uFFFD\"}";
  const auto call_of = [](const nlohmann::ordered_json& arguments) -> nlohmann::ordered_json {
    return {{"tool_calls", {{{"function", {{"name", "f"}, {"arguments", arguments}}}}}}};
  };
  const auto read_with = [](const nlohmann::ordered_json& value) {
    return parse_row({.row = {}, .text = value.dump()}, BadRows::Replace);
  };
  const Row of_call = read_with({{"messages", {call_of(damaged)}}});
  EXPECT_EQ(of_call.value["messages"][0], call_of(mended));
  EXPECT_EQ(of_call.characters_replaced, 1);
  EXPECT_EQ(read_with({{"tools", damaged}}).value["tools"], mended);
  // A damaged JSON text in an answer is left as it is.
  EXPECT_EQ(read_with({{"completion", damaged}}).value["completion"], damaged);
  Row whole;  // as rows of CSV and Parquet come
  whole.value = {{"messages", {call_of(damaged)}}};
  EXPECT_EQ(parse_row({.row = whole, .text = ""}, BadRows::Replace).value["messages"][0],
            call_of(mended));
}

TEST(RowSource, ParquetRowGroupsAndBatchesKeepOrder) {
  const auto rows = read_rows(golden_data() / "chats.parquet");
  ASSERT_EQ(rows.size(), 3000u);
  for (size_t row = 0; row < rows.size(); ++row)
    EXPECT_EQ(rows[row].value["messages"][1]["content"], fmt::format("answer {}", row));
}

TEST(RowSource, LineNumbersCountBlankLinesAndQuotedNewlines) {
  const ScratchFolder folder;
  const auto jsonl =
      read_rows(folder.write("a.jsonl", "\xef\xbb\xbf\r\n{\"a\":1}\r\n\n   \n{\"a\":2}"));
  ASSERT_EQ(jsonl.size(), 2u);
  EXPECT_EQ(jsonl[0].line, 2);
  EXPECT_EQ(jsonl[1].line, 5);
  const auto csv = read_rows(folder.write("a.csv",
                                          "\xef\xbb\xbf"
                                          "a,b\n\"x\ny\",1\n\nz,2\n"));
  ASSERT_EQ(csv.size(), 2u);
  EXPECT_EQ(csv[0].value["a"], "x\ny");
  EXPECT_EQ(csv[0].line, 2);
  EXPECT_EQ(csv[1].line, 5);
  const auto list = read_rows(folder.write("a.json", "[\n{\"a\":\n1},\n{\"a\":2}]"));
  ASSERT_EQ(list.size(), 2u);
  EXPECT_EQ(list[0].line, 2);
  EXPECT_EQ(list[1].line, 4);
}

// Reads the whole file and returns the raw text of each row that could not be read.
std::vector<std::string> lost_rows_of(const std::filesystem::path& path) {
  const auto source = open_rows(path);
  std::vector<std::string> lost;
  for (;;) {
    try {
      if (!source->next()) return lost;
    } catch (const DataError&) {
      if (!source->row_is_lost()) throw;
      lost.push_back(source->lost_row());
    }
  }
}

TEST(RowSource, ALostRowCanBeSeenAsItIsInTheFile) {
  const ScratchFolder folder;
  using Texts = std::vector<std::string>;
  EXPECT_EQ(lost_rows_of(folder.write("a.jsonl", "{\"a\":1}\n{\"a\": tru}\n{\"a\":2}\n\xff\xfe\n")),
            (Texts{"{\"a\": tru}", "\xff\xfe"}));
  EXPECT_EQ(lost_rows_of(folder.write("a.json", "[{\"a\":1},\n{\"a\" 1}, {\"a\":2}]")),
            (Texts{"{\"a\" 1}"}));
  EXPECT_EQ(lost_rows_of(folder.write("a.csv", "a,b\n1,2\n1,\"x,\"\"y\",3\n\"1\"x,2\n3,4\n")),
            (Texts{"1,\"x,\"\"y\",3", "1x,2"}));
  EXPECT_EQ(lost_rows_of(folder.write("a.tsv", "a\tb\nx,y\n")), (Texts{"x,y"}));
}

TEST(RowSource, FormatFollowsContentWhereTheNameSaysNothing) {
  const ScratchFolder folder;
  const std::string parquet = read_file(golden_data() / "rows.parquet");
  EXPECT_EQ(read_rows(folder.write("rows", "{\"a\":1}\n{\"a\":2}\n")).size(), 2u);
  EXPECT_EQ(read_rows(folder.write("list", " [{\"a\":1}]")).size(), 1u);
  EXPECT_EQ(read_rows(folder.write("data", "{\"data\":[{\"a\":1},{\"a\":1},{\"a\":1}]}")).size(),
            3u);
  EXPECT_EQ(read_rows(folder.write("spread", "{\n\"data\": [\n{\"a\":1}]}")).size(), 1u);
  EXPECT_EQ(read_rows(folder.write("columns", parquet)).size(), 5u);
  EXPECT_EQ(read_rows(folder.write("lines.json", "{\"a\":1}\n{\"a\":2}\n")).size(), 2u);
  EXPECT_EQ(read_rows(folder.write("one.json", "{\"data\": \"a column\"}")).size(), 1u);
  EXPECT_EQ(read_rows(folder.write("empty.json", "[]")).size(), 0u);
}

TEST(RowSource, WideRowsKeepTheirColumns) {
  constexpr int kColumns = 3000;
  std::string header;
  std::string cells;
  Json wanted = Json::object();
  std::vector<std::string> names;
  for (int column = 0; column < kColumns; ++column) {
    header += fmt::format("{}c{}", column == 0 ? "" : ",", column);
    cells += fmt::format("{}v{}", column == 0 ? "" : ",", column);
    names.push_back(fmt::format("\"c{0}\":\"v{0}\"", column));
  }
  const ScratchFolder folder;
  const auto csv = read_rows(folder.write("wide.csv", header + "\n" + cells + "\n"));
  const auto json =
      read_rows(folder.write("wide.jsonl", fmt::format("{{{}}}\n", fmt::join(names, ","))));
  ASSERT_EQ(csv.size(), 1u);
  ASSERT_EQ(json.size(), 1u);
  EXPECT_EQ(csv[0].value.size(), static_cast<size_t>(kColumns));
  EXPECT_EQ(csv[0].value, json[0].value);
  EXPECT_EQ(csv[0].value["c2999"], "v2999");
}

TEST(RowSource, OfTwoMembersOfOneNameTheLastCounts) {
  std::string many = "{\"a\":1";
  for (int member = 0; member < 100; ++member) many += fmt::format(",\"m{}\":0", member);
  const ScratchFolder folder;
  const auto rows = read_rows(
      folder.write("a.jsonl", "{\"a\":1,\"b\":{\"c\":[1,{}]},\"a\":2}\n" + many + ",\"a\":2}\n"));
  EXPECT_EQ(rows[0].value.dump(), R"({"a":2,"b":{"c":[1,{}]}})");
  EXPECT_EQ(rows[1].value["a"], 2);
  EXPECT_EQ(rows[1].value.size(), 101u);
}

TEST(RowSource, PlainTextIsADocumentOrItsLines) {
  const ScratchFolder folder;
  const auto path = folder.write("a.txt", "\xef\xbb\xbfone\r\n\n  \ntwo\nthree");
  const auto document = read_rows(path);
  ASSERT_EQ(document.size(), 1u);
  EXPECT_EQ(document[0].value.dump(), R"({"text":"one\r\n\n  \ntwo\nthree"})");
  const auto lines = open_rows(path, TextRows::Line);
  EXPECT_EQ(lines->next()->value["text"], "one");
  const auto second = lines->next();
  EXPECT_EQ(second->value["text"], "two");
  EXPECT_EQ(second->line, 4);
  EXPECT_EQ(second->index, 1);
  EXPECT_EQ(lines->next()->value["text"], "three");
  EXPECT_FALSE(lines->next());
  EXPECT_TRUE(read_rows(folder.write("empty.txt", "")).empty());
}

struct Broken {
  const char* name;
  std::string bytes;
  int64_t line;         // 0 if the format has no lines
  const char* mention;  // part of the message
};

std::vector<Broken> broken_files() {
  const std::string good = "{\"a\":1}\n";
  const std::string parquet = read_file(golden_data() / "rows.parquet");
  std::string wrong_page = parquet;
  for (size_t at = 20; at < 60; ++at) wrong_page[at] = static_cast<char>(wrong_page[at] ^ 0x5a);
  std::string wrong_footer = parquet;
  for (size_t at = parquet.size() - 300; at < parquet.size() - 250; ++at) wrong_footer[at] = '\xff';
  std::string huge_footer = parquet;
  huge_footer.replace(parquet.size() - 8, 4, "\xff\xff\xff\x7f");
  return {
      {"torn.jsonl", good + "{\"a\": \"hal", 2, "not valid JSON at byte"},
      {"utf8.jsonl", good + good + "{\"a\":\"\xc3(\"}\n", 3, "not valid UTF-8 at byte 7"},
      {"overlong.jsonl", "{\"a\":\"\xc0\xaf\"}\n", 1, "not valid UTF-8"},
      {"raw_surrogate.jsonl", "{\"a\":\"\xed\xa0\x80\"}\n", 1, "not valid UTF-8"},
      {"high_surrogate.jsonl", good + "{\"a\":\"\\ud83d\"}\n", 2, "surrogate"},
      {"low_surrogate.jsonl", good + "{\"a\":\"\\udc00\"}\n", 2, "surrogate"},
      {"nul.jsonl", good + std::string("{\"a\":1}\0", 8) + "\n", 2, "NUL byte at byte 8"},
      {"control.jsonl", "{\"a\":\"x\ty\"}\n", 1, "not valid JSON"},
      {"deep.jsonl", good + std::string(100000, '[') + "\n", 2, "nested deeper than 256"},
      {"deep_object.jsonl", std::string(50000, '{') + "\n", 1, "nested deeper"},
      {"number.jsonl", "{\"a\":1e999}\n", 1, "number overflow"},
      {"long.jsonl", good + "{\"a\":[{\"id\":123456789012345678901}]}\n", 2,
       "`a[0].id`: 123456789012345678901 is a whole number of more than 64 bits"},
      {"long.json", "{\"a\":-9223372036854775809}\n" + good, 1, "`a`: -9223372036854775809 is"},
      {"nul.txt", std::string("a\nb\0", 4), 2, "NUL"},
      {"wide.txt", std::string("\xff\xfeh\0i\0", 6), 0, "the file is UTF-16 text, wanted UTF-8"},
      {"wide.jsonl", std::string("{\0}\0\n\0", 6), 0, "the file is UTF-16LE text"},
      {"wide.csv", std::string("\0a\0\n\0001\0\n", 8), 0, "the file is UTF-16BE text"},
      {"utf8.txt", "a\n\nb\xff", 3, "not valid UTF-8"},
      {"two_values.jsonl", good + "{\"a\":1}{\"a\":2}\n", 2, "not valid JSON"},
      {"single_quotes.jsonl", "{'a':1}\n", 1, "not valid JSON at byte 2"},
      {"trailing_comma.json", "[{\"a\":1},\n]", 2, "wanted a value"},
      {"cut.json", "[{\"a\":1},\n{\"a\":", 2, "end of the file"},
      {"missing_comma.json", "[{\"a\":1}\n{\"a\":2}]", 2, "wanted ','"},
      {"behind.json", "[{\"a\":1}]\n[]", 2, "end of the file after"},
      {"no_data.json", "{\n\"rows\": []}", 2, "the key \"data\""},
      {"number.json", "17", 1, "wanted a list"},
      {"deep.json", "[\n" + std::string(100000, '[') + "]", 2, "nested deeper"},
      {"deep_value.json", "{\"x\":" + std::string(100000, '['), 1, "nested deeper"},
      {"inner.json", "[{\"a\":1},\n{\"a\":nul}]", 2, "not valid JSON"},
      {"open_quote.csv", "a,b\n1,2\n\"x,3\n4,5\n", 3, "never closed"},
      {"few.csv", "a,b\n1,2\n3\n", 3, "wanted 2 fields"},
      {"many.csv", "a,b\n1,2,3\n", 2, "found 3"},
      {"after_quote.csv", "a,b\n\"x\"y,3\n", 2, "closing quote"},
      {"twice.csv", "a,a\n1,2\n", 1, "twice"},
      {"utf8.csv", "a,b\n1,\xff\n", 2, "not valid UTF-8"},
      {"nul.csv", std::string("a,b\n1,\0\n", 8), 2, "NUL"},
      {"empty.csv", "", 1, "header"},
      {"cut.parquet", parquet.substr(0, parquet.size() / 2), 0, "not a valid Parquet file"},
      {"no_footer.parquet", parquet.substr(0, 4), 0, "not a valid Parquet file"},
      {"empty.parquet", "", 0, "not a valid Parquet file"},
      {"text.parquet", "{\"a\":1}\n", 0, "not a valid Parquet file"},
      {"page.parquet", wrong_page, 0, "not a valid Parquet file"},
      {"footer.parquet", wrong_footer, 0, "not a valid Parquet file"},
      {"huge_footer.parquet", huge_footer, 0, "not a valid Parquet file"},
      {"unknown.bin", "hello", 0, "neither the file's name nor its content"},
  };
}

TEST(RowSource, EveryBrokenFileIsADataErrorWithItsPlace) {
  const ScratchFolder folder;
  for (const Broken& broken : broken_files()) {
    SCOPED_TRACE(broken.name);
    const auto path = folder.write(broken.name, broken.bytes);
    const DataError error = source_error_of(path);
    EXPECT_EQ(error.location().file, path.string());
    EXPECT_EQ(error.location().line, broken.line) << error.what();
    EXPECT_NE(std::string(error.what()).find(broken.mention), std::string::npos) << error.what();
    EXPECT_FALSE(find_invalid_utf8(error.what())) << error.what();
  }
  EXPECT_NE(
      std::string(source_error_of(folder.path() / "absent.jsonl").what()).find("No such file"),
      std::string::npos);
  EXPECT_NE(std::string(source_error_of(folder.path()).what()).find("regular file"),
            std::string::npos);
}

TEST(RowSource, ALineOfUnboundedLengthIsRefusedInBoundedMemory) {
  const ScratchFolder folder;
  const auto path = folder.path() / "long.jsonl";
  std::ofstream(path) << "{\"a\":1}\n";
  std::filesystem::resize_file(path, (int64_t{200} << 20) + 8);  // a sparse file
  std::ofstream(path, std::ios::app) << "\n{\"a\":2}\n";
  const auto source = open_rows(path);
  EXPECT_EQ(source->next()->value["a"], 1);
  try {
    source->next();
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 2);
    EXPECT_NE(std::string(error.what()).find("longer than 64 MiB"), std::string::npos);
  }
  ASSERT_TRUE(source->row_is_lost());
  EXPECT_EQ(source->next()->value["a"], 2);
}

TEST(RowSource, RandomDamageNeverDoesWorseThanADataError) {
  const ScratchFolder folder;
  std::mt19937 random(7);
  int refused = 0;
  for (const char* name : {"rows.parquet", "typed.parquet", "pretty.json", "data_key.json",
                           "ascii.jsonl", "minimal.csv"}) {
    const std::string whole = read_file(golden_data() / name);
    for (int round = 0; round < 60; ++round) {
      std::string bytes = whole;
      for (int damage = 0; damage <= round % 4; ++damage)
        bytes[random() % bytes.size()] = static_cast<char>(random());
      if (round % 3 == 0) bytes.resize(random() % bytes.size());
      try {
        read_rows(folder.write(name, bytes));
      } catch (const DataError&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST(RowSource, ReadingGoesOnBehindALostRow) {
  const ScratchFolder folder;
  for (const auto& [name, bytes] : std::vector<std::pair<std::string, std::string>>{
           {"a.jsonl", "{\"a\":\"1\"}\n{bad\n{\"a\":\"2\"}\n"},
           {"a.csv", "a\n1\n2,3\n2\n"},
           {"b.csv", "a\n1\n\"2\"x\n2\n"},
           {"a.json", "[{\"a\":\"1\"},{bad},{\"a\":\"2\"}]"}}) {
    SCOPED_TRACE(name);
    const auto source = open_rows(folder.write(name, bytes));
    EXPECT_EQ(source->next()->value["a"], "1");
    EXPECT_THROW(source->next(), DataError);
    ASSERT_TRUE(source->row_is_lost());
    const auto last = source->next();
    EXPECT_EQ(last->value["a"], "2");
    EXPECT_EQ(last->index, 2);
    EXPECT_FALSE(source->next());
  }
}

}  // namespace
}  // namespace convoy::data

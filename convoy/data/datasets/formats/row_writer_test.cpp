// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/row_writer.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/formats/row_source.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

WrittenFile write_all(const std::filesystem::path& path, const std::vector<Json>& rows) {
  const auto writer = create_rows(path);
  for (const Json& row : rows) writer->write(row);
  return writer->finish();
}

std::vector<Json> read_all(const std::filesystem::path& path) {
  const auto source = open_rows(path);
  std::vector<Json> rows;
  while (auto row = source->next()) rows.push_back(std::move(row->value));
  return rows;
}

Json row(const char* text) { return Json::parse(text); }

const std::vector<Json>& plain_rows() {
  static const std::vector<Json> kRows = {
      row(R"({"problem": "a, \"b\"\nc", "n": 1, "score": 0.25, "ok": true, "tags": ["x", "y"],
              "messages": [{"role": "user", "content": "数 🙂"}], "meta": {"a": 1, "b": null}})"),
      row(R"({"problem": "", "n": -9007199254740993, "score": 1e-7, "ok": false, "tags": [],
              "messages": [], "meta": {"a": 2, "b": "late"}})"),
      row(R"({"problem": "  spaces \t kept  ", "n": 0, "score": -0.1, "ok": true, "tags": ["z"],
              "messages": [{"role": "assistant", "content": ""}], "meta": {"a": 3, "b": null}})")};
  return kRows;
}

TEST(RowWriter, WhatWasWrittenIsReadBackTheSame) {
  const ScratchFolder folder;
  for (const char* name : {"a.json", "a.jsonl", "a.ndjson", "a.parquet", "a.json.gz", "a.jsonl.gz",
                           "a.jsonl.zst", "a.jsonl.bz2"}) {
    SCOPED_TRACE(name);
    const auto path = folder.path() / "made" / "here" / name;
    const WrittenFile file = write_all(path, plain_rows());
    EXPECT_EQ(read_all(path), plain_rows());
    EXPECT_EQ(file.rows, 3);
    EXPECT_EQ(file.bytes, static_cast<int64_t>(std::filesystem::file_size(path)));
    EXPECT_EQ(file.sha256, sha256_hex_of_file(path));
  }
}

TEST(RowWriter, JsonListIsWhatPythonWrites) {
  const ScratchFolder folder;
  write_all(
      folder.path() / "a.json",
      {row(R"({"a": "é\n\u001f\"", "b": [1, 2.5, []], "c": {}, "d": {"e": null}})"), row("{}")});
  // json.dump(rows, file, indent=2, ensure_ascii=False)
  EXPECT_EQ(
      read_file(folder.path() / "a.json"),
      "[\n  {\n    \"a\": \"é\\n\\u001f\\\"\",\n    \"b\": [\n      1,\n      2.5,\n      []\n"
      "    ],\n    \"c\": {},\n    \"d\": {\n      \"e\": null\n    }\n  },\n  {}\n]");
  write_all(folder.path() / "none.json", {});
  EXPECT_EQ(read_file(folder.path() / "none.json"), "[]");
}

TEST(RowWriter, CsvHoldsTextsUnderAllColumns) {
  const ScratchFolder folder;
  const auto path = folder.path() / "a.csv";
  write_all(path,
            {row(R"({"a": "x,y", "b": 1})"), row(R"({"a": "say \"hi\"", "c": [1, {"d": "e"}]})"),
             row(R"({"b": null, "a": "two\nlines", "c": true})")});
  EXPECT_EQ(read_file(path),
            "a,b,c\r\n\"x,y\",1,\r\n\"say \"\"hi\"\"\",,\"[1,{\"\"d\"\":\"\"e\"\"}]\"\r\n"
            "\"two\nlines\",,true\r\n");
  EXPECT_EQ(read_all(path)[1], row(R"({"a": "say \"hi\"", "b": "", "c": "[1,{\"d\":\"e\"}]"})"));
  write_all(folder.path() / "one.csv", {row(R"({"a": ""})"), row(R"({"a": "x"})")});
  EXPECT_EQ(read_all(folder.path() / "one.csv").size(), 2u);  // a reader would skip an empty line
  write_all(folder.path() / "a.tsv.gz", {row(R"({"a": "x,y", "b": "p\tq"})")});
  EXPECT_EQ(read_all(folder.path() / "a.tsv.gz")[0], row(R"({"a": "x,y", "b": "p\tq"})"));
}

TEST(RowWriter, ParquetColumnsHoldWhateverAllRowsAgreeOn) {
  const ScratchFolder folder;
  const auto path = folder.path() / "a.parquet";
  write_all(
      path,
      {row(R"({"n": 1, "mixed": "text", "late": null, "deep": {"x": [1]}, "big": 1, "e": {}})"),
       row(R"({"n": 2.5, "mixed": {"a": 1}, "deep": {"y": "z"}, "big": 18446744073709551615})"),
       row(R"({"new": true, "late": [[1], []], "mixed": null, "e": {}})")});
  const std::vector<Json> wanted = {
      row(R"({"n": 1.0, "mixed": "text", "late": null, "deep": {"x": [1], "y": null}, "big": "1",
              "e": "{}", "new": null})"),
      row(R"({"n": 2.5, "mixed": "{\"a\":1}", "late": null, "deep": {"x": null, "y": "z"},
              "big": "18446744073709551615", "e": null, "new": null})"),
      row(R"({"n": null, "mixed": null, "late": [[1], []], "deep": null, "big": null, "e": "{}",
              "new": true})")};
  EXPECT_EQ(read_all(path), wanted);
  write_all(folder.path() / "none.parquet", {});
  EXPECT_TRUE(read_all(folder.path() / "none.parquet").empty());
}

TEST(RowWriter, NothingIsThereBeforeTheEnd) {
  const ScratchFolder folder;
  for (const char* name : {"a.jsonl", "a.csv", "a.parquet", "a.json.gz"}) {
    const auto path = folder.write(name, "before");
    create_rows(path)->write(plain_rows()[0]);
    EXPECT_EQ(read_file(path), "before") << name;
  }
  size_t entries = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path()))
    ++entries;
  EXPECT_EQ(entries, 4u);  // no temporary file is left
}

TEST(RowWriter, WhatCannotBeWrittenIsSaidBeforeTheWork) {
  const ScratchFolder folder;
  for (const char* name : {"a", "a.txt", "a.gz", "a.parquet.gz", "a.xlsx"})
    EXPECT_THROW(require_row_output(folder.path() / name), ConfigError) << name;
  EXPECT_NO_THROW(require_row_output(folder.path() / "new" / "a.JSON"));
  EXPECT_THROW(require_row_output("/proc/nowhere/a.json"), IoError);
  std::filesystem::create_directory(folder.path() / "folder.json");
  EXPECT_THROW(require_row_output(folder.path() / "folder.json"), ConfigError);
  const auto lines = create_rows(folder.path() / "a.jsonl");
  lines->write(Json::object());
  try {
    lines->write({{"a", "\xff"}});
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("row 2 cannot be written"), std::string::npos);
  }
  EXPECT_THROW(create_rows(folder.path() / "a.csv")->write(Json::array()), DataError);
}

TEST(RowWriter, AFullDiskIsAnError) {
  const ScratchFolder folder;
  for (const char* name : {"a.json", "a.jsonl.gz", "a.csv", "a.parquet"}) {
    std::filesystem::create_symlink("/dev/full", folder.path() / name);
    const auto writer = create_rows(folder.path() / name);
    writer->write(plain_rows()[0]);
    EXPECT_THROW(writer->finish(), IoError) << name;
  }
}

// Returns a memory figure of this process in bytes: "VmRSS" is the present use, "VmHWM" the peak
// since it was reset.
int64_t memory_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(field + ":")) return std::stoll(line.substr(field.size() + 1)) * 1024;
  return 0;
}

// Returns by how many bytes the peak of memory during `work` exceeds the memory before it.
template <class Work>
int64_t peak_growth_bytes(const Work& work) {
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak to the present use
  const int64_t before = memory_bytes("VmRSS");
  work();
  return memory_bytes("VmHWM") - before;
}

TEST(RowWriter, MemoryDoesNotGrowWithTheFile) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "freed memory is kept";
#endif
  constexpr int kRows = 768;
  constexpr size_t kTextBytes = size_t{1} << 18;
  const ScratchFolder folder;
  std::mt19937_64 random(3);
  std::string letters;
  while (letters.size() < 32 * kTextBytes) letters += fmt::format("{:016x}", random());
  const auto text_of_row = [&] {  // compresses badly, so that the file is large too
    return letters.substr(random() % (letters.size() - kTextBytes), kTextBytes);
  };
  const auto path = folder.path() / "big.parquet";
  const int64_t writing = peak_growth_bytes([&] {
    const auto writer = create_rows(path);
    for (int number = 0; number < kRows; ++number)
      writer->write({{"number", number}, {"text", text_of_row()}});
    writer->finish();
  });
  const int64_t reading = peak_growth_bytes([&] {
    const auto rows = open_rows(path);
    for (int number = 0; number < kRows; ++number) ASSERT_EQ(rows->next()->value["number"], number);
    EXPECT_FALSE(rows->next());
  });
  // Bounds for 192 MiB of rows in a file of more than 80 MiB.
  EXPECT_LT(writing, int64_t{160} << 20);
  EXPECT_LT(reading, int64_t{48} << 20);
}

}  // namespace
}  // namespace convoy::data

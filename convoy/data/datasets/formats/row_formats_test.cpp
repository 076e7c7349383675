// SPDX-License-Identifier: Apache-2.0
//
// A format is fully described by its entry in the table: reader, writer and messages treat a format
// of this test as they treat Convoy's own formats.
#include "convoy/data/datasets/formats/row_formats.h"

#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/formats/output_file.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;

// A format for this test: the line "pairs", and then a line "KEY=VALUE" for each row.
class PairRows : public RowSource {
 public:
  explicit PairRows(ByteReader file) : reader_(std::move(file)) {
    std::string head;
    reader_.read_line(head, kMaxRowBytes);
    if (head != "pairs")
      throw DataError("wanted a line `pairs`", {.file = reader_.path().string()});
  }
  std::optional<Row> next() override {
    if (reader_.peek() == ByteReader::kEnd) return std::nullopt;
    const int64_t line = reader_.line();
    std::string pair;
    reader_.read_line(pair, kMaxRowBytes);
    const size_t middle = pair.find('=');
    return Row{{{pair.substr(0, middle), pair.substr(middle + 1)}},
               reader_.path().string(),
               line,
               index_++};
  }

 private:
  ByteReader reader_;
  int64_t index_ = 0;
};

class PairWriter : public RowWriter {
 public:
  explicit PairWriter(const std::filesystem::path& path) : file_(path) { file_.write("pairs\n"); }
  void write(const Json& row) override {
    file_.write(fmt::format("{}={}\n", row.begin().key(), row.begin()->get<std::string>()));
    ++rows_;
  }
  WrittenFile finish() override { return file_.publish(rows_); }

 private:
  OutputFile file_;
  int64_t rows_ = 0;
};

RowFormat pair_format() {
  return {.name = "pairs",
          .suffixes = {".pairs"},
          .sniff = [](ByteReader& file) { return file.ahead(6).starts_with("pairs\n"); },
          .open = [](ByteReader file, TextRows) -> std::unique_ptr<RowSource> {
            return std::make_unique<PairRows>(std::move(file));
          },
          .create = [](const std::filesystem::path& path) -> std::unique_ptr<RowWriter> {
            return std::make_unique<PairWriter>(path);
          }};
}

RowFormats with_pairs() {
  std::vector<RowFormat> list = RowFormats::built_in().list();
  list.push_back(pair_format());
  return RowFormats(list);
}

std::vector<Json> read_all(const RowFormats& formats, const std::filesystem::path& path) {
  const auto source = formats.open(path, TextRows::Document);
  std::vector<Json> rows;
  while (auto row = source->next()) rows.push_back(std::move(row->value));
  return rows;
}

TEST(RowFormats, OneEntryMakesAFormat) {
  const RowFormats formats = with_pairs();
  const ScratchFolder folder;
  const std::vector<Json> rows = {{{"a", "1"}}, {{"b", "2"}}};
  for (const char* name : {"rows.pairs", "rows.PAIRS", "rows.pairs.gz"}) {
    SCOPED_TRACE(name);
    const auto path = folder.path() / name;
    const auto writer = formats.to_write(path).create(path);
    for (const Json& row : rows) writer->write(row);
    EXPECT_EQ(writer->finish().rows, 2);
    EXPECT_EQ(read_all(formats, path), rows);
  }
  EXPECT_EQ(read_all(formats, folder.write("nameless", "pairs\na=1\nb=2\n")), rows);
  EXPECT_NE(formats.readable().find(".txt, .pairs (all with .gz"), std::string::npos);
  EXPECT_NE(formats.writable().find(".tsv, .pairs (all with .gz"), std::string::npos);
  // The other formats are read as before.
  EXPECT_EQ(read_all(formats, folder.write("a.jsonl", "{\"a\":\"1\"}\n")).size(), 1u);
}

TEST(RowFormats, AnUnknownFormatIsRefusedWithAllThatAreKnown) {
  const ScratchFolder folder;
  const auto pairs = folder.write("rows.pairs", "pairs\na=1\n");
  try {
    RowFormats::built_in().open(pairs, TextRows::Document);
    ADD_FAILURE() << "nobody reads pairs";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().hint, "wanted " + known_row_formats());
  }
  EXPECT_EQ(known_row_formats(),
            ".jsonl, .json, .csv, .tsv, .txt (all with .gz, .zst or .bz2 behind it too) or "
            ".parquet");
  EXPECT_EQ(RowFormats::built_in().writable(),
            ".jsonl, .json, .csv, .tsv (all with .gz, .zst or .bz2 behind it too) or .parquet");
  for (const char* name : {"a.txt", "a.pairs", "a.parquet.gz", "a"})
    EXPECT_THROW(RowFormats::built_in().to_write(name), ConfigError) << name;
}

// Counts how often the file was opened since the construction. The reads and closes between two
// opens keep their events apart.
class OpenCounter {
 public:
  explicit OpenCounter(const std::filesystem::path& path) : events_(::inotify_init1(IN_NONBLOCK)) {
    EXPECT_GE(::inotify_add_watch(events_.get(), path.c_str(), IN_OPEN | IN_CLOSE | IN_ACCESS), 0);
  }
  int count() const {
    int opens = 0;
    alignas(inotify_event) std::array<char, 4096> bytes{};
    while (true) {
      const ssize_t length = ::read(events_.get(), bytes.data(), bytes.size());
      if (length <= 0) return opens;
      for (ssize_t at = 0; at < length;) {
        inotify_event event{};
        std::memcpy(&event, bytes.data() + at, sizeof event);
        opens += (event.mask & IN_OPEN) != 0;
        at += static_cast<ssize_t>(sizeof event + event.len);
      }
    }
  }

 private:
  Descriptor events_;
};

TEST(RowFormats, AFileIsOpenedOnceWhateverItsNameSays) {
  const ScratchFolder folder;
  for (const auto& [name, text] :
       std::vector<std::pair<const char*, const char*>>{{"lines", "{\"a\":1}\n{\"a\":2}\n"},
                                                        {"list", "[{\"a\":1},{\"a\":2}]"},
                                                        {"lines.json", "{\"a\":1}\n{\"a\":2}\n"},
                                                        {"rows.jsonl", "{\"a\":1}\n{\"a\":2}\n"},
                                                        {"rows.csv", "a\n1\n2\n"}}) {
    const auto path = folder.write(name, text);
    const OpenCounter opens(path);
    EXPECT_EQ(read_all(RowFormats::built_in(), path).size(), 2u) << name;
    EXPECT_EQ(opens.count(), 1) << name;
  }
}

TEST(RowFormats, ContentIsSeenBehindManyBlanksAndLongLines) {
  const ScratchFolder folder;
  const RowFormats& formats = RowFormats::built_in();
  const std::string blanks(600'000, '\n');
  const std::string letters(600'000, 'x');
  const std::string row = fmt::format("{{\"a\":\"{}\"}}", letters);
  EXPECT_EQ(read_all(formats, folder.write("blanks", blanks + "{\"a\":1}\n{\"a\":2}\n")).size(),
            2u);
  EXPECT_EQ(read_all(formats, folder.write("lines", row + "\n" + row)).size(), 2u);
  EXPECT_EQ(read_all(formats, folder.write("data", "{\"data\":[" + row + "," + row + "]}")).size(),
            2u);
  const auto late = formats.open(folder.write("late", blanks + "{\"a\":1}"), TextRows::Document);
  EXPECT_EQ(late->next()->line, 600'001);
}

TEST(ByteReader, LooksAheadWithoutTaking) {
  const ScratchFolder folder;
  std::string text;
  for (int line = 0; line < 100'000; ++line) text += fmt::format("line {}\n", line);
  ByteReader reader(folder.write("lines.txt", text));
  std::string taken;
  reader.read_line(taken, kMaxRowBytes);
  EXPECT_EQ(taken, "line 0");
  EXPECT_EQ(reader.ahead(500'000).substr(0, 500'000), std::string_view(text).substr(7, 500'000));
  EXPECT_EQ(reader.ahead(text.size() * 2), std::string_view(text).substr(7));
  EXPECT_EQ(reader.line(), 2);
  EXPECT_EQ(reader.offset_bytes(), 7);
  std::string rest = taken + "\n";
  while (reader.peek() != ByteReader::kEnd) rest += static_cast<char>(reader.get());
  EXPECT_EQ(rest, text);
}

}  // namespace
}  // namespace convoy::data

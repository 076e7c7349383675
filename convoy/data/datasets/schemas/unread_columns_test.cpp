// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/schemas/unread_columns.h"

#include <gtest/gtest.h>

#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/sample_reader.h"

namespace convoy::data {
namespace {

std::string columns_of(const std::filesystem::path& path, const SchemaConfig& config = {},
                       BadRows bad_rows = BadRows::Error, RowUse use = RowUse::Learn) {
  SampleReader reader(path, config, bad_rows, use);
  while (reader.next()) {
  }
  return reader.unread_columns();
}

TEST(UnreadColumns, AreNamedInTheOrderOfTheFileWithTheirRows) {
  UnreadColumns columns;
  EXPECT_TRUE(columns.empty());
  columns.add({"id", "topic"});
  columns.add({"topic"});
  EXPECT_EQ(columns.sentence("not kept"),
            "2 columns are not kept: `id` (in 1 row), `topic` (in 2 rows)");
  for (int column = 0; column < 30; ++column) columns.add({fmt::format("c{}", column)});
  EXPECT_EQ(columns.names().size(), 32u);
  EXPECT_NE(columns.sentence("not read").find("and 12 more"), std::string::npos);
}

TEST(UnreadColumns, ReaderCountsThoseOfUsableRows) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.jsonl",
      "{\"question\":\"q\",\"answer\":\"a\",\"topic\":\"t\",\"id\":7}\n"
      "{\"question\":\"q\",\"answer\":\"a\",\"topic\":\"\",\"id\":null,\"tags\":[],\"x\":{}}\n"
      "{\"question\":\"q\",\"answer\":[],\"topic\":\"t\"}\n"
      "{\"question\":\"q\",\"answer\":\"a\",\"topic\":\"t\"}\n");
  EXPECT_EQ(columns_of(path, {}, BadRows::Skip),
            "2 columns are not read: `topic` (in 2 rows), `id` (in 1 row); data.unread_columns: "
            "error refuses such rows");
  EXPECT_EQ(columns_of(folder.write("a.jsonl",
                                    "{\"messages\":[{\"role\":\"user\",\"content\":"
                                    "\"q\"}],\"tools\":[],\"system\":\"s\"}\n")),
            "");
  EXPECT_EQ(columns_of(folder.write("b.jsonl", "[\"q\",{\"answer\":\"a\",\"source\":\"s\"}]\n")),
            "1 column is not read: `source` (in 1 row); data.unread_columns: error refuses such "
            "rows");
  EXPECT_EQ(columns_of(folder.write("c.jsonl", "{\"prompt\":\"p\",\"difficulty\":3}\n"), {},
                       BadRows::Error, RowUse::Continue),
            "1 column is not read: `difficulty` (in 1 row); data.unread_columns: error refuses "
            "such rows");
}

TEST(UnreadColumns, MayBeRefusedWhateverIsDoneAboutBadRows) {
  const ScratchFolder folder;
  const auto path =
      folder.write("rows.jsonl", "{\"text\":\"t\"}\n{\"text\":\"t\",\"url\":\"u\",\"id\":1}\n");
  for (const BadRows policy : {BadRows::Error, BadRows::Skip, BadRows::Replace}) try {
      columns_of(path, {.unread_columns = UnreadPolicy::Refuse}, policy);
      FAIL() << "wanted an error";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "row 2: nothing reads the columns url, id");
      EXPECT_EQ(error.location().line, 2);
    }
}

TEST(UnreadColumns, ReplacedCharactersAreCounted) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.json", "{\"text\":\"\\ud83d\"}\n{\"text\":\"b\\udc00\\udc00\"}\n{\"text\":\"c\"}\n");
  SampleReader reader(path, {}, BadRows::Replace);
  std::string texts;
  while (const auto sample = reader.next()) texts += sample->text;
  EXPECT_EQ(texts, "\uFFFDb\uFFFD\uFFFDc");
  EXPECT_EQ(reader.bad_rows().summary(),
            "3 characters of 2 rows were damaged and replaced by U+FFFD");
  SampleReader one(folder.write("one.json", "{\"text\":\"\\ud83d\"}\n"), {}, BadRows::Replace);
  while (one.next()) continue;
  EXPECT_EQ(one.bad_rows().summary(), "1 character of 1 row was damaged and replaced by U+FFFD");
  SampleReader torn(folder.write("torn.jsonl", "{torn\n"), {}, BadRows::Replace);
  EXPECT_THROW(torn.next(), DataError);
}

}  // namespace
}  // namespace convoy::data

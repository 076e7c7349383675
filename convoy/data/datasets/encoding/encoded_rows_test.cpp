// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encoded_rows.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/files_test.h"

namespace convoy::data {
namespace {

EncodedRow encode_unless_refused(const Sample& sample) {
  if (sample.text == "refuse")
    throw DataError("the template refuses", {.file = sample.file, .line = sample.line});
  return {.ids = {1, 2}, .supervised = {0, 1}};
}

EncodedRows open(const std::filesystem::path& path, BadRows bad_rows) {
  return EncodedRows(path, {}, bad_rows, RowUse::Learn, encode_unless_refused);
}

std::string error_of(const std::filesystem::path& path, BadRows bad_rows) {
  try {
    EncodedRows rows = open(path, bad_rows);
    while (rows.next()) {
    }
    rows.finish(Log(LogLevel::Quiet));
  } catch (const DataError& error) {
    return error.sentence();
  }
  return "no error";
}

TEST(EncodedRows, SkipLeavesOutWhatCannotBeReadConvertedOrEncoded) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl",
                                 "{\"text\":\"a\"}\n{torn\n{\"text\":4.5}\n{\"text\":\"refuse\"}\n"
                                 "{\"text\":\"b\"}\n");
  EncodedRows rows = open(path, BadRows::Skip);
  EXPECT_EQ(rows.next()->row.source_index, 0);
  EXPECT_EQ(rows.next()->row.source_index, 4);
  EXPECT_FALSE(rows.next().has_value());
  ::testing::internal::CaptureStderr();
  rows.finish(Log(LogLevel::Normal));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("3 unreadable rows skipped: lines 2, 3, 4"), std::string::npos) << said;
  EXPECT_NE(error_of(path, BadRows::Error).find("rows.jsonl:2"), std::string::npos);
}

TEST(EncodedRows, AFileWithoutRowsIsAnError) {
  const ScratchFolder folder;
  for (const BadRows bad_rows : {BadRows::Error, BadRows::Skip}) {
    EXPECT_NE(error_of(folder.write("none.jsonl", ""), bad_rows).find("the file has no rows"),
              std::string::npos);
    EXPECT_NE(error_of(folder.write("none.json", "[]"), bad_rows).find("the file has no rows"),
              std::string::npos);
  }
  const auto bad = folder.write("bad.jsonl", "{torn\n{\"text\":\"refuse\"}\n");
  EXPECT_NE(error_of(bad, BadRows::Skip).find("no row is left: 2 unreadable rows skipped"),
            std::string::npos);
}

}  // namespace
}  // namespace convoy::data

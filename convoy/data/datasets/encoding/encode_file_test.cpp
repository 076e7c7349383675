// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/encode_file.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <set>
#include <thread>

#include "convoy/data/datasets/encoding/byte_rows_test.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/sample_reader.h"

namespace convoy::data {
namespace {

TEST(TruncateRow, KeepsTheSideAskedFor) {
  const EncodedRow whole{{1, 10, 11, 12, 13}, {0, 0, 1, 1, 1}, 0};
  EncodedRow row = whole;
  EXPECT_FALSE(truncate_row(row, {5, Truncation::KeepStart, 1}));
  EXPECT_TRUE(truncate_row(row, {3, Truncation::KeepStart, 1}));
  EXPECT_EQ(row.ids, (std::vector<int32_t>{1, 10, 11}));
  EXPECT_EQ(row.supervised, (std::vector<uint8_t>{0, 0, 1}));
  row = whole;
  EXPECT_TRUE(truncate_row(row, {3, Truncation::KeepEnd, 1}));
  EXPECT_EQ(row.ids, (std::vector<int32_t>{1, 12, 13}));
  EXPECT_EQ(row.supervised, (std::vector<uint8_t>{0, 1, 1}));
  row = whole;
  EXPECT_TRUE(truncate_row(row, {3, Truncation::KeepEnd, std::nullopt}));
  EXPECT_EQ(row.ids, (std::vector<int32_t>{11, 12, 13}));
  EXPECT_EQ(row.supervised, (std::vector<uint8_t>{0, 1, 1}));  // the first token has no context
}

TEST(TruncateRow, WeightsAreCutWithTheirTokens) {
  EncodedRow row{{1, 10, 11, 12, 13}, {0, 0, 1, 1, 1}, 0};
  row.weights = {1, 2, 3, 4, 5};
  EXPECT_TRUE(truncate_row(row, {4, Truncation::KeepEnd, 1}));
  EXPECT_EQ(row.weights, (std::vector<float>{1, 3, 4, 5}));
  EXPECT_TRUE(truncate_row(row, {2, Truncation::KeepStart, 1}));
  EXPECT_EQ(row.weights, (std::vector<float>{1, 3}));
}

struct TakenFile : EncodedFile {
  std::vector<EncodedRow> rows;    // the rows that were kept, in file order
  std::vector<RowRecord> records;  // one for each row of the file, by index
};

TakenFile take_all(SampleReader& reader, const std::function<EncodedRow(const Sample&)>& encode,
                   const TruncationPolicy& policy, int num_threads) {
  TakenFile taken;
  static_cast<EncodedFile&>(taken) = encode_file(reader, encode, policy, num_threads,
                                                 [&](const RowRecord& record, EncodedRow row) {
                                                   taken.records.push_back(record);
                                                   if (record.outcome == RowOutcome::Kept)
                                                     taken.rows.push_back(std::move(row));
                                                 });
  return taken;
}

TEST(EncodeFile, OrderAndResultDoNotDependOnThreads) {
  const ScratchFolder folder;
  const auto path = folder.write("rows.jsonl", numbered_rows(500));
  std::vector<std::string> hashes;
  for (const int num_threads : {1, 2, 7}) {
    SampleReader reader(path, {}, BadRows::Error);
    std::atomic<int> calls{0};
    const TakenFile file = take_all(
        reader,
        [&](const Sample& sample) {
          ++calls;
          return encode_bytes(sample);
        },
        {64, Truncation::KeepStart, 1}, num_threads);
    EXPECT_EQ(calls, 500);
    ASSERT_EQ(file.rows.size(), 500u);
    for (size_t row = 0; row < 500; ++row)
      EXPECT_EQ(file.rows[row].source_index, static_cast<int64_t>(row));
    EXPECT_EQ(file.first_sample->index, 0);
    hashes.push_back(TokenDataset::from_rows(file.rows).content_hash());
  }
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_EQ(hashes[0], hashes[2]);
}

TEST(EncodeFile, TheFirstErrorInFileOrderIsThrownWhateverTheTiming) {
  const ScratchFolder folder;
  std::string bytes = numbered_rows(300);
  bytes += "{\"prompt\":\"\",\"completion\":\"refuse\"}\n" + numbered_rows(200) + "{torn\n";
  const auto path = folder.write("rows.jsonl", bytes);
  for (int round = 0; round < 20; ++round) {
    SampleReader reader(path, {}, BadRows::Error);
    try {
      take_all(
          reader,
          [](const Sample& sample) {
            if (sample.index == 300) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            return encode_bytes(sample);
          },
          {64, Truncation::KeepStart, 1}, 4);
      FAIL() << "wanted an error";
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().line, 301);
    }
  }
}

TEST(EncodeFile, TruncationPolicies) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.jsonl",
      "{\"prompt\":\"pp\",\"completion\":\"cc\"}\n{\"prompt\":\"ppp\",\"completion\":\"cccc\"}\n"
      "{\"prompt\":\"pppppp\",\"completion\":\"c\"}\n");
  const auto run = [&](Truncation truncation) {
    SampleReader reader(path, {}, BadRows::Error);
    return take_all(reader, encode_bytes, {6, truncation, 1}, 2);
  };
  const TakenFile start = run(Truncation::KeepStart);
  ASSERT_EQ(start.rows.size(), 2u);
  EXPECT_TRUE(start.records[1].truncated);
  EXPECT_EQ(start.records[2].outcome, RowOutcome::Unsupervised);
  EXPECT_EQ(start.first_unsupervised->tokens, 8);
  EXPECT_EQ(start.first_unsupervised->supervised_tokens, 1);
  EXPECT_EQ(start.first_unsupervised->line, 3);
  EXPECT_EQ(run(Truncation::KeepEnd).rows.size(), 3u);
  const TakenFile drop = run(Truncation::Drop);
  EXPECT_EQ(drop.rows.size(), 1u);
  EXPECT_EQ(drop.records[1].outcome, RowOutcome::DroppedLong);
  try {
    run(Truncation::Error);
    FAIL() << "wanted an error";
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 2);
    EXPECT_NE(std::string(error.what()).find("8 tokens, more than model.max_seq_len 6"),
              std::string::npos);
  }
  EXPECT_EQ(truncation_named("keep_end", "sft"), Truncation::KeepEnd);
  EXPECT_THROW(truncation_named("keep", "sft"), ConfigError);
}

TEST(EncodeFile, TheFirstSampleIsOneThatIsKept) {
  const ScratchFolder folder;
  SampleReader reader(folder.write("rows.jsonl",
                                   "{\"prompt\":\"pppppp\",\"completion\":\"c\"}\n"
                                   "{\"prompt\":\"p\",\"completion\":\"cc\"}\n"
                                   "{\"prompt\":\"q\",\"completion\":\"cc\"}\n"),
                      {}, BadRows::Error);
  const TakenFile file = take_all(reader, encode_bytes, {6, Truncation::KeepStart, 1}, 2);
  EXPECT_EQ(file.first_sample->index, 1);
}

TEST(EncodeFile, SkippedRowsIncludeThoseTheEncoderRefuses) {
  const ScratchFolder folder;
  const auto path = folder.write(
      "rows.jsonl",
      numbered_rows(2) + "{\"prompt\":\"\",\"completion\":\"refuse\"}\n{torn\n" + numbered_rows(1));
  SampleReader reader(path, {}, BadRows::Skip);
  const TakenFile file = take_all(reader, encode_bytes, {64, Truncation::KeepStart, 1}, 2);
  EXPECT_EQ(file.rows.size(), 3u);
  EXPECT_EQ(file.records[2].outcome, RowOutcome::Unreadable);
  EXPECT_EQ(file.records[3].outcome, RowOutcome::Unreadable);
  EXPECT_NE(reader.bad_rows().summary().find("lines 3, 4; first: the template refuses"),
            std::string::npos);
}

TEST(EncodeFile, EveryFormatGivesTheSameTokens) {
  std::set<std::string> hashes;
  for (const char* name : {"minimal.csv", "quoted_crlf.csv", "tabs.tsv", "ascii.jsonl",
                           "pretty.json", "data_key.json", "rows.parquet"}) {
    SampleReader reader(golden_data() / name, {}, BadRows::Error);
    const TakenFile file = take_all(
        reader,
        [](const Sample& sample) {
          Sample text;
          text.text = sample.messages.dump();
          return encode_bytes(text);
        },
        {1000, Truncation::Error, 1}, 2);
    EXPECT_EQ(file.rows.size(), 5u) << name;
    hashes.insert(TokenDataset::from_rows(file.rows).content_hash());
  }
  EXPECT_EQ(hashes.size(), 1u);
}

}  // namespace
}  // namespace convoy::data

// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/encoding/split_builder.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

#include "convoy/core/base/files.h"
#include "convoy/data/datasets/encoding/byte_rows_test.h"
#include "convoy/data/datasets/files_test.h"
#include "convoy/data/datasets/schemas/sample_reader.h"
#include "convoy/data/datasets/tokens/token_cache.h"

namespace convoy::data {
namespace {

struct Fixture {
  ScratchFolder folder;
  settings::DataSettings data;
  Log log{LogLevel::Quiet};
  std::atomic<int> encoded{0};
  int64_t max_seq_len = 64;
  uint64_t seed = 42;
  std::string task = "sft";
  std::string encoder_hash = "bytes";
  bool warns = true;

  Fixture() { data.cache_dir = (folder.path() / "cache").string(); }

  EncodedSplits build(Splits wanted = Splits::TrainAndVal) {
    return build_splits(
        {.data = data,
         .task = task,
         .max_seq_len = max_seq_len,
         .seed = seed,
         .encode =
             [this](const Sample& sample) {
               ++encoded;
               return encode_bytes(sample);
             },
         .policy =
             [](const Sample& sample) { return "policy of row " + std::to_string(sample.index); },
         .show =
             [](const std::vector<int32_t>& ids) { return fmt::format("{}", fmt::join(ids, " ")); },
         .bos_id = 1,
         .encoder_hash = encoder_hash,
         .log = log,
         .warns = warns},
        wanted);
  }
  std::string error_of(Splits wanted = Splits::TrainAndVal) {
    try {
      build(wanted);
    } catch (const Error& error) {
      return error.sentence();
    }
    return "no error";
  }
};

std::set<int64_t> sources_of(const TokenDataset& dataset) {
  std::set<int64_t> sources;
  for (int64_t row = 0; row < dataset.num_rows(); ++row) sources.insert(dataset.source_index(row));
  return sources;
}

TEST(SplitBuilder, ShardsAreOneFile) {
  Fixture whole;
  whole.data.train_path = whole.folder.write("rows.jsonl", numbered_rows(20)).string();
  const std::string wanted = whole.build(Splits::All).train.content_hash();
  const std::string rows = numbered_rows(20);
  const size_t cut = rows.find("{\"prompt\":\"p9\"");

  Fixture shards;
  shards.data.cache_dir = whole.data.cache_dir;
  std::filesystem::create_directory(shards.folder.path() / "set");
  shards.folder.write("set/part-2.jsonl", rows.substr(0, cut));
  shards.folder.write("set/part-10.jsonl", rows.substr(cut));
  shards.data.train_path = (shards.folder.path() / "set").string();
  EXPECT_EQ(shards.build(Splits::All).train.content_hash(), wanted);
  EXPECT_EQ(shards.encoded, 20);  // the cache has another key
  EXPECT_TRUE(shards.build(Splits::All).reports[0].from_cache);
  shards.folder.write("set/part-10.jsonl", rows.substr(cut) + numbered_rows(1));
  EXPECT_FALSE(shards.build(Splits::All).reports[0].from_cache);
}

// The policy is taken from the first row that could be encoded; the first row of the file may be
// skipped.
TEST(BuildSplits, ThePolicyIsOfARowThatCouldBeEncoded) {
  Fixture fixture;
  fixture.data.bad_rows = "skip";
  fixture.data.train_path =
      fixture.folder
          .write("rows.jsonl", "{\"prompt\":\"\",\"completion\":\"refuse\"}\n" + numbered_rows(3))
          .string();
  fixture.data.val_path = fixture.data.train_path;
  EXPECT_EQ(fixture.build().policy, "policy of row 1");
  fixture.data.train_path =
      fixture.folder.write("bad.jsonl", "{\"prompt\":\"\",\"completion\":\"refuse\"}\n").string();
  EXPECT_NE(fixture.error_of().find("1 unreadable row skipped"), std::string::npos);
}

TEST(BuildSplits, VariablesOfTheTemplateArePartOfTheCacheKey) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(10)).string();
  fixture.build(Splits::All);
  fixture.data.template_kwargs.json = R"({"enable_thinking":false})";
  fixture.build(Splits::All);
  EXPECT_EQ(fixture.encoded, 20);
  fixture.build(Splits::All);
  EXPECT_EQ(fixture.encoded, 20);
}

TEST(BuildSplits, SeparateFiles) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("train.jsonl", numbered_rows(20)).string();
  fixture.data.val_path = fixture.folder.write("val.jsonl", numbered_rows(5)).string();
  fixture.data.test_path = fixture.folder.write("test.jsonl", numbered_rows(3)).string();
  const EncodedSplits splits = fixture.build();
  EXPECT_EQ(splits.train.num_rows(), 20);
  EXPECT_EQ(splits.val.num_rows(), 5);
  EXPECT_EQ(splits.test.num_rows(), 0);
  EXPECT_EQ(splits.policy, "policy of row 0");
  ASSERT_EQ(splits.reports.size(), 2u);
  EXPECT_EQ(splits.reports[0].schema, "prompt_completion");
  EXPECT_EQ(splits.reports[0].files, std::vector<std::string>{fixture.data.train_path});
  EXPECT_EQ(splits.reports[0].tokens, splits.train.total_tokens());
  EXPECT_EQ(splits.reports[0].supervised_tokens, splits.train.total_supervised_tokens());
  EXPECT_EQ(fixture.build(Splits::Test).test.num_rows(), 3);
  EXPECT_EQ(fixture.build(Splits::All).reports.size(), 3u);
}

TEST(BuildSplits, OneFileGivesFewRowsToEvaluationsAndNoneToATest) {
  EXPECT_EQ(split_bounds({}, 200).first, 180);
  EXPECT_EQ(split_bounds({}, 200).second, 200) << "no test split";
  EXPECT_EQ(split_bounds({}, 100'000).first, 99'500) << "more rows tell an evaluation nothing more";
  EXPECT_EQ(split_bounds({}, 100'000).second, 100'000);
  EXPECT_EQ(split_bounds({{}, 0.0, 0.0}, 200).first, 200);
  EXPECT_EQ(split_bounds({{}, 0.2, 0.0}, 100'000).first, 80'000) << "what is asked for counts";
  EXPECT_EQ(split_bounds({0.6, {}, 0.0}, 100).second, 100);
  EXPECT_EQ(split_bounds({{}, {}, 0.2}, 100).first, 70);
  EXPECT_EQ(split_bounds({{}, {}, 0.2}, 100).second, 80);
}

TEST(BuildSplits, RowsThatTrainingDoesNotReadAreSaid) {
  Fixture fixture;
  fixture.log = Log(LogLevel::Normal);
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(100)).string();
  const auto said = [&] {
    ::testing::internal::CaptureStderr();
    fixture.build();
    return ::testing::internal::GetCapturedStderr();
  };
  const std::string usual = "10 rows are held out for evaluations (data.split.val_ratio=0 ";
  for (int time = 0; time < 2; ++time)  // the second time from the cache
    EXPECT_NE(said().find(usual), std::string::npos);
  fixture.data.split = {0.7, 0.1, 0.2};
  EXPECT_NE(said().find("20 % of the rows are kept as a test split that training never reads"),
            std::string::npos);
  fixture.data.split = {{}, 0.0, 0.0};
  const std::string none = said();
  EXPECT_EQ(none.find("held out"), std::string::npos) << none;
  EXPECT_EQ(none.find("val: 0 rows"), std::string::npos) << none;
}

TEST(BuildSplits, RatiosShuffleBeforeTheySplit) {
  Fixture fixture;
  fixture.data.split = {0.7, 0.1, 0.2};
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(100)).string();
  const EncodedSplits splits = fixture.build(Splits::All);
  EXPECT_EQ(splits.train.num_rows(), 70);
  EXPECT_EQ(splits.val.num_rows(), 10);
  EXPECT_EQ(splits.test.num_rows(), 20);
  std::set<int64_t> all = sources_of(splits.train);
  EXPECT_GT(*all.rbegin(), 80);  // the split takes rows from the whole file
  all.merge(sources_of(splits.val));
  all.merge(sources_of(splits.test));
  EXPECT_EQ(all.size(), 100u);
  fixture.max_seq_len = 32;  // the number of tokens does not move a row to another split
  EXPECT_EQ(sources_of(fixture.build().val), sources_of(splits.val));
  fixture.seed = 43;
  EXPECT_NE(sources_of(fixture.build().val), sources_of(splits.val));
}

TEST(BuildSplits, RatiosMustSumToOne) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(10)).string();
  fixture.data.split = {0.7, 0.1, 0.2 + 5e-7};
  EXPECT_NO_THROW(fixture.build());
  fixture.data.split = {0.7, 0.1, 0.1};
  EXPECT_NE(fixture.error_of().find("sum to 0.9"), std::string::npos);
  fixture.data.train_path.clear();
  EXPECT_NE(fixture.error_of().find("data.train_path"), std::string::npos);
  const SplitBounds bounds = split_bounds({1.0, 0.0, 0.0}, 7);
  EXPECT_EQ(bounds.first, 7);
  EXPECT_EQ(bounds.second, 7);
}

TEST(BuildSplits, ASplitWithNothingToLearnIsRefusedAndExplained) {
  Fixture fixture;
  fixture.max_seq_len = 4;
  fixture.data.train_path = fixture.folder
                                .write("rows.jsonl",
                                       "{\"prompt\":\"ABCDEF\",\"completion\":\"x\"}\n"
                                       "{\"prompt\":\"ABCDEF\",\"completion\":\"\"}\n")
                                .string();
  fixture.data.val_path = fixture.data.train_path;
  const std::string error = fixture.error_of();
  EXPECT_NE(error.find("rows.jsonl:1: the train split has nothing to learn from: of 2 rows, 2 have "
                       "no token to learn"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("row 1 has 8 tokens, 1 of them supervised, and begins with 1 65 66 67"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("data.truncation_side: left"), std::string::npos) << error;
  fixture.data.train_path = fixture.folder.write("none.jsonl", "\n\n").string();
  EXPECT_NE(fixture.error_of().find("the file has no rows"), std::string::npos);
}

TEST(BuildSplits, RowsWithNothingSupervisedAreDroppedAndCounted) {
  Fixture fixture;
  fixture.data.train_path =
      fixture.folder
          .write("rows.jsonl", numbered_rows(3) + "{\"prompt\":\"p\",\"completion\":\"\"}\n")
          .string();
  fixture.data.val_path = fixture.data.train_path;
  const SplitReport report = fixture.build().reports[0];
  EXPECT_EQ(report.rows_read, 4);
  EXPECT_EQ(report.rows_unsupervised, 1);
  const std::string line = report_line(report);
  EXPECT_NE(line.find("train: 3 rows of "), std::string::npos) << line;
  EXPECT_NE(line.find("% supervised; 1 row dropped without a supervised token"), std::string::npos)
      << line;
}

TEST(BuildSplits, TextsThatAreCutAreAWarning) {
  Fixture fixture;
  fixture.max_seq_len = 4;
  fixture.data.train_path =
      fixture.folder.write("texts.jsonl", "{\"text\":\"ABCDEFGH\"}\n{\"text\":\"A\"}\n").string();
  fixture.data.val_path = fixture.data.train_path;
  const std::vector<std::string> warnings = fixture.build().reports[0].warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("1 text is longer than model.max_seq_len 4, the first is row 1 on "
                             "line 1: the rest is not learnt; data.truncation: split"),
            std::string::npos)
      << warnings[0];
  fixture.data.truncation = "split";
  EXPECT_TRUE(fixture.build().reports[0].warnings.empty());
}

TEST(BuildSplits, RowsThatLoseTheirAnswerAreAWarningWithTheirShare) {
  Fixture fixture;
  fixture.max_seq_len = 6;
  fixture.data.train_path = fixture.folder
                                .write("rows.jsonl",
                                       "{\"prompt\":\"AB\",\"completion\":\"x\"}\n"
                                       "{\"prompt\":\"ABCDEF\",\"completion\":\"x\"}\n"
                                       "{\"prompt\":\"ABC\",\"completion\":\"xyz\"}\n"
                                       "{\"prompt\":\"ABCDEFG\",\"completion\":\"x\"}\n")
                                .string();
  fixture.data.val_path = fixture.data.train_path;
  for (const bool from_cache : {false, true}) {
    ::testing::internal::CaptureStderr();
    const EncodedSplits splits = fixture.build();
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(splits.reports[0].from_cache, from_cache);
    EXPECT_EQ(splits.train.num_rows(), 2);
    const std::string wanted =
        "rows.jsonl: 50.0 % of the rows (2 of 4) lose their answer to model.max_seq_len 6 and are "
        "dropped, the first is row 2 on line 2: raise it, or keep the end of long rows with "
        "data.truncation_side: left";
    const size_t at = said.find(wanted);
    ASSERT_NE(at, std::string::npos) << said;
    EXPECT_EQ(said.find(wanted, at + 1), std::string::npos) << "once for both splits of the file";
  }
  fixture.warns = false;
  ::testing::internal::CaptureStderr();
  fixture.build();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "") << "another rank says it";
  fixture.data.truncation = "keep_end";
  const EncodedSplits kept = fixture.build();
  EXPECT_EQ(kept.train.num_rows(), 4);
  EXPECT_TRUE(kept.reports[0].warnings.empty());
}

TEST(BuildSplits, LongTextsOfPretrainingBecomeSeveralRows) {
  Fixture fixture;
  fixture.task = "pretrain";
  fixture.max_seq_len = 6;
  fixture.data.val_path = fixture.folder.write("val.jsonl", "{\"text\":\"xy\"}\n").string();
  fixture.data.train_path =
      fixture.folder.write("rows.jsonl", "{\"text\":\"abc\"}\n{\"text\":\"abcdefghijkl\"}\n")
          .string();
  for (const bool from_cache : {false, true}) {
    const EncodedSplits splits = fixture.build();
    ASSERT_EQ(splits.train.num_rows(), 4);
    EXPECT_EQ(splits.train.total_supervised_tokens(), 3 + 12);
    const auto last = splits.train.ids(3);
    EXPECT_EQ(std::vector<int32_t>(last.begin(), last.end()),
              (std::vector<int32_t>{'j', 'k', 'l'}));
    EXPECT_EQ(splits.train.source_index(3), 1);
    EXPECT_EQ(splits.reports[0].from_cache, from_cache);
    EXPECT_NE(report_line(splits.reports[0])
                  .find("train: 4 rows of " + fixture.data.train_path + " (text), 19 tokens"),
              std::string::npos)
        << report_line(splits.reports[0]);
    EXPECT_NE(report_line(splits.reports[0]).find("; 1 longer than model.max_seq_len split into 3"),
              std::string::npos);
  }
  fixture.task = "sft";
  EXPECT_EQ(fixture.build().train.num_rows(), 2);
}

TEST(BuildSplits, CacheHitEncodesNothingAndIsEqual) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(50)).string();
  const EncodedSplits fresh = fixture.build(Splits::All);
  EXPECT_EQ(fixture.encoded, 50);
  const EncodedSplits cached = fixture.build(Splits::All);
  EXPECT_EQ(fixture.encoded, 50);
  EXPECT_EQ(cached.train.content_hash(), fresh.train.content_hash());
  EXPECT_EQ(cached.test.content_hash(), fresh.test.content_hash());
  EXPECT_EQ(cached.policy, fresh.policy);
  for (int64_t row = 0; row < fresh.train.num_rows(); ++row) {
    const auto fresh_ids = fresh.train.ids(row);
    const auto cached_ids = cached.train.ids(row);
    EXPECT_TRUE(
        std::equal(fresh_ids.begin(), fresh_ids.end(), cached_ids.begin(), cached_ids.end()));
    const auto fresh_mask = fresh.train.supervised(row);
    const auto cached_mask = cached.train.supervised(row);
    EXPECT_TRUE(
        std::equal(fresh_mask.begin(), fresh_mask.end(), cached_mask.begin(), cached_mask.end()));
    EXPECT_EQ(fresh.train.supervised_tokens(row), cached.train.supervised_tokens(row));
    EXPECT_EQ(fresh.train.source_index(row), cached.train.source_index(row));
  }
  EXPECT_FALSE(fresh.reports[0].from_cache);
  EXPECT_TRUE(cached.reports[0].from_cache);
  SplitReport report = cached.reports[0];
  report.from_cache = false;
  EXPECT_EQ(report_line(report), report_line(fresh.reports[0]));
}

TEST(BuildSplits, EverythingTheTokensDependOnMissesTheCache) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(10)).string();
  int builds = 0;
  const auto expect_miss = [&](const char* what) {
    fixture.build(Splits::All);
    EXPECT_EQ(fixture.encoded, 10 * ++builds) << what;
    fixture.build(Splits::All);
    EXPECT_EQ(fixture.encoded, 10 * builds) << what;
  };
  expect_miss("first");
  fixture.max_seq_len = 32, expect_miss("max_seq_len");
  fixture.seed = 1, expect_miss("seed");
  fixture.encoder_hash = "other", expect_miss("tokenizer");
  fixture.data.truncation = "keep_end", expect_miss("truncation");
  fixture.data.supervise = "all", expect_miss("supervise");
  fixture.data.system_prompt = "S", expect_miss("system prompt");
  fixture.data.max_field_chars = 100, expect_miss("max_field_chars");
  fixture.data.bad_rows = "skip", expect_miss("bad_rows");
  fixture.data.schema = "prompt_completion", expect_miss("schema");
  fixture.data.split = {0.5, 0.25, 0.25}, expect_miss("ratios");
  std::string bytes = numbered_rows(10);
  bytes[bytes.find("p7")] = 'q';
  fixture.folder.write("rows.jsonl", bytes);
  expect_miss("content");
}

TEST(BuildSplits, TheCacheKnowsContentNotNames) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(10)).string();
  fixture.build(Splits::All);
  fixture.data.train_path = fixture.folder.write("copy.jsonl", numbered_rows(10)).string();
  const EncodedSplits splits = fixture.build(Splits::All);
  EXPECT_EQ(fixture.encoded, 10);
  EXPECT_EQ(splits.reports[0].files, std::vector<std::string>{fixture.data.train_path});
}

TEST(BuildSplits, DamagedCacheFilesAreBuiltAnew) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(10)).string();
  fixture.data.split = {1.0, 0.0, 0.0};
  const std::string hash = fixture.build().train.content_hash();
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(fixture.data.cache_dir))
    files.push_back(entry.path());
  EXPECT_EQ(files.size(), 3u);
  int builds = 1;
  for (const size_t at :
       {size_t{0}, size_t{9}, size_t{14}, size_t{17}, size_t{25}, size_t{60}, size_t{900}}) {
    for (const auto& file : files) {
      std::string bytes = read_file(file);
      bytes[at % bytes.size()] = static_cast<char>(bytes[at % bytes.size()] ^ 0x10);
      std::filesystem::remove(file);
      std::ofstream(file, std::ios::binary) << bytes;
    }
    EXPECT_EQ(fixture.build().train.content_hash(), hash) << at;
    EXPECT_EQ(fixture.encoded, 10 * ++builds) << at;
  }
  for (const auto& file : files) {
    const std::string bytes = read_file(file);
    std::filesystem::remove(file);
    std::ofstream(file, std::ios::binary) << bytes.substr(0, bytes.size() - 5);
  }
  EXPECT_EQ(fixture.build().train.content_hash(), hash);
  EXPECT_EQ(fixture.encoded, 10 * ++builds);
}

TEST(BuildSplits, WithoutACacheNothingIsWritten) {
  Fixture fixture;
  fixture.data.cache_dir = "none";
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(10)).string();
  fixture.build();
  fixture.build();
  EXPECT_EQ(fixture.encoded, 20);
  fixture.data.cache_dir = (fixture.folder.path() / "rows.jsonl" / "under-a-file").string();
  EXPECT_EQ(fixture.build().train.num_rows(), 9);  // a cache that cannot be written is no error
}

TEST(BuildSplits, ConcurrentBuildersAgree) {
  Fixture fixture;
  fixture.data.train_path = fixture.folder.write("rows.jsonl", numbered_rows(200)).string();
  std::vector<std::string> hashes(4);
  {
    std::vector<std::jthread> ranks;
    for (std::string& hash : hashes)
      ranks.emplace_back(
          [&fixture, &hash] { hash = fixture.build(Splits::All).train.content_hash(); });
  }
  EXPECT_EQ(std::set<std::string>(hashes.begin(), hashes.end()).size(), 1u);
  const int encoded = fixture.encoded;
  fixture.build(Splits::All);
  EXPECT_EQ(fixture.encoded, encoded);
  for (const auto& entry : std::filesystem::directory_iterator(fixture.data.cache_dir))
    EXPECT_EQ(entry.path().extension(), ".tokens");
}

}  // namespace
}  // namespace convoy::data

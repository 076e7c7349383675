// SPDX-License-Identifier: Apache-2.0
//
// Encodes files into splits: read, detect the schema, render, tokenise, mask, truncate, drop,
// cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/batches/mixed_items.h"
#include "convoy/data/datasets/tokens/token_dataset.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::data {

struct SplitReport {
  std::string name;  // "train", "val", "test"; for a mix "train of NAME"
  std::vector<std::string> files;
  std::string schema;  // detected or set by the user
  int64_t rows_read = 0;
  int64_t rows_unreadable = 0;    // rows skipped by bad_rows = skip
  int64_t rows_unsupervised = 0;  // rows dropped because truncation leaves nothing to learn
  int64_t rows_truncated = 0;
  int64_t rows_split = 0;         // long rows cut by truncation = split
  int64_t windows = 0;            // number of rows that the split rows became
  int64_t rows_dropped_long = 0;  // rows dropped by truncation = drop
  int64_t fields_cut = 0;         // fields cut by max_field_chars
  int64_t rows_own_bos = 0;       // rows read with EncodedRow::own_bos
  int64_t rows_own_weights = 0;   // rows read with EncodedRow::own_weights
  int64_t pairs = 0;              // kept pairs, which are two rows of tokens each
  int64_t rows_undesirable = 0;   // rows with a bad answer, for a task that reads labels
  int64_t tokens = 0;
  int64_t supervised_tokens = 0;
  int64_t weighted_tokens = 0;  // supervised tokens with a weight other than 1
  // Warnings about the whole file: unreadable rows, unread columns, and the warnings of
  // row_warnings.h.
  std::vector<std::string> warnings;
  bool from_cache = false;
  std::string content_hash;  // hash of the source files

  // Calls visit(name, count) for every count. The names are also used in the token cache and in
  // `data encode --json`.
  template <class Report, class Visit>
  static void for_each_count(Report& report, const Visit& visit) {
    visit("rows_read", report.rows_read);
    visit("rows_unreadable", report.rows_unreadable);
    visit("rows_unsupervised", report.rows_unsupervised);
    visit("rows_truncated", report.rows_truncated);
    visit("rows_split", report.rows_split);
    visit("windows", report.windows);
    visit("rows_dropped_long", report.rows_dropped_long);
    visit("fields_cut", report.fields_cut);
    visit("rows_own_bos", report.rows_own_bos);
    visit("rows_own_weights", report.rows_own_weights);
    visit("pairs", report.pairs);
    visit("rows_undesirable", report.rows_undesirable);
    visit("tokens", report.tokens);
    visit("supervised_tokens", report.supervised_tokens);
    visit("weighted_tokens", report.weighted_tokens);
  }
};

// One line such as "train: 7473 rows of train.jsonl (loose), 812345 tokens, 61.3 % supervised; 2
// rows truncated".
std::string report_line(const SplitReport& report);

struct EncodedSplits {
  TokenDataset train;
  TokenDataset val;
  TokenDataset test;
  std::vector<SplitReport> reports;
  // One line about BOS, EOS and the mask ("EOS <|im_end|> is supervised at the end of every answer;
  // no BOS").
  std::string policy;
  std::vector<MixPart> mix = {};  // the parts of `train`; empty without a mix
};

struct EncodeInputs {
  const settings::DataSettings& data;
  std::string task;  // "sft", "pretrain", or "mixed" with the parts in `datasets`
  int64_t max_seq_len = 0;
  uint64_t seed = 0;  // seed of the split shuffle
  const text::Tokenizer& tokenizer;
  const text::ChatTemplate* chat_template;  // nullptr: chat rows are refused
  const Log& log;
  std::vector<settings::MixedDataset> datasets = {};
  bool warns = true;  // false: another rank that reads the same rows logs the warnings
};

enum class Splits { TrainAndVal, Test, All };

// Logs one report line per split. Throws DataError with file and line, also for a split without any
// supervised row. Several processes may call it at once: on each node one process encodes, and the
// others wait and then read the cache.
EncodedSplits encode_splits(const EncodeInputs& inputs, Splits wanted);

}  // namespace convoy::data

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
  std::string schema;  // as detected or forced
  int64_t rows_read = 0;
  int64_t rows_unreadable = 0;    // only with bad_rows = skip
  int64_t rows_unsupervised = 0;  // dropped: nothing to learn after truncation
  int64_t rows_truncated = 0;
  int64_t rows_split = 0;         // long rows, with truncation = split
  int64_t windows = 0;            // the rows that the split rows became
  int64_t rows_dropped_long = 0;  // truncation = drop
  int64_t fields_cut = 0;         // max_field_chars
  int64_t rows_own_bos = 0;       // EncodedRow::own_bos, of all rows read
  int64_t rows_own_weights = 0;   // EncodedRow::own_weights, of all rows read
  int64_t pairs = 0;              // kept rows that are two rows of tokens each
  int64_t rows_undesirable = 0;   // rows of tokens of a task that reads labels
  int64_t tokens = 0;
  int64_t supervised_tokens = 0;
  int64_t weighted_tokens = 0;  // supervised ones with another weight than 1
  // For the whole file: unreadable rows, unread columns, and row_warnings.h.
  std::vector<std::string> warnings;
  bool from_cache = false;
  std::string content_hash;  // hash of the source files

  // By the names that the token cache and `data encode --json` have for them.
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

// "train: 7473 rows of train.jsonl (loose), 812345 tokens, 61.3 % supervised; 2 rows truncated".
std::string report_line(const SplitReport& report);

struct EncodedSplits {
  TokenDataset train;
  TokenDataset val;
  TokenDataset test;
  std::vector<SplitReport> reports;
  // One line: BOS/EOS audit ("EOS <|im_end|> is supervised at the end of every answer; no BOS").
  std::string policy;
  std::vector<MixPart> mix = {};  // the parts of `train`; empty without a mix
};

struct EncodeInputs {
  const settings::DataSettings& data;
  std::string task;  // "sft", "pretrain", or "mixed": the parts of `datasets`
  int64_t max_seq_len = 0;
  uint64_t seed = 0;  // seed of the split shuffle
  const text::Tokenizer& tokenizer;
  const text::ChatTemplate* chat_template;  // may be null: chat rows are then refused
  const Log& log;
  std::vector<settings::MixedDataset> datasets = {};
  bool warns = true;  // false: another rank, which reads the same rows, does
};

enum class Splits { TrainAndVal, Test, All };

// Logs one report line per split. Throws DataError with file and line; refuses a split whose rows
// are all unsupervised. Several processes may call it at once: one of a node encodes while the
// others wait and then read the cache.
EncodedSplits encode_splits(const EncodeInputs& inputs, Splits wanted);

}  // namespace convoy::data

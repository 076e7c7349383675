// SPDX-License-Identifier: Apache-2.0
//
// Encodes all samples of one reader on several threads: truncation, dropping, and a record of every
// row.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/encoding/row_warnings.h"
#include "convoy/data/datasets/schemas/sample_reader.h"

namespace convoy::data {

struct TruncationPolicy {
  int64_t max_tokens = 0;
  Truncation truncation = Truncation::KeepStart;
  std::optional<int32_t> bos_id = {};  // kept in front by KeepEnd
};

// "keep_start", ...; "auto" is Split for task "pretrain", KeepStart for others. Throws ConfigError.
Truncation truncation_named(const std::string& name, const std::string& task);

// Cuts `row`, or each of a pair, to max_tokens by KeepStart or KeepEnd; its first token is
// unsupervised afterwards. Returns true when it was cut.
bool truncate_row(EncodedRow& row, const TruncationPolicy& policy);

// Tokens of `row`, or of the longer one of a pair; supervised ones, or of the one that has fewer.
int64_t longest_tokens(const EncodedRow& row);
int64_t fewest_supervised(const EncodedRow& row);
// Tokens with which both sides of a pair begin.
int64_t shared_tokens(const EncodedRow& chosen, const EncodedRow& rejected);
// A pair of the same tokens.
bool has_equal_sides(const EncodedRow& row);

enum class RowOutcome : uint8_t { Kept, Unreadable, Unsupervised, DroppedLong };

struct RowRecord {
  RowOutcome outcome = RowOutcome::Unreadable;
  bool truncated = false;
  bool own_bos = false;      // EncodedRow::own_bos
  bool own_weights = false;  // EncodedRow::own_weights
  int64_t fields_cut = 0;
  int64_t first_of_pair = 0;  // EncodedRow::first_of_pair
  bool is_desirable = true;   // EncodedRow::is_desirable
};

// A row that was dropped because it has no supervised token, for the explanation.
struct UnsupervisedRow {
  int64_t line = 0;
  int64_t index = 0;
  int64_t tokens = 0;             // before truncation
  int64_t supervised_tokens = 0;  // before truncation
  std::vector<int32_t> ids;       // the first ones
};

// Statistics of a whole file.
struct EncodedFile {
  std::optional<Sample> first_sample;  // the first kept one, else the first that could be encoded
  std::optional<UnsupervisedRow> first_unsupervised;
  RowLosses losses;
};

// Called with every row in file order, one at a time: its record and, for a kept row, its tokens.
using TakeRow = std::function<void(const RowRecord& record, EncodedRow row)>;

// Rows to be split are passed whole. Rows are parsed, converted and given to `encode` on
// `num_threads` threads at once; at most a few hundred are in memory. The first error in file order
// is thrown, independent of timing.
EncodedFile encode_file(SampleReader& reader,
                        const std::function<EncodedRow(const Sample&)>& encode,
                        const TruncationPolicy& policy, int num_threads, const TakeRow& take);

}  // namespace convoy::data

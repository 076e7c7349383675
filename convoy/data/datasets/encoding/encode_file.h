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
  std::optional<int32_t> bos_id = {};  // a BOS that KeepEnd keeps at the start
};

// The truncation for a name such as "keep_start"; "auto" is Split for the task "pretrain", else
// KeepStart. Throws ConfigError.
Truncation truncation_named(const std::string& name, const std::string& task);

// Cuts `row`, or each side of a pair, to max_tokens with KeepStart or KeepEnd. The first token is
// then unsupervised. Returns true when tokens were cut.
bool truncate_row(EncodedRow& row, const TruncationPolicy& policy);

// Number of tokens of `row`, or of the longer side of a pair; and number of supervised tokens, or
// of the side with fewer.
int64_t longest_tokens(const EncodedRow& row);
int64_t fewest_supervised(const EncodedRow& row);
// Number of tokens with which both sides of a pair begin.
int64_t shared_tokens(const EncodedRow& chosen, const EncodedRow& rejected);
// True for a pair whose sides have the same tokens.
bool has_equal_sides(const EncodedRow& row);

enum class RowOutcome : uint8_t { Kept, Unreadable, Unsupervised, DroppedLong };

struct RowRecord {
  RowOutcome outcome = RowOutcome::Unreadable;
  bool truncated = false;
  bool own_bos = false;      // see EncodedRow::own_bos
  bool own_weights = false;  // see EncodedRow::own_weights
  int64_t fields_cut = 0;
  int64_t first_of_pair = 0;  // see EncodedRow::first_of_pair
  bool is_desirable = true;   // see EncodedRow::is_desirable
};

// A row that was dropped because it has no supervised token. The log explains it to the user.
struct UnsupervisedRow {
  int64_t line = 0;
  int64_t index = 0;
  int64_t tokens = 0;             // before truncation
  int64_t supervised_tokens = 0;  // before truncation
  std::vector<int32_t> ids;       // the first ids
};

// Statistics of a whole file.
struct EncodedFile {
  std::optional<Sample> first_sample;  // sample of the first kept row, or first encoded row
  std::optional<UnsupervisedRow> first_unsupervised;
  RowLosses losses;
};

// Called with every row in file order, one at a time: its record and, for a kept row, its tokens.
using TakeRow = std::function<void(const RowRecord& record, EncodedRow row)>;

// Encodes all rows of `reader`. Rows are parsed, converted and given to `encode` on `num_threads`
// threads at once; at most a few hundred rows are in memory. Rows for Truncation::Split are passed
// to `take` whole. Throws the first error in file order, independent of timing.
EncodedFile encode_file(SampleReader& reader,
                        const std::function<EncodedRow(const Sample&)>& encode,
                        const TruncationPolicy& policy, int num_threads, const TakeRow& take);

}  // namespace convoy::data

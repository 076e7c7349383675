// SPDX-License-Identifier: Apache-2.0
//
// The records in the segments of a run, as bytes: rows as they were read, texts, and finished rows.
// Each record is a JSON object.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>

#include "convoy/farm/process/ledger/segment.h"
#include "convoy/farm/process/pipeline/row_program.h"

namespace convoy::process {

// The time and tokens that a row cost.
struct RowCost {
  int64_t texts = 0;
  int64_t prompt_tokens = 0;
  int64_t new_tokens = 0;
};

// A finished row as the ledger keeps it.
struct StoredRow {
  int64_t index = 0;
  int64_t source_index = 0;
  std::string hash = {};
  FinishedRow row = {};
  RowCost cost = {};
};

// SHA-256 of the row with its keys sorted, without blanks; hexadecimal.
std::string row_hash(const nlohmann::ordered_json& value);

// Each decode_ function throws DataError for bytes that its encode_ function did not write.
std::string encode_input(const InputRow& row);
InputRow decode_input(std::string_view bytes);
std::string encode_text(int64_t row_index, const KeptStep& step);
// Throws DataError for a text of another row.
KeptStep decode_text(int64_t row_index, std::string_view bytes);
std::string encode_row(const StoredRow& row);
StoredRow decode_row(std::string_view bytes);

// The location of a record: its position in a segment, or, if nodes share no folder, the record
// itself.
using RecordPlace = std::variant<SegmentOffset, std::string>;

// The JSON is [file, offset, length], or the record as a string.
nlohmann::json encode_place(const RecordPlace& place);
RecordPlace decode_place(const nlohmann::json& place);
RecordPlace parse_place(std::string_view text);

}  // namespace convoy::process

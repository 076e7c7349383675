// SPDX-License-Identifier: Apache-2.0
//
// The row schemas of training data: recognised by the keys of a row, never guessed, or set by the
// user. Each reduces to a Sample.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/settings/train_settings.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/schemas/ranked_rows.h"

namespace convoy::data {

enum class Schema {
  Messages,
  ShareGpt,
  Alpaca,
  PromptCompletion,
  Triple,
  Rendered,
  Text,
  Preference,
  Ranked,
  UnpairedPreference,
  Loose
};

std::string_view schema_name(Schema schema);  // as in data.schema: "messages", "sharegpt"
Schema schema_named(std::string_view name);   // Throws ConfigError

// The policy for rows that have unread columns.
enum class UnreadPolicy { Name, Refuse };

struct SchemaConfig {
  std::string schema = "auto";
  // "pretrain" reads rows of instruction, input and output as text. A preference task reads only
  // preference rows, and for other tasks `auto` never chooses a preference schema.
  std::string task = "sft";
  std::string text_field = "text";
  std::string text_rows = "document";  // cutting of .txt files: "document" or "line"
  std::string system_prompt = {};      // system turn for chat rows without one
  // Template variables of the whole run: null or an object.
  nlohmann::ordered_json template_kwargs = {};
  int64_t max_field_chars = 0;  // 0 = off
  UnreadPolicy unread_columns = UnreadPolicy::Name;
  RankedPairs ranked_pairs = RankedPairs::BestVsWorst;
  static SchemaConfig from(const settings::DataSettings& data, std::string task);
};

// The rows of a file, after ranked lists became pairs if the settings allow ranked lists. `counts`
// counts these lists.
std::unique_ptr<RowSource> rows_by_schema(std::unique_ptr<RowSource> rows,
                                          const SchemaConfig& config, BadRows bad_rows,
                                          std::shared_ptr<RankedCounts> counts);

// Every schema whose keys the row has; `loose` only when no other schema matches. Null values count
// as absent.
std::vector<Schema> matching_schemas(const Row& row, const SchemaConfig& config);

// The schema of the row: the user's choice, or the only schema that matches. Throws DataError that
// names the matching schemas, or the keys of the row.
Schema detect_schema(const Row& row, const SchemaConfig& config);

struct ConvertedRow {
  Sample sample;
  Schema schema = Schema::Messages;
  int64_t fields_cut = 0;                // number of texts cut to max_field_chars
  std::vector<std::string> unread = {};  // unread columns; an empty column counts as absent
};

// Converts a row of a known schema. Throws DataError with file and line when a field is missing or
// has the wrong type.
ConvertedRow convert_row(const Row& row, Schema schema, const SchemaConfig& config);

// Calls detect_schema() and convert_row(), for a row whose answer is learnt or is a reference.
// Throws DataError also for an answer that the row itself calls bad (KTO's `label: false`).
ConvertedRow convert_to_learn(const Row& row, const SchemaConfig& config);

// Throws DataError when `config` refuses rows with unread columns and `unread` names some.
void refuse_unread(const Sample& sample, const std::vector<std::string>& unread,
                   const SchemaConfig& config);

// Converts a row to a prompt to continue: a row with `prompt` alone (a string or messages), or a
// row of any schema above.
ConvertedRow convert_prompt(const Row& row, const SchemaConfig& config);

}  // namespace convoy::data

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

std::string_view schema_name(Schema schema);  // as in data.schema: "messages", "sharegpt", ...
Schema schema_named(std::string_view name);   // Throws ConfigError

// The treatment of rows with columns that nothing reads.
enum class UnreadPolicy { Name, Refuse };

struct SchemaConfig {
  std::string schema = "auto";
  // "pretrain" reads instruction, input, output rows as text; a task of preferences reads those
  // alone, and `auto` takes none for others.
  std::string task = "sft";
  std::string text_field = "text";
  std::string text_rows = "document";  // for .txt files: or "line"
  std::string system_prompt = {};      // added to chat rows without a system turn
  // Variables of the whole run: null or an object.
  nlohmann::ordered_json template_kwargs = {};
  int64_t max_field_chars = 0;  // 0 = off
  UnreadPolicy unread_columns = UnreadPolicy::Name;
  RankedPairs ranked_pairs = RankedPairs::BestVsWorst;
  static SchemaConfig from(const settings::DataSettings& data, std::string task);
};

// The rows of a file as these settings read them: where they may be ranked lists, the pairs of
// those, counted in `counts`.
std::unique_ptr<RowSource> rows_by_schema(std::unique_ptr<RowSource> rows,
                                          const SchemaConfig& config, BadRows bad_rows,
                                          std::shared_ptr<RankedCounts> counts);

// Every schema whose keys the row has; `loose` only when no other matches. Null values count as
// absent.
std::vector<Schema> matching_schemas(const Row& row, const SchemaConfig& config);

// The one schema of the row: the user's, or the only match. Throws DataError that names the
// candidates, or the keys.
Schema detect_schema(const Row& row, const SchemaConfig& config);

struct ConvertedRow {
  Sample sample;
  Schema schema = Schema::Messages;
  int64_t fields_cut = 0;  // by max_field_chars
  std::vector<std::string> unread =
      {};  // columns that the sample has nothing of; empty ones count as absent
};

// Throws DataError with file and line when a field is missing or has the wrong type.
ConvertedRow convert_row(const Row& row, Schema schema, const SchemaConfig& config);

// detect_schema() and convert_row() for a row whose answer is learnt or compared with. Throws
// DataError also for an answer that the row itself calls a bad one (KTO's `label: false`).
ConvertedRow convert_to_learn(const Row& row, const SchemaConfig& config);

// Throws DataError when `config` refuses rows with unread columns and this one has some.
void refuse_unread(const Sample& sample, const std::vector<std::string>& unread,
                   const SchemaConfig& config);

// Converts a row to continue: prompt (string or messages) alone, messages, text, or any schema
// above.
ConvertedRow convert_prompt(const Row& row, const SchemaConfig& config);

}  // namespace convoy::data

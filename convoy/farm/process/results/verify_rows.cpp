// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/results/verify_rows.h"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <vector>

#include "convoy/core/base/suggest.h"
#include "convoy/data/answers/extraction.h"
#include "convoy/farm/process/parsing/any_reference.h"

namespace convoy::process {
namespace {

using answers::Author;
using nlohmann::ordered_json;

ErrorLocation location_of(const data::Row& row, const std::string& key, std::string hint) {
  return {.file = row.file, .line = row.line, .key = key, .hint = std::move(hint)};
}

const ordered_json& field_of(const data::Row& row, const std::string& key, std::string_view flag) {
  if (!row.value.is_object())
    throw DataError(
        fmt::format("row {}: wanted an object, found {}", row.index + 1, row.value.type_name()),
        location_of(row, key, "give rows that are JSON objects, or a table"));
  const auto found = row.value.find(key);
  if (found != row.value.end()) return *found;
  std::vector<std::string> keys;
  for (const auto& [name, value] : row.value.items()) keys.push_back(name);
  throw DataError(fmt::format("row {} has no field `{}`{}; it has {}", row.index + 1, key,
                              did_you_mean(key, keys), fmt::join(keys, ", ")),
                  location_of(row, key, fmt::format("name the field with {}", flag)));
}

// Null is an empty answer. A value that is neither a text nor a plain value cannot be an answer.
std::string text_of(const data::Row& row, const std::string& key, const ordered_json& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  if (value.is_primitive()) return value.dump();
  throw DataError(fmt::format("row {}: field `{}` should be text or a number, found {}",
                              row.index + 1, key, value.type_name()),
                  location_of(row, key, "name a field that holds the answer or a text around it"));
}

std::vector<std::string> gold_texts(const data::Row& row, const std::string& key) {
  const ordered_json& value = field_of(row, key, "--gold-field");
  if (!value.is_array()) return {text_of(row, key, value)};
  std::vector<std::string> texts;
  for (const ordered_json& element : value) texts.push_back(text_of(row, key, element));
  return texts;
}

void count(VerifyCounts& counts, const std::string& verdict) {
  ++counts.rows;
  ++(verdict == "yes" ? counts.yes : verdict == "no" ? counts.no : counts.unknown);
}

}  // namespace

ordered_json verified_row(const data::Row& row, const VerifyFields& fields) {
  const std::vector<std::string> golds = gold_texts(row, fields.gold);
  const std::string prediction =
      text_of(row, fields.prediction, field_of(row, fields.prediction, "--prediction-field"));
  ordered_json answer = nullptr;
  if (golds.size() == 1) {
    answer = answers::extract_answer(golds.front(), Author::Reference);
  } else {
    answer = ordered_json::array();
    for (const std::string& gold : golds)
      answer.push_back(answers::extract_answer(gold, Author::Reference));
  }
  ordered_json verified = row.value;
  verified["verdict"] = answers::verdict_name(verdict_on(golds, prediction));
  verified["gold_answer"] = std::move(answer);
  verified["prediction_answer"] = answers::extract_answer(prediction, Author::Model);
  return verified;
}

VerifyCounts verify_rows(const std::filesystem::path& path, const VerifyFields& fields,
                         data::BadRows policy,
                         const std::function<void(const ordered_json&)>& write) {
  VerifyCounts counts;
  const std::unique_ptr<data::RowSource> source = data::open_rows(path);
  int64_t rows_seen = 0;
  while (true) {
    bool was_read = false;
    ordered_json verified;
    try {
      const std::optional<data::Row> row = source->next();
      if (!row) return counts;
      was_read = true;
      rows_seen = row->index + 1;
      verified = verified_row(*row, fields);
    } catch (const DataError& error) {
      if (!was_read && !source->row_is_lost()) throw;
      if (!was_read) ++rows_seen;
      counts.bad_rows.add(error, rows_seen - 1, rows_seen, policy);
      continue;
    }
    count(counts, verified["verdict"].get_ref<const std::string&>());
    write(verified);
  }
}

}  // namespace convoy::process

// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/evaluate/sample_files.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"

namespace convoy::evaluate {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

// The type of the value under `key`, for error messages.
std::string found_of(const json& row, const char* key) {
  if (const auto value = row.find(key); value != row.end())
    return value->is_null() ? "null" : fmt::format("a JSON {}", value->type_name());
  std::vector<std::string> keys;
  for (const auto& [name, value] : row.items()) keys.push_back(name);
  return keys.empty() ? "no keys" : fmt::format("the keys {}", fmt::join(keys, ", "));
}

std::string text_of(const json& row, const char* key, const fs::path& path, int64_t line) {
  const auto value = row.find(key);
  if (value == row.end() || !value->is_string())
    throw DataError(
        fmt::format("wanted \"{}\" as text in each row of samples, found {}", key,
                    found_of(row, key)),
        {.file = path.string(),
         .line = line,
         .key = key,
         .hint = std::string_view(key) == "pred" ? "an empty text is a prediction that counts 0"
                                                 : "write it in quotes"});
  return value->get<std::string>();
}

std::vector<std::string> references_of(const json& row, const fs::path& path, int64_t line) {
  const auto value = row.find("ref");
  if (value == row.end() || !value->is_array()) return {text_of(row, "ref", path, line)};
  const bool are_texts =
      std::all_of(value->begin(), value->end(), [](const json& text) { return text.is_string(); });
  if (value->empty() || !are_texts)
    throw DataError(fmt::format("wanted \"ref\" as a text or a list of at least one text, found {}",
                                value->empty() ? "an empty list" : "a list of other things"),
                    {.file = path.string(),
                     .line = line,
                     .key = "ref",
                     .hint = "write the right answer as a text, or a list of right answers"});
  return value->get<std::vector<std::string>>();
}

}  // namespace

ordered_json sample_row(const ScoredAnswer& sample) {
  const ordered_json ref =
      sample.refs.size() == 1 ? ordered_json(sample.refs[0]) : ordered_json(sample.refs);
  ordered_json row = ordered_json::object();
  if (sample.input) row["input"] = *sample.input;
  row["pred"] = sample.pred;
  row["ref"] = ref;
  return row;
}

void write_samples(const fs::path& path, const std::vector<ScoredAnswer>& samples) {
  AtomicFile file(path);
  for (const ScoredAnswer& sample : samples)
    file.write(sample_row(sample).dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
               "\n");
  file.commit();
}

std::vector<ScoredAnswer> read_samples(const fs::path& path) {
  const std::string text = read_file(path);
  std::vector<ScoredAnswer> samples;
  int64_t line_number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++line_number;
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const json row = json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!row.is_object())
      throw DataError("wanted one JSON object per line",
                      {.file = path.string(),
                       .line = line_number,
                       .hint = "write {\"pred\": TEXT, \"ref\": TEXT} on each line"});
    std::optional<std::string> input;
    if (row.contains("input")) input = text_of(row, "input", path, line_number);
    samples.push_back({.input = std::move(input),
                       .pred = text_of(row, "pred", path, line_number),
                       .refs = references_of(row, path, line_number)});
  }
  return samples;
}

}  // namespace convoy::evaluate

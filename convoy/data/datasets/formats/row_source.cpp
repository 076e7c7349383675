// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/row_source.h"

#include <algorithm>
#include <array>

#include "convoy/core/base/counted.h"
#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {
namespace {

constexpr int64_t kListedBadRows = 20;
constexpr int64_t kToleratedBadRows = 100;

// Columns that may hold JSON in a text, and the member of tool calls that may. Damage in any other
// text stays as its author wrote it.
constexpr std::array<std::string_view, 5> kJsonColumns = {"messages", "conversations", "tools",
                                                          "documents", "chat_template_kwargs"};
constexpr std::string_view kArguments = "arguments";

int64_t replace_in_json(nlohmann::ordered_json& value) {
  if (!value.is_string()) return 0;
  auto& text = value.get_ref<std::string&>();
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string::npos && (text[first] == '{' || text[first] == '[');
  return is_json ? replace_damaged_text(text) : 0;
}

int64_t replace_in_arguments(nlohmann::ordered_json& value) {
  if (!value.is_structured()) return 0;
  int64_t replaced = 0;
  for (auto& [key, member] : value.items())
    replaced += value.is_object() && key == kArguments ? replace_in_json(member)
                                                       : replace_in_arguments(member);
  return replaced;
}

// Replaces damage in the JSON texts within a row, which would make them unreadable. Returns the
// number of replaced characters.
int64_t replace_in_json_members(nlohmann::ordered_json& row) {
  if (!row.is_object()) return 0;
  int64_t replaced = replace_in_arguments(row);
  for (const std::string_view column : kJsonColumns)
    if (const auto found = row.find(column); found != row.end())
      replaced += replace_in_json(*found);
  return replaced;
}

}  // namespace

BadRows bad_rows_named(std::string_view name) {
  return name == "skip" ? BadRows::Skip : name == "replace" ? BadRows::Replace : BadRows::Error;
}

void BadRowList::add(const DataError& error, int64_t index, int64_t rows_seen, BadRows policy) {
  if (policy != BadRows::Skip) throw DataError(error);
  ++count_;
  if (static_cast<int64_t>(first_.size()) < kListedBadRows)
    first_.push_back({error.location().line, index, error.what()});
  if (count_ > kToleratedBadRows && count_ * 10 > rows_seen)
    throw DataError(
        fmt::format("{} of the first {} rows are unreadable, too many to skip; the last: {}",
                    count_, rows_seen, error.what()),
        {.file = error.location().file,
         .line = error.location().line,
         .key = error.location().key,
         .hint = "name the rows' own format, or correct them: `convoy data validate` lists them"});
}

void BadRowList::add_replaced(int64_t characters) {
  rows_replaced_ += characters > 0;
  characters_replaced_ += characters;
}

std::string BadRowList::summary() const {
  if (rows_replaced_ > 0)
    return fmt::format("{} of {} {} damaged and replaced by U+FFFD",
                       counted(characters_replaced_, "character"), counted(rows_replaced_, "row"),
                       characters_replaced_ == 1 ? "was" : "were");
  if (count_ == 0) return {};
  std::vector<BadRow> listed = first_;  // sorted below: threads may add out of order
  std::sort(listed.begin(), listed.end(),
            [](const BadRow& a, const BadRow& b) { return a.index < b.index; });
  std::string lines;
  for (const BadRow& row : listed)
    lines +=
        fmt::format("{}{}", lines.empty() ? "" : ", ", row.line > 0 ? row.line : row.index + 1);
  if (count_ > kListedBadRows) lines += ", ...";
  const char* noun = !listed.empty() && listed[0].line > 0 ? "line" : "row";
  return fmt::format("{} unreadable row{} skipped: {}{} {}; first: {}", count_,
                     count_ == 1 ? "" : "s", noun, count_ == 1 ? "" : "s", lines,
                     listed.empty() ? "" : listed[0].message);
}

RowPosition position_in(const RawRow& raw, size_t byte) {
  const std::string_view before =
      std::string_view(raw.text).substr(0, std::max<size_t>(byte, 1) - 1);
  const size_t newline = before.rfind('\n');
  if (newline == std::string_view::npos)
    return {raw.row.line, raw.column + static_cast<int64_t>(before.size())};
  return {raw.row.line + std::count(before.begin(), before.end(), '\n'),
          static_cast<int64_t>(before.size() - newline)};
}

Row parse_row(RawRow raw, BadRows bad_rows) {
  const bool replaces = bad_rows == BadRows::Replace;
  if (raw.text.empty()) {
    if (replaces) raw.row.characters_replaced = replace_in_json_members(raw.row.value);
    return std::move(raw.row);
  }
  if (replaces) raw.row.characters_replaced = replace_damaged_text(raw.text);
  try {
    raw.row.value = parse_json_row(raw.text, {.file = raw.row.file, .line = raw.row.line});
  } catch (const JsonRowError& error) {
    const RowPosition there = position_in(raw, error.byte());
    const bool is_damaged = replace_damaged_text(raw.text) > 0;
    throw error.at(there.line, there.column, is_damaged ? kReplaceDamageHint : "");
  }
  if (replaces) raw.row.characters_replaced += replace_in_json_members(raw.row.value);
  return std::move(raw.row);
}

std::optional<RawRow> RowSource::next_raw() {
  std::optional<Row> row = next();
  if (!row) return std::nullopt;
  return RawRow{std::move(*row), {}, 1};
}

int64_t RowSource::skip(int64_t count) {
  for (int64_t skipped = 0; skipped < count; ++skipped) {
    try {
      if (!next()) return skipped;
    } catch (const DataError&) {
      if (!row_is_lost()) throw;
    }
  }
  return count;
}

bool names_rows(const std::filesystem::path& path) {
  return RowFormats::built_in().named_by(path) != nullptr;
}

bool names_text(const std::filesystem::path& path) {
  const RowFormat* const format = RowFormats::built_in().named_by(path);
  return format != nullptr && format->is_text;
}

std::string known_row_formats() { return RowFormats::built_in().readable(); }

std::unique_ptr<RowSource> open_rows(const std::filesystem::path& path, TextRows text_rows) {
  return RowFormats::built_in().open(path, text_rows);
}

}  // namespace convoy::data

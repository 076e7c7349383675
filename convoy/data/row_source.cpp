// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/row_source.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "convoy/data/byte_reader.h"
#include "convoy/data/byte_stream.h"
#include "convoy/data/row_formats.h"

namespace convoy::data {
namespace {

constexpr int64_t kListedBadRows = 20;
constexpr int64_t kToleratedBadRows = 100;

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

// A file that begins with '{' is JSON lines when its first line is one whole value and is not the {"data": [...]} form.
bool is_json_lines(const std::filesystem::path& path) {
  ByteReader reader(path);
  std::string line;
  bool fits = true;
  while (reader.peek() != ByteReader::kEnd && is_blank(line)) {
    line.clear();
    fits = reader.read_line(line, kMaxRowBytes);
  }
  if (!fits) return false;
  try {
    const auto value = parse_json_row(line, {});
    const auto data = value.find("data");
    return data == value.end() || !data->is_array();
  } catch (const JsonRowError&) {
    return false;
  } catch (const DataError&) {  // JSON, with a number that is refused where the row is read
    return true;
  }
}

// First byte of the file that is not space, or 0.
char first_byte(const std::filesystem::path& path) {
  ByteReader reader(path);
  while (reader.peek() != ByteReader::kEnd) {
    const char byte = static_cast<char>(reader.get());
    if (!is_blank(std::string_view(&byte, 1))) return byte;
  }
  return '\0';
}

std::unique_ptr<RowSource> open_json(const std::filesystem::path& path) {
  return first_byte(path) == '{' && is_json_lines(path) ? open_json_lines(path)
                                                        : open_json_list(path);
}

bool has_parquet_magic(const std::filesystem::path& path) {
  ByteReader reader(path);
  std::string magic;
  while (magic.size() < 4 && reader.peek() != ByteReader::kEnd)
    magic.push_back(static_cast<char>(reader.get()));
  return magic == "PAR1";
}

std::string lower_suffix(const std::filesystem::path& path) {
  std::string suffix = path.extension().string();
  std::transform(suffix.begin(), suffix.end(), suffix.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return suffix;
}

bool is_row_suffix(const std::string& suffix) {
  constexpr std::array<std::string_view, 7> kSuffixes = {".jsonl", ".ndjson",  ".json", ".csv",
                                                         ".tsv",   ".parquet", ".txt"};
  return std::find(kSuffixes.begin(), kSuffixes.end(), suffix) != kSuffixes.end();
}

}  // namespace

BadRows bad_rows_named(std::string_view name) {
  return name == "skip" ? BadRows::Skip : BadRows::Error;
}

void BadRowList::add(const DataError& error, int64_t index, int64_t rows_seen, BadRows policy) {
  if (policy == BadRows::Error) throw DataError(error);
  ++count_;
  if (static_cast<int64_t>(first_.size()) < kListedBadRows)
    first_.push_back({error.place().line, index, error.what()});
  if (count_ > kToleratedBadRows && count_ * 10 > rows_seen)
    throw DataError(
        fmt::format("{} of the first {} rows are unreadable, too many to skip; the last: {}",
                    count_, rows_seen, error.what()),
        error.place());
}

std::string BadRowList::summary() const {
  std::vector<BadRow> listed = first_;  // threads may have added them out of order
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

Row parse_row(RawRow raw) {
  if (raw.text.empty()) return std::move(raw.row);
  try {
    raw.row.value = parse_json_row(raw.text, {.file = raw.row.file, .line = raw.row.line});
  } catch (const JsonRowError& error) {
    const RowPosition there = position_in(raw, error.byte());
    throw error.at(there.line, there.column);
  }
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
  return is_row_suffix(lower_suffix(without_compression(path)));
}

bool names_text(const std::filesystem::path& path) {
  return lower_suffix(without_compression(path)) == ".txt";
}

std::string known_row_formats() {
  return ".jsonl, .json, .csv, .tsv, .txt (all with .gz, .zst or .bz2 behind it too) or .parquet";
}

std::unique_ptr<RowSource> open_rows(const std::filesystem::path& path, TextRows text_rows) {
  const Compression compression = compression_of(path);
  const std::string suffix = lower_suffix(without_compression(path));
  if (suffix == ".jsonl" || suffix == ".ndjson") return open_json_lines(path);
  if (suffix == ".json") return open_json(path);
  if (suffix == ".csv") return open_csv(path, ',');
  if (suffix == ".tsv") return open_csv(path, '\t');
  if (suffix == ".txt") return open_text(path, text_rows);
  if (suffix == ".parquet" || has_parquet_magic(path)) {
    if (compression != Compression::None)
      throw DataError(
          fmt::format("a Parquet file within {} is not read", compression_name(compression)),
          {.file = path.string(), .hint = "unpack it: its columns are packed anyhow"});
    return open_parquet(path);
  }
  const char byte = first_byte(path);
  if (byte == '{' || byte == '[') return open_json(path);
  throw DataError("neither the file's name nor its content says what it is",
                  {.file = path.string(), .hint = fmt::format("wanted {}", known_row_formats())});
}

}  // namespace convoy::data

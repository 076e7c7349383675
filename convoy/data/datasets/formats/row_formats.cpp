// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/formats/row_formats.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "convoy/core/base/lower_case.h"
#include "convoy/data/datasets/formats/csv_rows.h"
#include "convoy/data/datasets/formats/json_rows.h"
#include "convoy/data/datasets/formats/parquet_rows.h"
#include "convoy/data/datasets/formats/text_rows.h"

namespace convoy::data {
namespace {

std::string lower_suffix(const std::filesystem::path& path) {
  return lower_case(path.extension().string());
}

template <class Fits>
std::string suffixes_of(const std::vector<RowFormat>& formats, Fits fits) {
  std::vector<std::string_view> packed;
  std::vector<std::string_view> plain;
  for (const RowFormat& format : formats)
    if (fits(format))
      (format.may_be_compressed ? packed : plain).push_back(format.suffixes.front());
  return fmt::format("{} (all with .gz, .zst or .bz2 behind it too){}{}", fmt::join(packed, ", "),
                     plain.empty() ? "" : " or ", fmt::join(plain, " or "));
}

}  // namespace

const RowFormats& RowFormats::built_in() {
  // The only registry of formats. The content of a file is tested in this order.
  static const RowFormats formats({
      json_lines_format(),
      json_format(),
      csv_format(),
      tsv_format(),
      text_format(),
      parquet_format(),
  });
  return formats;
}

const RowFormat* RowFormats::named_by(const std::filesystem::path& path) const {
  const std::string suffix = lower_suffix(without_compression(path));
  const auto found = std::find_if(list_.begin(), list_.end(), [&](const RowFormat& format) {
    return std::find(format.suffixes.begin(), format.suffixes.end(), suffix) !=
           format.suffixes.end();
  });
  return found == list_.end() ? nullptr : &*found;
}

std::unique_ptr<RowSource> RowFormats::open(const std::filesystem::path& path,
                                            TextRows text_rows) const {
  ByteReader file(path);
  const RowFormat* format = named_by(path);
  if (format == nullptr) {
    const auto found = std::find_if(list_.begin(), list_.end(), [&](const RowFormat& one) {
      return one.sniff != nullptr && one.sniff(file);
    });
    if (found == list_.end())
      throw DataError("neither the file's name nor its content shows its format",
                      {.file = path.string(), .hint = fmt::format("wanted {}", readable())});
    format = &*found;
  }
  if (!format->may_be_compressed && file.compression() != Compression::None)
    throw DataError(fmt::format("a {} file within {} is not read", format->name,
                                compression_name(file.compression())),
                    {.file = path.string(), .hint = "unpack it: its content is compressed anyway"});
  return format->open(std::move(file), text_rows);
}

const RowFormat& RowFormats::to_write(const std::filesystem::path& path) const {
  const RowFormat* const format = named_by(path);
  const bool is_compressed = without_compression(path) != path;
  if (format != nullptr && format->create != nullptr &&
      (format->may_be_compressed || !is_compressed))
    return *format;
  throw ConfigError(
      fmt::format("the suffix of the output is no known format: `{}`", path.filename().string()),
      {.file = path.string(), .hint = fmt::format("end it in {}", writable())});
}

std::string RowFormats::readable() const {
  return suffixes_of(list_, [](const RowFormat&) { return true; });
}

std::string RowFormats::writable() const {
  return suffixes_of(list_, [](const RowFormat& format) { return format.create != nullptr; });
}

}  // namespace convoy::data

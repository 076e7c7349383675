// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_data_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/json_depth.h"

namespace convoy::experiments {
namespace {

constexpr const char* kWanted = "wanted a JSON list of pairs of a teacher and its data";

// The position of the byte at `offset`, as "line 3, column 12".
std::string position_text(const std::string& text, size_t offset) {
  const size_t begin = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  const auto lines = std::count(text.begin(), text.begin() + static_cast<int64_t>(offset), '\n');
  return fmt::format("line {}, column {}", lines + 1,
                     begin == std::string::npos ? offset + 1 : offset - begin);
}

// The reason in the message "... - invalid literal; last read: 'N'": the text after the dash.
std::string reason_of(const nlohmann::json::parse_error& error) {
  const std::string whole = error.what();
  const size_t dash = whole.find(" - ");
  return whole.substr(dash == std::string::npos ? 0 : dash + 3, 200);
}

nlohmann::json parse_text(const std::string& text, const std::string& file) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw DataError(
        fmt::format("{}, found an empty file", kWanted),
        {.file = file, .hint = "write [{\"alpha\": x, \"w\": [..]}, ...], an entry for each seed"});
  if (nested_deeper(text))
    throw DataError(fmt::format("JSON nested deeper than {} levels", kMostJsonLevels),
                    {.file = file, .hint = "write a flat list of entries"});
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const size_t offset = std::min(std::max<size_t>(error.byte, 1) - 1, text.size());
    throw DataError(
        fmt::format("not valid JSON at {}: {}", position_text(text, offset), reason_of(error)),
        {.file = file, .hint = "JSON has no NaN, no comments and no comma at the end of a list"});
  } catch (const nlohmann::json::out_of_range& error) {
    // The parser quotes a number that is too large for a double, but gives no position.
    const std::string whole = error.what();
    const size_t quote = whole.find('\'');
    const std::string number = whole.substr(quote + 1, whole.rfind('\'') - quote - 1);
    throw DataError(
        fmt::format("the number {:.40} is out of range at {}", number,
                    position_text(text, std::min(text.find(number), text.size()))),
        {.file = file, .hint = "write a number that fits into a double, below 1.8e308"});
  }
}

SsmDataEntry read_entry(const nlohmann::json& entry, size_t seed, const std::string& file) {
  if (entry.is_object() && entry.contains("w") && entry.contains("w_sequences"))
    throw DataError(
        fmt::format("the entry of seed {} has both `w` and `w_sequences`: {}", seed,
                    entry.dump().substr(0, 100)),
        {.file = file, .hint = "keep one: w is one sequence, w_sequences a list of them"});
  try {
    SsmDataEntry read{.alpha = entry.at("alpha").get<double>(), .w = {}};
    if (entry.contains("w_sequences")) {
      entry.at("w_sequences").get_to(read.w);
    } else {
      read.w = {entry.at("w").get<std::vector<double>>()};
    }
    return read;
  } catch (const nlohmann::json::exception&) {
    throw DataError(
        fmt::format("the entry of seed {}: wanted {{\"alpha\": x, \"w\": [..]}} or {{\"alpha\": x, "
                    "\"w_sequences\": [[..], ..]}}, found {}",
                    seed, entry.dump().substr(0, 100)),
        {.file = file, .hint = "correct the entry of this seed"});
  }
}

}  // namespace

std::vector<SsmDataEntry> read_ssm_data(const std::string& text, const std::string& file) {
  const nlohmann::json list = parse_text(text, file);
  if (!list.is_array())
    throw DataError(fmt::format("{}, found {}", kWanted,
                                list.is_null() ? "null" : fmt::format("one {}", list.type_name())),
                    {.file = file,
                     .hint = list.is_object() ? "put it in [ and ]"
                                              : "write an entry for each seed into [ and ]"});
  if (list.empty())
    throw DataError(fmt::format("{}, found an empty one", kWanted),
                    {.file = file, .hint = "write an entry for each seed into [ and ]"});
  std::vector<SsmDataEntry> entries;
  for (const auto& entry : list) entries.push_back(read_entry(entry, entries.size(), file));
  return entries;
}

}  // namespace convoy::experiments

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convoy/core/base/json_reason.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/datasets/formats/json_members.h"
#include "convoy/data/datasets/formats/row_formats.h"

namespace convoy::data {
namespace {

using Json = nlohmann::ordered_json;
using Members = Json::object_t::Container;  // members of an object, by position

// An object with more members gets an index of their names.
constexpr size_t kMembersWithoutIndex = 32;

// Throws for too deep nesting. Checked before parsing, so that neither the parser nor a later
// traversal meets a deeply nested value.
void check_depth(std::string_view text, const ErrorLocation& location) {
  int depth = 0;
  bool in_string = false;
  for (size_t at = 0; at < text.size(); ++at) {
    const char byte = text[at];
    if (in_string) {
      if (byte == '\\') ++at;
      in_string = byte != '"';
    } else if (byte == '"') {
      in_string = true;
    } else if (byte == '{' || byte == '[') {
      if (++depth > kMaxJsonDepth)
        throw JsonRowError(fmt::format("JSON nested deeper than {} levels", kMaxJsonDepth), at + 1,
                           "", location);
    } else if (byte == '}' || byte == ']') {
      --depth;
    }
  }
}

// Builds the value of a row in linear time. It follows the library's parser (of two members with
// one name the last counts), but refuses integers that the parser would round.
class RowBuilder {
 public:
  using number_integer_t = Json::number_integer_t;
  using number_unsigned_t = Json::number_unsigned_t;
  using number_float_t = Json::number_float_t;
  using string_t = Json::string_t;
  using binary_t = Json::binary_t;

  explicit RowBuilder(const ErrorLocation& location) : location_(location) {}

  Json take() { return std::move(root_); }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(number_integer_t value) { return put(value); }
  bool number_unsigned(number_unsigned_t value) { return put(value); }
  bool number_float(number_float_t value, const string_t& text) {
    if (text.find_first_not_of("-0123456789") == std::string::npos) refuse(text);
    return put(value);
  }
  bool string(string_t& value) { return put(std::move(value)); }
  bool binary(binary_t& value) { return put(std::move(value)); }
  bool start_object(size_t) { return open(Json::object()); }
  bool end_object() { return close(); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_array() { return close(); }

  bool key(string_t& name) {
    Level& level = levels_.back();
    const Members& members = level.value->get_ref<Json::object_t&>();
    level.key = name;
    if (const auto known = find(level, members, name)) {
      level.member = *known;
      return true;
    }
    level.member = members.size();
    if (!level.index.empty()) level.index.emplace(name, level.member);
    add_member(*level.value, std::move(name), nullptr);
    return true;
  }

  template <class Exception>
  bool parse_error(size_t, const std::string&, const Exception& error) {
    throw error;
  }

 private:
  struct Level {
    Json* value;
    // The key of the current member, if the value is an object.
    std::string key = {};
    size_t member = 0;
    // The index of a large object: position by name.
    std::unordered_map<std::string, size_t> index = {};
  };

  static std::optional<size_t> find(Level& level, const Members& members, const std::string& name) {
    if (members.size() <= kMembersWithoutIndex) {
      for (size_t member = 0; member < members.size(); ++member)
        if (members[member].first == name) return member;
      return std::nullopt;
    }
    if (level.index.empty())
      for (size_t member = 0; member < members.size(); ++member)
        level.index.emplace(members[member].first, member);
    const auto found = level.index.find(name);
    return found == level.index.end() ? std::nullopt : std::optional(found->second);
  }

  Json& place_value(Json value) {
    if (levels_.empty()) return root_ = std::move(value);
    Level& level = levels_.back();
    if (level.value->is_array()) {
      level.value->push_back(std::move(value));
      return level.value->back();
    }
    Members& members = level.value->get_ref<Json::object_t&>();
    return members[level.member].second = std::move(value);
  }
  bool put(Json value) {
    place_value(std::move(value));
    return true;
  }
  bool open(Json value) {
    levels_.push_back({&place_value(std::move(value))});
    return true;
  }
  bool close() {
    levels_.pop_back();
    return true;
  }

  [[noreturn]] void refuse(const std::string& number) const {
    std::string path;
    for (const Level& level : levels_) {
      // The innermost list contains only the elements before this number; an outer list contains
      // the open element already.
      const size_t item = level.value->size() - (&level == &levels_.back() ? 0 : 1);
      path += level.value->is_array() ? fmt::format("[{}]", item)
                                      : (path.empty() ? "" : ".") + level.key;
    }
    ErrorLocation location = location_;
    location.key = path;
    location.hint = "write it as a text, in quotes, to keep its digits";
    throw DataError(fmt::format("{}{:.40} is a whole number of more than 64 bits",
                                path.empty() ? "" : fmt::format("`{}`: ", path), number),
                    location);
  }

  const ErrorLocation& location_;
  Json root_;
  std::vector<Level> levels_;
};

constexpr std::string_view kReplacement = "\uFFFD";

// The UTF-16 unit of the escape \uXXXX at `at`; empty when there is no such escape.
std::optional<uint32_t> escaped_unit(std::string_view text, size_t at) {
  constexpr size_t kEscapeBytes = 6;
  if (at + kEscapeBytes > text.size() || text[at] != '\\' || text[at + 1] != 'u')
    return std::nullopt;
  uint32_t unit = 0;
  const char* const end = text.data() + at + kEscapeBytes;
  const auto [stop, error] = std::from_chars(text.data() + at + 2, end, unit, 16);
  if (error != std::errc() || stop != end) return std::nullopt;
  return unit;
}

// The length of the escape at `at`, and true if it is a surrogate without the other half of its
// pair.
std::pair<size_t, bool> escape_at(std::string_view text, size_t at) {
  const auto unit = escaped_unit(text, at);
  if (!unit) return {std::min<size_t>(2, text.size() - at), false};
  if (*unit < 0xD800 || *unit > 0xDFFF) return {6, false};
  const auto low = *unit < 0xDC00 ? escaped_unit(text, at + 6) : std::nullopt;
  if (low && *low >= 0xDC00 && *low <= 0xDFFF) return {12, false};
  return {6, true};
}

int64_t replace_lone_surrogates(std::string& json) {
  int64_t replaced = 0;
  std::string mended;
  size_t kept = 0;  // end of the text that is in `mended` already
  for (size_t at = json.find('\\'); at != std::string::npos; at = json.find('\\', at)) {
    const auto [length, is_lone] = escape_at(json, at);
    if (is_lone) {
      mended.append(json, kept, at - kept).append(kReplacement);
      kept = at + length;
      ++replaced;
    }
    at += length;
  }
  if (replaced > 0) json = mended.append(json, kept);
  return replaced;
}

int64_t replace_invalid_utf8(std::string& json) {
  int64_t replaced = 0;
  std::string mended;
  std::string_view rest = json;
  while (const auto bad = find_invalid_utf8(rest)) {
    mended.append(rest.substr(0, *bad)).append(kReplacement);
    rest.remove_prefix(*bad + 1);
    ++replaced;
  }
  if (replaced > 0) json = mended.append(rest);
  return replaced;
}

}  // namespace

namespace {

ErrorLocation with_way_out(ErrorLocation location) {
  if (location.hint.empty())
    location.hint =
        "correct the row, or leave unreadable rows out with --bad-rows skip "
        "(data.bad_rows: skip)";
  return location;
}

}  // namespace

JsonRowError::JsonRowError(std::string_view what, size_t byte, std::string_view reason,
                           const ErrorLocation& location)
    : DataError(fmt::format("{} at byte {}{}{}", what, byte, reason.empty() ? "" : ": ", reason),
                with_way_out(location)),
      what_(what),
      reason_(reason),
      byte_(byte) {}

JsonRowError JsonRowError::at(int64_t line, int64_t column, std::string hint) const {
  ErrorLocation there = location();
  there.line = line;
  there.hint = std::move(hint);
  return {what_, static_cast<size_t>(column), reason_, there};
}

Json parse_json_row(std::string_view text, const ErrorLocation& location) {
  // The parser would treat a NUL as the end of its input.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos)
    throw JsonRowError("NUL byte", nul + 1, "", location);
  if (const auto bad = find_invalid_utf8(text))
    throw JsonRowError("not valid UTF-8", *bad + 1, "", location);
  check_depth(text, location);
  try {
    RowBuilder builder(location);
    Json::sax_parse(text, &builder);
    return builder.take();
  } catch (const Json::parse_error& error) {
    throw JsonRowError("not valid JSON", error.byte, json_reason(error.what()), location);
  } catch (const Json::exception& error) {
    throw DataError(fmt::format("not valid JSON: {}", json_reason(error.what())),
                    {.file = location.file,
                     .line = location.line,
                     .key = location.key,
                     .hint = "write the number as a text, in quotes"});
  }
}

int64_t replace_damaged_text(std::string& json) {
  return replace_invalid_utf8(json) + replace_lone_surrogates(json);
}

std::string json_row_text(const Json& row, int indent, int64_t number,
                          const std::filesystem::path& path) {
  try {
    return row.dump(indent);
  } catch (const Json::exception& error) {  // text that is not UTF-8
    throw DataError(
        fmt::format("row {} cannot be written: {}", number, json_reason(error.what())),
        {.file = path.string(),
         .hint =
             "the text came from a file that is not UTF-8: read that one with --bad-rows replace"});
  }
}

}  // namespace convoy::data

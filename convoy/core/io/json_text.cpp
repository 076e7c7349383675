// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/json_text.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_reason.h"

namespace convoy::io {
namespace {

// Builds the document from parser events. The parser keeps its own stack on the heap, so only the
// depth of the result needs a limit: copying and printing it recurse. Members are appended without
// nlohmann's linear search for the key: with this search, reading an index of 100k tensors would
// take quadratic time.
class DocumentBuilder {
 public:
  DocumentBuilder(const std::string& place, const JsonLimits& limits)
      : place_(place), limits_(limits) {}

  Json take() { return std::move(root_); }

  bool null() { return leaf(nullptr); }
  bool boolean(bool value) { return leaf(value); }
  bool number_integer(Json::number_integer_t value) { return leaf(value); }
  bool number_unsigned(Json::number_unsigned_t value) { return leaf(value); }
  bool number_float(Json::number_float_t value, const std::string&) { return leaf(value); }
  bool string(std::string& value) { return leaf(std::move(value)); }
  bool binary(Json::binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& name) {
    if (!open_.back().keys.insert(name).second)
      throw DataError(fmt::format("the key `{:.100}` appears twice in one object", name),
                      {.file = place_, .key = name, .hint = "keep one of them"});
    key_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    throw DataError(
        fmt::format("not valid JSON at byte {}: {:.200}", position, json_reason(error.what())),
        {.file = place_, .hint = "correct the file there, or get it again"});
  }

 private:
  struct Open {
    Json* value;
    std::unordered_set<std::string> keys;
  };

  Json* append(Json value) {
    if (++num_values_ > limits_.max_values)
      throw DataError(fmt::format("more than {} JSON values", limits_.max_values),
                      {.file = place_, .hint = "name a smaller file"});
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    auto& members = static_cast<Json::object_t::Container&>(parent.get_ref<Json::object_t&>());
    members.emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }

  template <class T>
  bool leaf(T&& value) {
    append(Json(std::forward<T>(value)));
    return true;
  }

  bool open(Json value) {
    if (std::ssize(open_) >= limits_.max_depth)
      throw DataError(fmt::format("JSON nested deeper than {} levels", limits_.max_depth),
                      {.file = place_, .hint = "write it with fewer levels"});
    open_.push_back({append(std::move(value)), {}});
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  const std::string& place_;
  const JsonLimits& limits_;
  Json root_;
  std::vector<Open> open_;
  std::string key_;
  int64_t num_values_ = 0;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& place, const JsonLimits& limits) {
  if (std::ssize(text) > limits.max_bytes)
    throw DataError(fmt::format("{} bytes of JSON, more than the {} allowed here", text.size(),
                                limits.max_bytes),
                    {.file = place, .hint = "name a smaller file"});
  // The parser treats a NUL byte as the end of the text and would ignore the rest.
  if (const size_t at = text.find('\0'); at != std::string_view::npos)
    throw DataError(fmt::format("not valid JSON: a NUL byte at byte {}", at),
                    {.file = place, .hint = "the file is damaged or cut: get it again"});
  DocumentBuilder builder(place, limits);
  nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

Json read_json_file(const std::filesystem::path& path, const JsonLimits& limits) {
  return parse_json(read_file(path, limits.max_bytes), path.string(), limits);
}

std::string shown(const Json& value) {
  if (value.is_object()) return fmt::format("an object of {} keys", value.size());
  if (value.is_array() && value.size() > 8) return fmt::format("a list of {} values", value.size());
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 80) text.replace(80, std::string::npos, "...");
  return text;
}

std::string sorted_json_text(const nlohmann::json& value, bool newline) {
  std::string text = value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace);
  if (newline) text += '\n';
  return text;
}

}  // namespace convoy::io

// SPDX-License-Identifier: Apache-2.0
//
// Typed reading of one JSON object whose errors name the file, the key and the value found. A null
// counts as absent.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/io/json_text.h"

namespace convoy::io {

// Cheap to copy: shares the parsed document. Every method throws DataError on a wrong type and on a
// value out of bounds.
class JsonReader {
 public:
  // `place`: the file named in errors. The value must be an object.
  JsonReader(Json value, std::string place);

  bool has(const std::string& key) const;          // present and not null
  const Json* find(const std::string& key) const;  // nullptr when absent; null values are found
  std::vector<std::string> keys() const;

  int64_t require_int(const std::string& key, int64_t least, int64_t most) const;
  std::optional<int64_t> optional_int(const std::string& key, int64_t least, int64_t most) const;
  int64_t int_or(const std::string& key, int64_t fallback, int64_t least, int64_t most) const;

  // Finite and inside [least, most]; whole numbers are accepted too.
  double require_double(const std::string& key, double least, double most) const;
  std::optional<double> optional_double(const std::string& key, double least, double most) const;
  double double_or(const std::string& key, double fallback, double least, double most) const;

  std::string require_string(const std::string& key) const;
  std::optional<std::string> optional_string(const std::string& key) const;
  std::string string_or(const std::string& key, const std::string& fallback) const;

  std::optional<bool> optional_bool(const std::string& key) const;
  bool bool_or(const std::string& key, bool fallback) const;

  std::vector<std::string> strings_or_empty(const std::string& key) const;  // a list of strings
  // One integer or a list of integers (eos_token_id). Empty when absent.
  std::vector<int64_t> ints_or_empty(const std::string& key, int64_t least, int64_t most) const;

  std::optional<JsonReader> optional_object(const std::string& key) const;
  JsonReader require_object(const std::string& key) const;

  const Json& value() const { return *value_; }
  const Json& document() const { return *document_; }  // the whole parsed file
  const std::string& place() const { return place_; }
  // Throws DataError "<file>: <key>: <message>", for the caller's own checks.
  [[noreturn]] void fail(const std::string& key, const std::string& message) const;
  // The same for a file that is right but needs something that this program does not support.
  // `instead`: what the user should do. The hint must not ask for a change of the file, because the
  // file describes its data correctly.
  [[noreturn]] void fail_unsupported(const std::string& key, const std::string& message,
                                     const std::string& instead) const;

 private:
  JsonReader(std::shared_ptr<const Json> document, const Json* value, std::string place,
             std::string prefix);
  const Json* present(const std::string& key) const;
  const Json& required(const std::string& key) const;

  std::shared_ptr<const Json> document_;
  const Json* value_;
  std::string place_;
  std::string prefix_;  // "rope_scaling." inside a nested object
};

}  // namespace convoy::io

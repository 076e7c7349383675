// SPDX-License-Identifier: Apache-2.0
//
// Checked access to the members of one row; used by the schema conversions. Errors carry the row's
// place.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/datasets/row_source.h"

namespace convoy::data {

// Refers to `row` and `value`, which must outlive it. Every text is cut to `max_field_chars` (0 =
// off), and the cuts are counted. All members throw DataError.
class RowFields {
 public:
  RowFields(const Row& row, const nlohmann::ordered_json& value, int64_t max_field_chars)
      : row_(row), value_(value), max_field_chars_(max_field_chars) {}

  const nlohmann::ordered_json& value() const { return value_; }
  const nlohmann::ordered_json& member(std::string_view key) const;  // present and not null
  std::string text(std::string_view key);                            // a string
  std::string text_or_empty(std::string_view key);                   // absent, null, or a string
  std::string cut(std::string text);

  // {role, content, ...} turns, including all other members of each turn, and what they say of
  // their weight settled (turn_weights.h); `messages` with the row's own `loss_mask`. The list may
  // be a JSON string, as in CSV.
  nlohmann::ordered_json messages(std::string_view key);
  nlohmann::ordered_json list(std::string_view key) const;  // any list; may be a JSON string
  // ShareGPT's {from, value} turns as messages; a row-level `system` becomes the first turn.
  nlohmann::ordered_json conversations();
  // The row's template variables, which override those of the run (null or an object):
  // `chat_template_kwargs`, and with `columns` also `tools` and `documents`. Each may be a JSON
  // string.
  enum class Columns { Kwargs, KwargsToolsDocuments };
  nlohmann::ordered_json template_variables(const nlohmann::ordered_json& of_run,
                                            Columns columns) const;

  RowFields nested(const nlohmann::ordered_json& value) const {
    return {row_, value, max_field_chars_};
  }
  void absorb(const RowFields& other) { fields_cut_ += other.fields_cut_; }
  int64_t fields_cut() const { return fields_cut_; }
  // Names of the members that were never read, in order; null counts as absent.
  std::vector<std::string> unread() const;
  // Keys of turns that read like a weight and are none.
  const std::vector<std::string>& weight_like() const { return weight_like_; }
  [[noreturn]] void fail(const std::string& reason, std::string hint = {}) const;

 private:
  // Returns the member, or null when it is missing; marks it as read.
  const nlohmann::ordered_json* found(std::string_view key) const;
  nlohmann::ordered_json parsed(std::string_view key) const;
  nlohmann::ordered_json parsed_or_null(std::string_view key) const;
  nlohmann::ordered_json checked_message(const nlohmann::ordered_json& message,
                                         std::string_view where);
  void check_content(nlohmann::ordered_json& message, std::string_view where);
  void spread_loss_mask(nlohmann::ordered_json& turns) const;
  void settle_weight(nlohmann::ordered_json& message, std::string_view where);
  void note_weight_like(const nlohmann::ordered_json& message);

  const Row& row_;
  const nlohmann::ordered_json& value_;
  int64_t max_field_chars_;
  int64_t fields_cut_ = 0;
  mutable std::vector<const nlohmann::ordered_json*> read_;
  std::vector<std::string> weight_like_;
};

}  // namespace convoy::data

// SPDX-License-Identifier: Apache-2.0
//
// Checked access to the members of one row; used by the schema conversions. Errors carry the row's
// place.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/data/datasets/formats/row_source.h"

namespace convoy::data {

// `row` and `value` must outlive the object. Every text is cut to `max_field_chars` (0 = off), and
// the cuts are counted. All members throw DataError.
class RowFields {
 public:
  RowFields(const Row& row, const nlohmann::ordered_json& value, int64_t max_field_chars)
      : row_(row), value_(value), max_field_chars_(max_field_chars) {}

  const Row& row() const { return row_; }
  const nlohmann::ordered_json& value() const { return value_; }
  const nlohmann::ordered_json& member(std::string_view key) const;  // must be present and not null
  // The member; nullptr when it is missing or null. Does not mark it as read.
  const nlohmann::ordered_json* peek(std::string_view key) const;
  void mark_read(std::string_view key) const { found(key); }
  // The name of the column in the file. For a side from a ranked list this is its place in the
  // list.
  std::string_view name_of(std::string_view key) const;
  // The member, which may be a text (or an integer, as CSV writes it), a message, or a list of
  // messages.
  const nlohmann::ordered_json& text_or_turns(std::string_view key) const;
  std::string text(std::string_view key);           // a string, or an integer as CSV writes it
  std::string text_or_empty(std::string_view key);  // like text(); empty when absent or null
  std::string cut(std::string text);

  // A list of {role, content, ...} turns. Each turn keeps its other members. Keys about the weight
  // of a turn are settled (turn_weights.h); for the key `messages` the row's `loss_mask` is applied
  // too. The list may be a JSON string, as in CSV.
  nlohmann::ordered_json messages(std::string_view key);
  nlohmann::ordered_json list(std::string_view key) const;  // any list; may be a JSON string
  // ShareGPT's {from, value} turns, converted to messages.
  nlohmann::ordered_json conversations(std::string_view column = "conversations");
  // The earlier exchanges as messages, from a column `history` of [question, answer] pairs.
  nlohmann::ordered_json history();
  // Makes the text under `system` or `system_prompt` the first turn. A conversation that begins
  // with the same text is not changed.
  void add_system_column(nlohmann::ordered_json& messages);
  // The template variables of the row: `chat_template_kwargs`, `tools` and `documents`. They
  // override the run's variables (null or an object). Each may be a JSON string. In a row with its
  // texts in columns, `tools` and `documents` may be unrelated columns, so they count only if they
  // are lists of objects.
  enum class Texts { InTurns, InColumns };
  nlohmann::ordered_json template_variables(const nlohmann::ordered_json& of_run,
                                            Texts texts) const;

  RowFields nested(const nlohmann::ordered_json& value) const {
    return {row_, value, max_field_chars_};
  }
  // Adds the counts and unread members of `other`, which reads a nested value of this row.
  void absorb(const RowFields& other);
  int64_t fields_cut() const { return fields_cut_; }
  // Names of the members that were never read, in order. An empty member counts as absent.
  std::vector<std::string> unread() const;
  // Keys of turns that resemble a weight key but are none.
  const std::vector<std::string>& weight_like() const { return weight_like_; }
  // Keys of turns that are not part of the conversation's format.
  const std::vector<std::string>& further_keys() const { return further_keys_; }
  [[noreturn]] void fail(const std::string& reason, std::string hint = {}) const;

 private:
  // Returns the member, or nullptr when it is missing; marks it as read.
  const nlohmann::ordered_json* found(std::string_view key) const;
  nlohmann::ordered_json parsed(std::string_view key) const;
  nlohmann::ordered_json parsed_or_null(std::string_view key) const;
  std::string system_column();
  nlohmann::ordered_json checked_message(const nlohmann::ordered_json& message,
                                         std::string_view where);
  void check_content(nlohmann::ordered_json& message, std::string_view where);
  void spread_loss_mask(nlohmann::ordered_json& turns) const;
  void settle_weight(nlohmann::ordered_json& message, std::string_view where);
  // Notes the keys of a turn that are not in `known`, the keys of its format.
  void note_further_keys(const nlohmann::ordered_json& turn,
                         std::span<const std::string_view> known);

  const Row& row_;
  const nlohmann::ordered_json& value_;
  int64_t max_field_chars_;
  int64_t fields_cut_ = 0;
  mutable std::vector<const nlohmann::ordered_json*> read_;
  std::vector<std::string> unread_within_;  // keys within nested values that nothing reads
  std::vector<std::string> weight_like_;
  std::vector<std::string> further_keys_;
};

}  // namespace convoy::data

// SPDX-License-Identifier: Apache-2.0
//
// One condition of the filter: `score >= 0.8`, `verified == yes`. Thread-safe.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace convoy::process {

class FilterCondition {
 public:
  // Throws ConfigError for an unknown name or comparison, and for a value of another kind than the
  // name's.
  explicit FilterCondition(const std::string& text);

  // `figures`: values by name; see filter_names(). A figure that is null is unequal to every value,
  // and neither less nor greater.
  bool holds(const nlohmann::ordered_json& figures) const;
  const std::string& text() const { return text_; }
  // The stage that computes the figure; empty: every text has it.
  std::string_view stage() const;

 private:
  std::string text_;
  std::string name_;
  std::string comparison_;
  std::string word_;   // used if the name's values are words
  double number_ = 0;  // used if the name's values are numbers
  bool is_number_ = false;
};

// The names that conditions may use: "score, verified, ...".
std::string filter_names();

}  // namespace convoy::process

// SPDX-License-Identifier: Apache-2.0
//
// A prompt read from a file: text with `{{ name }}` where a value goes. Strict: an unknown name, or
// a brace pair that is not closed, is an error with file and line; so is a text without any name,
// which would be the same for every row. Single braces are text, as \boxed{} is, unless they hold a
// name that the prompt does not read otherwise. One newline at the end of the file is not part of
// the prompt. Thread-safe once made.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::process {

struct ForeignName {
  std::string text;  // as it stands
  // Columns that it may mean, without "row."; empty: it names nothing.
  std::vector<std::string> names;
  int64_t line = 0;           // 1-based
  bool is_statement = false;  // in a template language, neither JSON nor a formula
};

class PromptTemplate {
 public:
  // `name` stands for the text in errors. A name that starts with "row." is a column of the row
  // itself. Throws ConfigError.
  PromptTemplate(const std::string& text, const std::string& name,
                 const std::vector<std::string>& known_names);

  // One value for each name that the text has. Throws DataError for a name without one.
  std::string render(const std::map<std::string, std::string>& values) const;

  // In order, each as often as it is there.
  std::vector<std::string> names() const;
  // Names as other programs spell them, which are sent as they stand: "{solution}", "$problem",
  // "{# problem #}", "%s" alone. JSON, formulas, and names behind a command or an index are none.
  std::vector<ForeignName> foreign_names() const;
  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

 private:
  struct Part {
    std::string text;  // before the name
    std::string name;  // empty: the end
  };
  bool reads(const std::string& name) const;
  ErrorLocation place_of(size_t at, const std::vector<std::string>& known_names) const;
  void require_names(const std::vector<std::string>& known_names) const;

  std::string text_;
  std::string name_;
  std::vector<Part> parts_;
};

}  // namespace convoy::process

// SPDX-License-Identifier: Apache-2.0
//
// A prompt read from a file: text with `{{ name }}` where a value goes. Strict: an unknown name, or
// a brace pair that is not closed, is an error with file and line. A text without any name is an
// error too, because it would be the same for every row. Single braces are text, as in \boxed{},
// unless they hold a name that the prompt does not use elsewhere. One newline at the end of the
// file is not part of the prompt. Thread-safe after construction.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/error.h"

namespace convoy::process {

struct ForeignName {
  std::string text;  // the spelling in the prompt
  // Columns that the spelling may mean, without "row."; empty: it names no column.
  std::vector<std::string> names;
  int64_t line = 0;           // 1-based
  bool is_statement = false;  // statement of a template language, neither JSON nor a formula
};

// Names in the spelling of other programs, which are sent unchanged: "{solution}", "{solution:s}",
// "{row[solution]}", "$problem", "[[problem]]", "<%= problem %>", "__problem__", "{# problem #}",
// "%s" alone. JSON, formulas, and names after a command or an index do not count.
std::vector<ForeignName> foreign_names(const std::string& text);

// The text of a prompt's file. Throws ConfigError that names the setting `key`.
std::string read_prompt_file(const std::string& file, const std::string& key);

class PromptTemplate {
 public:
  // `name` identifies the prompt in errors. A name that starts with "row." is a column of the row
  // itself. Throws ConfigError.
  PromptTemplate(const std::string& text, const std::string& name,
                 const std::vector<std::string>& known_names);

  // `values` has one value for each name in the prompt. Throws DataError for a name without a
  // value.
  std::string render(const std::map<std::string, std::string>& values) const;

  // The names in their order, each as often as it occurs.
  std::vector<std::string> names() const;
  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

 private:
  struct Part {
    std::string text;  // text before the name
    std::string name;  // name; empty at the end
  };
  bool reads(const std::string& name) const;
  ErrorLocation place_of(size_t at, const std::vector<std::string>& known_names) const;
  void require_names(const std::vector<std::string>& known_names) const;

  std::string text_;
  std::string name_;
  std::vector<Part> parts_;
};

}  // namespace convoy::process

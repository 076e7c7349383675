// SPDX-License-Identifier: Apache-2.0
//
// A prompt read from a file: text with `{{ name }}` where a value goes. Strict: an unknown name, or
// a brace pair that is not closed, is an error with file and line. Single braces are text, as
// \boxed{} is. One newline at the end of the file is not part of the prompt. Thread-safe once made.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::process {

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
  const std::string& text() const { return text_; }
  const std::string& name() const { return name_; }

 private:
  struct Part {
    std::string text;  // before the name
    std::string name;  // empty: the end
  };
  std::string text_;
  std::string name_;
  std::vector<Part> parts_;
};

}  // namespace convoy::process

// SPDX-License-Identifier: Apache-2.0
//
// Divides the text of an answer of a given form into the thoughts before it and the answer itself.
// One thread.
#pragma once

#include <string>
#include <string_view>

namespace convoy::recipes {

// The beginning of an answer: no thoughts, thoughts if it begins with their tag, or thoughts that
// the prompt has opened.
enum class Thoughts { None, Possible, Open };

// Takes a text as it grows. A part that may become a tag is held back until it is clear.
class ThoughtReader {
 public:
  struct Found {
    std::string thoughts;  // without the tags
    std::string text;
  };

  explicit ThoughtReader(Thoughts thoughts) : state_(thoughts) {}

  Found take(std::string_view more);
  Found end();  // the text is complete: returns the part that was held back

 private:
  Found read(bool is_whole);

  Thoughts state_;
  std::string held_;
};

}  // namespace convoy::recipes

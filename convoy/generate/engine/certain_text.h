// SPDX-License-Identifier: Apache-2.0
//
// Finds the part of a growing text that will not change. The last bytes of the text may still
// become part of a stop string or of another letter.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace convoy::generate {

// Number of bytes at the end of `text` that may be the beginning of `tag`.
inline size_t begun_bytes(std::string_view text, std::string_view tag) {
  size_t bytes = std::min(text.size(), tag.size() - 1);
  while (!tag.starts_with(text.substr(text.size() - bytes))) --bytes;
  return bytes;
}

class CertainText {
 public:
  explicit CertainText(std::vector<std::string> stop) : stop_(std::move(stop)) {}

  // Returns the part that has become certain since the last call. `text`: the whole text so far.
  std::string_view grow(std::string_view text) {
    // A letter whose last bytes are missing is decoded as one or more characters U+FFFD.
    constexpr std::string_view kPartOfALetter = "\xef\xbf\xbd";  // U+FFFD
    std::string_view sure = text;
    while (sure.ends_with(kPartOfALetter)) sure.remove_suffix(kPartOfALetter.size());
    size_t begun = 0;
    for (const std::string& stop : stop_) begun = std::max(begun, begun_bytes(sure, stop));
    return until(text, sure.size() - begun);
  }
  size_t given_bytes() const { return given_bytes_; }
  // Returns the rest of `text`, which is now complete.
  std::string_view end(std::string_view text) { return until(text, text.size()); }

 private:
  std::string_view until(std::string_view text, size_t end) {
    if (end <= given_bytes_) return {};
    const std::string_view grown = text.substr(given_bytes_, end - given_bytes_);
    given_bytes_ = end;
    return grown;
  }

  std::vector<std::string> stop_;
  size_t given_bytes_ = 0;
};

}  // namespace convoy::generate

// SPDX-License-Identifier: Apache-2.0
//
// The part of a growing text that will not change: its last bytes may become a stop string or
// another character.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::generate {

class CertainText {
 public:
  explicit CertainText(const std::vector<std::string>& stop) {
    for (const std::string& one : stop) unsure_bytes_ = std::max(unsure_bytes_, one.size());
  }

  // The part that has become certain since the last call. `text`: the whole text so far.
  std::string_view grow(std::string_view text) {
    size_t sure = text.size() - std::min(text.size(), unsure_bytes_);
    while (sure > 0 && (static_cast<unsigned char>(text[sure]) & 0xC0) == 0x80) --sure;
    return until(text, sure);
  }
  size_t given_bytes() const { return given_bytes_; }
  // The rest of the whole text.
  std::string_view end(std::string_view text) { return until(text, text.size()); }

 private:
  std::string_view until(std::string_view text, size_t end) {
    if (end <= given_bytes_) return {};
    const std::string_view grown = text.substr(given_bytes_, end - given_bytes_);
    given_bytes_ = end;
    return grown;
  }

  size_t unsure_bytes_ = 4;  // a letter of which not all bytes are there
  size_t given_bytes_ = 0;
};

}  // namespace convoy::generate

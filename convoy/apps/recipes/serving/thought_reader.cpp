// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/thought_reader.h"

#include <utility>

#include "convoy/generate/engine/certain_text.h"

namespace convoy::recipes {
namespace {

constexpr std::string_view kOpeningTag = "<think>";
constexpr std::string_view kClosingTag = "</think>";

}  // namespace

ThoughtReader::Found ThoughtReader::take(std::string_view more) {
  held_ += more;
  return read(false);
}

ThoughtReader::Found ThoughtReader::end() { return read(true); }

ThoughtReader::Found ThoughtReader::read(bool is_whole) {
  Found found;
  if (state_ == Thoughts::Possible) {
    if (!is_whole && held_.size() < kOpeningTag.size() && kOpeningTag.starts_with(held_))
      return found;
    state_ = held_.starts_with(kOpeningTag) ? Thoughts::Open : Thoughts::None;
    if (state_ == Thoughts::Open) held_.erase(0, kOpeningTag.size());
  }
  if (state_ == Thoughts::Open) {
    const size_t close = held_.find(kClosingTag);
    if (close == std::string::npos) {
      const size_t bytes =
          held_.size() - (is_whole ? 0 : generate::begun_bytes(held_, kClosingTag));
      found.thoughts = held_.substr(0, bytes);
      held_.erase(0, bytes);
      return found;
    }
    found.thoughts = held_.substr(0, close);
    held_.erase(0, close + kClosingTag.size());
    state_ = Thoughts::None;
  }
  found.text = std::exchange(held_, {});
  return found;
}

}  // namespace convoy::recipes

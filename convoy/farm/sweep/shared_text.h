// SPDX-License-Identifier: Apache-2.0
//
// A text that many cells share: all copies refer to one string. The string never changes, so
// threads may read copies at the same time. A SharedText converts to a std::string for reading.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace convoy::sweep {

class SharedText {
 public:
  SharedText() = default;  // an empty text
  SharedText(std::string text) : text_(std::make_shared<const std::string>(std::move(text))) {}
  SharedText(const char* text) : SharedText(std::string(text)) {}

  const std::string& str() const { return text_ ? *text_ : empty(); }
  operator const std::string&() const { return str(); }
  bool shares(const SharedText& other) const { return text_ == other.text_; }

  friend bool operator==(const SharedText& left, const SharedText& right) {
    return left.shares(right) || left.str() == right.str();
  }
  friend bool operator==(const SharedText& left, std::string_view right) {
    return left.str() == right;
  }

 private:
  static const std::string& empty() {
    static const std::string none;
    return none;
  }

  std::shared_ptr<const std::string> text_;
};

}  // namespace convoy::sweep

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/base/wide_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/error.h"

namespace convoy {
namespace {

using namespace std::string_view_literals;

constexpr size_t kLeastBytes = 4;
constexpr size_t kMostBytes = 32;

// True if exactly the bytes at even places (`first` = 0) or at odd ones (1) are zero.
bool has_zeros_from(std::string_view head, size_t first) {
  for (size_t at = 0; at < head.size(); ++at)
    if ((head[at] == '\0') != (at % 2 == first)) return false;
  return true;
}

}  // namespace

std::string_view wide_encoding(std::string_view head) {
  // The mark of UTF-32 begins with that of UTF-16.
  if (head.starts_with("\xff\xfe\0\0"sv) || head.starts_with("\0\0\xfe\xff"sv)) return "UTF-32";
  if (head.starts_with("\xff\xfe"sv) || head.starts_with("\xfe\xff"sv)) return "UTF-16";
  if (head.size() < kLeastBytes) return {};
  const std::string_view begin = head.substr(0, std::min(kMostBytes, head.size() / 2 * 2));
  if (has_zeros_from(begin, 1)) return "UTF-16LE";
  return has_zeros_from(begin, 0) ? "UTF-16BE" : std::string_view();
}

void refuse_wide_text(std::string_view head, const std::filesystem::path& file) {
  const std::string_view encoding = wide_encoding(head);
  if (encoding.empty()) return;
  throw DataError(
      fmt::format("the file is {} text, wanted UTF-8", encoding),
      {.file = file.string(),
       .hint = fmt::format("convert it: iconv -f {} -t UTF-8 {} > NEW", encoding, file.string())});
}

}  // namespace convoy

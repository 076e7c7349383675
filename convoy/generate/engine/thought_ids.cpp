// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/thought_ids.h"

#include <algorithm>
#include <span>

namespace convoy::generate {

ThoughtIds thought_ids(const std::vector<int32_t>& prompt, const text::Tokenizer& tokenizer) {
  constexpr size_t kMostTokens = 8;  // tags and white space at the end of a prompt
  const auto begin = tokenizer.id_of("<think>");
  const auto end = tokenizer.id_of("</think>");
  if (!begin || !end) return {};
  const std::span<const int32_t> last =
      std::span(prompt).last(std::min(prompt.size(), kMostTokens));
  const auto tag = std::find_if(last.rbegin(), last.rend(),
                                [&](int32_t id) { return id == *begin || id == *end; });
  if (tag != last.rend() && *tag == *end) return {};
  return {.begin = *begin, .end = *end, .are_open = tag != last.rend()};
}

}  // namespace convoy::generate

// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/masks/answer_ends.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::data {
namespace {

using nlohmann::ordered_json;

constexpr std::string_view kAnswer = "ANSWER";

// The text that the template writes behind the answer in a conversation with one question. Empty
// when the template writes no answer, or refuses the conversation.
std::optional<std::string> behind_answer(const text::ChatTemplate& chat_template,
                                         const ordered_json& answer) {
  try {
    const std::string text = chat_template
                                 .render({{{"role", "user"}, {"content", "question"}},
                                          {{"role", "assistant"}, {"content", answer}}},
                                         nullptr, false)
                                 .text;
    const size_t at = text.rfind(kAnswer);
    if (at == std::string::npos) return std::nullopt;
    return text.substr(at + kAnswer.size());
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// Says which tokens are special and which are blank; the tokenizer is asked once for each.
class TokenKinds {
 public:
  explicit TokenKinds(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  bool is_special(int32_t id) { return of(id) == Kind::Special; }
  bool is_blank(int32_t id) { return of(id) == Kind::Blank; }

 private:
  enum class Kind { Special, Blank, Text };

  Kind of(int32_t id) {
    const auto known = kinds_.find(id);
    if (known != kinds_.end()) return known->second;
    Kind kind = Kind::Text;
    if (tokenizer_.is_special(id))
      kind = Kind::Special;
    else if (tokenizer_.decode({id}, false).find_first_not_of(" \t\r\n") == std::string::npos)
      kind = Kind::Blank;
    return kinds_.emplace(id, kind).first->second;
  }

  const text::Tokenizer& tokenizer_;
  std::unordered_map<int32_t, Kind> kinds_;
};

// The learnt special token that ends the row; empty when the row ends in another way.
std::optional<int32_t> learnt_end(std::span<const int32_t> ids, std::span<const uint8_t> learnt,
                                  TokenKinds& kinds) {
  size_t end = ids.size();
  while (end > 0 && learnt[end - 1] == 0 &&
         (kinds.is_special(ids[end - 1]) || kinds.is_blank(ids[end - 1])))
    --end;
  while (end > 0 && learnt[end - 1] != 0 && kinds.is_blank(ids[end - 1])) --end;
  if (end == 0 || learnt[end - 1] == 0 || !kinds.is_special(ids[end - 1])) return std::nullopt;
  return ids[end - 1];
}

}  // namespace

std::optional<int32_t> turn_end(const text::ChatTemplate& chat_template,
                                const text::Tokenizer& tokenizer) {
  std::optional<std::string> rest = behind_answer(chat_template, kAnswer);
  // Some templates read a content only as a list of parts.
  if (!rest)
    rest =
        behind_answer(chat_template, ordered_json::array({{{"type", "text"}, {"text", kAnswer}}}));
  if (!rest) return std::nullopt;
  TokenKinds kinds(tokenizer);
  for (const int32_t id : tokenizer.encode(*rest, text::SpecialTokens::Omit).ids) {
    if (kinds.is_special(id)) return id;
    if (!kinds.is_blank(id)) break;
  }
  return std::nullopt;
}

std::vector<int32_t> learnt_ends(const TokenDataset& rows, const text::Tokenizer& tokenizer,
                                 int64_t max_tokens) {
  TokenKinds kinds(tokenizer);
  std::unordered_map<int32_t, int64_t> counts;
  for (int64_t row = 0; row < rows.num_rows(); ++row)
    if (rows.length_tokens(row) < max_tokens)
      if (const auto id = learnt_end(rows.ids(row), rows.supervised(row), kinds)) ++counts[*id];
  std::vector<std::pair<int64_t, int32_t>> by_count;
  for (const auto& [id, count] : counts) by_count.emplace_back(-count, id);
  std::sort(by_count.begin(), by_count.end());
  std::vector<int32_t> ids;
  for (const auto& [count, id] : by_count) ids.push_back(id);
  return ids;
}

}  // namespace convoy::data

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_logprobs.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

#include "convoy/core/base/utf8.h"

namespace convoy::recipes {
namespace {

constexpr std::string_view kNoLetter = "\xef\xbf\xbd";  // U+FFFD

// Maps the letters of GPT-2's byte-level vocabularies to bytes. A printable byte is written as
// itself, any other byte as a letter from U+0100 on.
const std::map<std::string, char, std::less<>>& bytes_by_letter() {
  static const auto kBytes = [] {
    const auto letter = [](int code) {
      return code < 0x80 ? std::string(1, static_cast<char>(code))
                         : std::string{static_cast<char>(0xC0 | code >> 6),
                                       static_cast<char>(0x80 | (code & 0x3F))};
    };
    std::map<std::string, char, std::less<>> bytes;
    int next = 0x100;
    for (int byte = 0; byte < 0x100; ++byte) {
      const bool prints = (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
      bytes.emplace(letter(prints ? byte : next++), static_cast<char>(byte));
    }
    return bytes;
  }();
  return kBytes;
}

// The byte of a piece like <0xE2>.
std::optional<char> fallback_byte(std::string_view piece) {
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece.back() != '>') return {};
  int byte = 0;
  if (std::from_chars(piece.data() + 3, piece.data() + 5, byte, 16).ec != std::errc()) return {};
  return static_cast<char>(byte);
}

// Reads the letters of a byte-level piece; empty where it is no such piece.
std::string bytes_of_letters(std::string_view piece) {
  std::string bytes;
  while (!piece.empty()) {
    const size_t size = static_cast<unsigned char>(piece.front()) < 0x80 ? 1 : 2;
    const auto found = bytes_by_letter().find(piece.substr(0, size));
    if (found == bytes_by_letter().end()) return {};
    bytes += found->second;
    piece.remove_prefix(size);
  }
  return bytes;
}

Json token_of(const text::Tokenizer& tokenizer, int64_t id, float logprob) {
  const std::string bytes = token_bytes(tokenizer, static_cast<int32_t>(id));
  return {{"token", tokenizer.decode({static_cast<int32_t>(id)}, false)},
          {"logprob", logprob},
          {"bytes", std::vector<uint8_t>(bytes.begin(), bytes.end())}};
}

}  // namespace

std::string token_bytes(const text::Tokenizer& tokenizer, int32_t id) {
  std::string text = tokenizer.decode({id}, false);
  if (text.find(kNoLetter) == std::string::npos) return text;
  const std::string piece = tokenizer.piece(id);
  if (const auto byte = fallback_byte(piece)) return {*byte};
  std::string bytes = bytes_of_letters(piece);
  return bytes.empty() ? text : bytes;
}

// Returns the number of tokens whose text is certain. A token's text is never longer than its
// bytes, so this holds back too many tokens rather than too few.
size_t LogprobWriter::end_of_certain(const generate::AnswerTokens& all, size_t unsure_bytes) const {
  size_t end = all.logprobs.size();
  while (end > given_ && unsure_bytes > 0) {
    const int32_t id = all.ids[--end];
    const size_t bytes = tokenizer_.is_special(id) ? 0 : token_bytes(tokenizer_, id).size();
    unsure_bytes -= std::min(unsure_bytes, bytes);
  }
  return end;
}

Json LogprobWriter::next(const generate::AnswerTokens& all, size_t unsure_bytes) {
  const size_t end = end_of_certain(all, unsure_bytes);
  if (end <= given_) return nullptr;
  Json part = kind_ == ApiKind::Chat ? chat_part(all, end) : completion_part(all, end);
  given_ = end;
  return part;
}

Json LogprobWriter::chat_part(const generate::AnswerTokens& all, size_t end) {
  Json content = Json::array();
  for (size_t at = given_; at < end; ++at) {
    Json one = token_of(tokenizer_, all.ids[at], all.logprobs[at]);
    one["top_logprobs"] = Json::array();
    if (!all.likeliest.empty())
      for (const auto& [id, logprob] : all.likeliest[at])
        one["top_logprobs"].push_back(token_of(tokenizer_, id, logprob));
    content.push_back(std::move(one));
  }
  return {{"content", content}};
}

// Returns the token's offset in characters, as clients count them, not in bytes. A token that
// begins inside a character has the offset of that character.
int64_t LogprobWriter::offset_of_next(int32_t id) {
  const std::string bytes = tokenizer_.is_special(id) ? "" : token_bytes(tokenizer_, id);
  const bool is_within = !bytes.empty() && continues_character(bytes.front()) && letters_ > 0;
  const int64_t offset = letters_ - (is_within ? 1 : 0);
  letters_ += std::ssize(bytes) - std::count_if(bytes.begin(), bytes.end(), continues_character);
  return offset;
}

Json LogprobWriter::completion_part(const generate::AnswerTokens& all, size_t end) {
  Json tokens = Json::array();
  Json values = Json::array();
  Json offsets = Json::array();
  Json likeliest = all.likeliest.empty() ? Json() : Json::array();
  for (size_t at = given_; at < end; ++at) {
    const std::string token = tokenizer_.decode({all.ids[at]}, false);
    tokens.push_back(token);
    values.push_back(all.logprobs[at]);
    offsets.push_back(offset_of_next(all.ids[at]));
    if (all.likeliest.empty()) continue;
    Json by_token = Json::object();
    for (const auto& [id, logprob] : all.likeliest[at])
      by_token.emplace(tokenizer_.decode({static_cast<int32_t>(id)}, false), logprob);
    by_token.emplace(token, all.logprobs[at]);  // even if it is not among the likeliest
    likeliest.push_back(std::move(by_token));
  }
  return {{"tokens", tokens},
          {"token_logprobs", values},
          {"top_logprobs", likeliest},
          {"text_offset", offsets}};
}

}  // namespace convoy::recipes

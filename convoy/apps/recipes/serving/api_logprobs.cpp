// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_logprobs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
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

// The bytes that the token adds to an answer, which does not show special tokens.
std::string answer_bytes(const text::Tokenizer& tokenizer, int32_t id) {
  return tokenizer.is_special(id) ? "" : token_bytes(tokenizer, id);
}

Json number_or_null(float value) { return std::isnan(value) ? Json() : Json(value); }

// A prompt of one token has no log-probabilities.
float logprob_at(const generate::PromptLogprobs& logprobs, size_t token) {
  return token < logprobs.logprobs.size() ? logprobs.logprobs[token]
                                          : std::numeric_limits<float>::quiet_NaN();
}

std::span<const kernels::TokenLogprob> likeliest_at(const generate::PromptLogprobs& logprobs,
                                                    size_t token) {
  if (token >= logprobs.likeliest.size()) return {};
  return logprobs.likeliest[token];
}

std::span<const kernels::TokenLogprob> first_of(std::span<const kernels::TokenLogprob> likeliest,
                                                int64_t count) {
  return likeliest.first(std::min(likeliest.size(), static_cast<size_t>(count)));
}

// The lists of a completion's log-probabilities while they grow.
class CompletionTokens {
 public:
  explicit CompletionTokens(const text::Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  void add(int32_t id, float logprob, int64_t offset) {
    tokens_.push_back(tokenizer_.decode({id}, false));
    values_.push_back(number_or_null(logprob));
    offsets_.push_back(offset);
  }
  // Both are of the token that was added last. The token is listed even if it is not among the
  // likeliest.
  void add_likeliest(int32_t id, float logprob, std::span<const kernels::TokenLogprob> likeliest) {
    Json by_token = Json::object();
    for (const auto& [other, value] : likeliest)
      by_token.emplace(tokenizer_.decode({static_cast<int32_t>(other)}, false), value);
    by_token.emplace(tokenizer_.decode({id}, false), number_or_null(logprob));
    likeliest_.push_back(std::move(by_token));
  }
  void add_no_likeliest() { likeliest_.push_back(nullptr); }

  Json json() const {
    return {{"tokens", tokens_},
            {"token_logprobs", values_},
            {"top_logprobs", likeliest_.empty() ? Json() : likeliest_},
            {"text_offset", offsets_}};
  }

 private:
  const text::Tokenizer& tokenizer_;
  Json tokens_ = Json::array();
  Json values_ = Json::array();
  Json offsets_ = Json::array();
  Json likeliest_ = Json::array();
};

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
    const size_t bytes = answer_bytes(tokenizer_, id).size();
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

int64_t TextOffsets::next(std::string_view bytes) {
  const bool is_within = !bytes.empty() && continues_character(bytes.front()) && letters_ > 0;
  const int64_t offset = letters_ - (is_within ? 1 : 0);
  letters_ += std::ssize(bytes) - std::count_if(bytes.begin(), bytes.end(), continues_character);
  return offset;
}

Json LogprobWriter::completion_part(const generate::AnswerTokens& all, size_t end) {
  CompletionTokens part(tokenizer_);
  for (size_t at = given_; at < end; ++at) {
    const int32_t id = all.ids[at];
    part.add(id, all.logprobs[at], offsets_.next(answer_bytes(tokenizer_, id)));
    if (!all.likeliest.empty()) part.add_likeliest(id, all.logprobs[at], all.likeliest[at]);
  }
  return part.json();
}

Json prompt_logprobs(const text::Tokenizer& tokenizer, const ScoredPrompt& prompt,
                     int64_t most_likeliest) {
  Json tokens = Json::array({nullptr});
  for (size_t at = 1; at < prompt.ids.size(); ++at) {
    Json by_id = Json::object();
    const auto add = [&](int64_t id, float logprob, const Json& rank) {
      by_id.emplace(std::to_string(id),
                    Json{{"logprob", number_or_null(logprob)},
                         {"rank", rank},
                         {"decoded_token", tokenizer.decode({static_cast<int32_t>(id)}, false)}});
    };
    int64_t rank = 0;
    for (const auto& [id, logprob] : first_of(likeliest_at(prompt.logprobs, at), most_likeliest))
      add(id, logprob, ++rank);
    add(prompt.ids[at], logprob_at(prompt.logprobs, at), nullptr);
    tokens.push_back(std::move(by_id));
  }
  return tokens;
}

Json echoed_logprobs(const text::Tokenizer& tokenizer, const ScoredPrompt& prompt,
                     int64_t most_likeliest, const generate::AnswerTokens& answer) {
  CompletionTokens part(tokenizer);
  TextOffsets offsets;
  std::string_view rest = prompt.text;
  for (size_t at = 0; at < prompt.ids.size(); ++at) {
    const int32_t id = prompt.ids[at];
    std::string bytes = token_bytes(tokenizer, id);
    // The prompt's text shows the special tokens that the client wrote, but not the ones that the
    // tokenizer added.
    if (tokenizer.is_special(id) && !rest.starts_with(bytes)) bytes.clear();
    rest.remove_prefix(std::min(rest.size(), bytes.size()));
    part.add(id, logprob_at(prompt.logprobs, at), offsets.next(bytes));
    if (most_likeliest == 0) continue;
    if (at == 0)
      part.add_no_likeliest();
    else
      part.add_likeliest(id, logprob_at(prompt.logprobs, at),
                         first_of(likeliest_at(prompt.logprobs, at), most_likeliest));
  }
  for (size_t at = 0; at < answer.logprobs.size(); ++at) {
    const int32_t id = answer.ids[at];
    part.add(id, answer.logprobs[at], offsets.next(answer_bytes(tokenizer, id)));
    if (most_likeliest > 0) part.add_likeliest(id, answer.logprobs[at], answer.likeliest[at]);
  }
  return part.json();
}

}  // namespace convoy::recipes

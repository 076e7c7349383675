// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/engine/answer_text.h"

#include <algorithm>
#include <utility>

namespace convoy::generate {

AnswerText::AnswerText(const text::Tokenizer& tokenizer, const std::vector<int32_t>& end_ids,
                       const Request& request, int64_t most_tokens)
    : tokenizer_(tokenizer),
      end_ids_(end_ids),
      stop_ids_(request.stop_ids),
      stop_(request.stop),
      most_tokens_(most_tokens),
      skips_special_(!request.shows_special_tokens) {
  for (const std::string& stop : stop_)
    longest_stop_bytes_ = std::max(longest_stop_bytes_, stop.size());
}

bool AnswerText::ends_text(int32_t token) const {
  const auto holds = [token](const std::vector<int32_t>& ids) {
    return std::find(ids.begin(), ids.end(), token) != ids.end();
  };
  return holds(end_ids_) || holds(stop_ids_);
}

std::optional<FinishReason> AnswerText::take(int32_t token) {
  tokens_.push_back(token);
  if (ends_text(token)) {
    ends_in_end_token_ = true;
    return FinishReason::Stop;
  }
  stop_at_ = find_stop();
  if (stop_at_) return FinishReason::Stop;
  if (static_cast<int64_t>(tokens_.size()) >= most_tokens_) return FinishReason::Length;
  return {};
}

std::optional<size_t> AnswerText::find_stop() const {
  if (stop_.empty()) return {};
  // A new stop string can only lie at the end of the text. So only the last tokens are decoded: as
  // many as give the bytes of the longest stop string, even if some of the tokens are hidden.
  const size_t enough_bytes = longest_stop_bytes_ + 8;
  size_t tail = std::min(tokens_.size(), enough_bytes);
  std::string end = decode(tokens_.size() - tail, tokens_.size());
  while (end.size() < enough_bytes && tail < tokens_.size()) {
    tail = std::min(tokens_.size(), 2 * tail);
    end = decode(tokens_.size() - tail, tokens_.size());
  }
  const bool may_hold = std::any_of(stop_.begin(), stop_.end(), [&](const std::string& stop) {
    return end.find(stop) != std::string::npos;
  });
  if (!may_hold) return {};
  const std::string text = tokenizer_.decode(tokens_, skips_special_);
  size_t first = std::string::npos;
  for (const std::string& stop : stop_) first = std::min(first, text.find(stop));
  return first == std::string::npos ? std::nullopt : std::optional(first);
}

std::string AnswerText::text() const {
  std::vector<int32_t> shown = tokens_;
  if (ends_in_end_token_) shown.pop_back();  // an end token may be an ordinary token
  std::string text = tokenizer_.decode(shown, skips_special_);
  if (stop_at_) text.resize(*stop_at_);
  return text;
}

int64_t AnswerText::num_text_tokens() const {
  if (ends_in_end_token_) return std::ssize(tokens_) - 1;
  if (!stop_at_) return std::ssize(tokens_);
  const std::string shown = text();
  // Binary search: if the first n tokens show all of the text, so do more than n tokens.
  size_t fewer = 0;
  size_t enough = tokens_.size();
  while (fewer < enough) {
    const size_t count = (fewer + enough) / 2;
    if (decode(0, count).starts_with(shown))
      enough = count;
    else
      fewer = count + 1;
  }
  return static_cast<int64_t>(enough);
}

std::string AnswerText::stop_string() const {
  if (!stop_at_) return {};
  const std::string text = tokenizer_.decode(tokens_, skips_special_);
  for (const std::string& stop : stop_)
    if (text.compare(*stop_at_, stop.size(), stop) == 0) return stop;
  return {};
}

std::string AnswerText::decode(size_t first_token, size_t end_token) const {
  const auto at = [this](size_t token) { return tokens_.begin() + static_cast<ptrdiff_t>(token); };
  return tokenizer_.decode({at(first_token), at(end_token)}, skips_special_);
}

std::string AnswerText::text_so_far() {
  constexpr std::string_view kPartOfALetter = "\xef\xbf\xbd";  // U+FFFD
  const std::string settled = decode(settled_before_, settled_tokens_);
  const std::string all = decode(settled_before_, tokens_.size());
  std::string text = settled_text_ + all.substr(std::min(settled.size(), all.size()));
  if (all.size() > settled.size() && !all.ends_with(kPartOfALetter)) {
    settled_before_ = std::exchange(settled_tokens_, tokens_.size());
    settled_text_ = text;
  }
  return text;
}

}  // namespace convoy::generate

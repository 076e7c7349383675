// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_logprobs.h"

namespace convoy::recipes {
namespace {

Json token_of(const std::string& token, float logprob) {
  return {{"token", token},
          {"logprob", logprob},
          {"bytes", std::vector<uint8_t>(token.begin(), token.end())}};
}

}  // namespace

Json LogprobWriter::next(const generate::AnswerTokens& all) {
  return until(all, all.logprobs.size());
}

Json LogprobWriter::last(const generate::AnswerTokens& all) {
  const bool ends_in_special = !all.ids.empty() && tokenizer_.is_special(all.ids.back());
  return until(all, std::min(all.logprobs.size(), all.ids.size() - (ends_in_special ? 1 : 0)));
}

Json LogprobWriter::until(const generate::AnswerTokens& all, size_t end) {
  if (end <= given_) return nullptr;
  Json part = kind_ == ApiKind::Chat ? chat_part(all, end) : completion_part(all, end);
  given_ = end;
  return part;
}

Json LogprobWriter::chat_part(const generate::AnswerTokens& all, size_t end) {
  Json content = Json::array();
  for (size_t at = given_; at < end; ++at) {
    Json one = token_of(tokenizer_.decode({all.ids[at]}, false), all.logprobs[at]);
    one["top_logprobs"] = Json::array();
    if (!all.likeliest.empty())
      for (const auto& [id, logprob] : all.likeliest[at])
        one["top_logprobs"].push_back(
            token_of(tokenizer_.decode({static_cast<int32_t>(id)}, false), logprob));
    content.push_back(std::move(one));
  }
  return {{"content", content}};
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
    offsets.push_back(text_offset_);
    text_offset_ += std::ssize(token);
    if (all.likeliest.empty()) continue;
    Json by_token = Json::object();
    for (const auto& [id, logprob] : all.likeliest[at])
      by_token.emplace(tokenizer_.decode({static_cast<int32_t>(id)}, false), logprob);
    by_token.emplace(token, all.logprobs[at]);  // though it be none of the most likely ones
    likeliest.push_back(std::move(by_token));
  }
  return {{"tokens", tokens},
          {"token_logprobs", values},
          {"top_logprobs", likeliest},
          {"text_offset", offsets}};
}

}  // namespace convoy::recipes

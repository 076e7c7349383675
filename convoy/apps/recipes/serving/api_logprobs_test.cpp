// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/api_logprobs.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

namespace convoy::recipes {
namespace {

text::Tokenizer tokenizer_of(const std::string& name) {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  return text::Tokenizer::load(std::filesystem::path(source == nullptr ? "." : source) / name);
}

TEST(ApiLogprobs, BytesOfTokensJoinToTheText) {
  const std::string text = "Ann's caf\u00e9: 3 \U0001F308 \u4e2d\u00ad\u00a0\n\t!";
  for (const std::string name : {"examples/tally-3m", "tests/golden/text/llama3"}) {
    const text::Tokenizer tokenizer = tokenizer_of(name);
    std::string bytes;
    bool has_part_of_letter = false;
    for (const int32_t id : tokenizer.encode(text, text::SpecialTokens::Omit).ids) {
      bytes += token_bytes(tokenizer, id);
      has_part_of_letter =
          has_part_of_letter || tokenizer.decode({id}, false).find("\ufffd") != std::string::npos;
    }
    EXPECT_EQ(bytes, text) << name;
    EXPECT_TRUE(has_part_of_letter) << name;
  }
  // The vocabulary has pieces for bytes.
  const text::Tokenizer tokenizer = tokenizer_of("tests/golden/text/metaspace");
  std::string bytes;
  for (const int32_t id : tokenizer.encode("a\U0001F308", text::SpecialTokens::Omit).ids)
    bytes += token_bytes(tokenizer, id);
  EXPECT_TRUE(bytes.ends_with("\U0001F308")) << bytes;
}

TEST(ApiLogprobs, PartsJoinToTheWhole) {
  const text::Tokenizer tokenizer = tokenizer_of("examples/tally-3m");
  const std::vector<int32_t> ids{40, 41, 42};
  const std::vector<float> logprobs{-0.5f, -1, -2};
  const std::vector<std::vector<kernels::TokenLogprob>> likeliest{
      {{40, -0.5f}}, {{50, -0.25f}}, {{42, -2.f}}};
  const generate::AnswerTokens all{ids, logprobs, likeliest};
  const generate::AnswerTokens begun{{ids.data(), 2}, {logprobs.data(), 2}, {likeliest.data(), 2}};
  LogprobWriter chat(ApiKind::Chat, tokenizer);
  EXPECT_EQ(chat.next(begun)["content"].size(), 2u);
  EXPECT_TRUE(chat.next(begun).is_null());
  const Json rest = chat.next(all);
  ASSERT_EQ(rest["content"].size(), 1u);
  EXPECT_EQ(rest["content"][0]["logprob"], -2);
  const Json whole = LogprobWriter(ApiKind::Completion, tokenizer).next(all);
  EXPECT_EQ(whole["token_logprobs"], Json({-0.5, -1, -2}));
  EXPECT_EQ(whole["text_offset"], Json({0, 1, 2}));
  // The list has the picked token and the most likely token.
  EXPECT_EQ(whole["top_logprobs"][1].size(), 2u);
  EXPECT_TRUE(LogprobWriter(ApiKind::Chat, tokenizer).next({ids, {}, {}}).is_null());
}

TEST(ApiLogprobs, OffsetsCountLettersOfTheText) {
  const text::Tokenizer tokenizer = tokenizer_of("examples/tally-3m");
  // The rainbow's four bytes are several tokens with the same offset.
  const std::vector<int32_t> ids =
      tokenizer.encode("\u00e9\U0001F308x", text::SpecialTokens::Omit).ids;
  const std::vector<float> logprobs(ids.size(), -1);
  const Json offsets =
      LogprobWriter(ApiKind::Completion, tokenizer).next({ids, logprobs, {}})["text_offset"];
  EXPECT_EQ(offsets.front(), 0);
  EXPECT_EQ(offsets.back(), 2);
  for (const Json& offset : offsets) EXPECT_LE(offset.get<int64_t>(), 2) << offsets;
}

TEST(ApiLogprobs, TokensOfAnUncertainTextWait) {
  const text::Tokenizer tokenizer = tokenizer_of("examples/tally-3m");
  const std::vector<int32_t> ids = tokenizer.encode("12 + 7", text::SpecialTokens::Omit).ids;
  const std::vector<float> logprobs(ids.size(), -1);
  const generate::AnswerTokens all{ids, logprobs, {}};
  LogprobWriter writer(ApiKind::Completion, tokenizer);
  EXPECT_TRUE(writer.next(all, 6).is_null());
  const auto joined = [](const Json& part) {
    std::string text;
    for (const Json& token : part.at("tokens")) text += token.get<std::string>();
    return text;
  };
  const std::string certain = joined(writer.next(all, 2));
  EXPECT_TRUE(std::string("12 + ").starts_with(certain) && !certain.empty()) << certain;
  EXPECT_EQ(certain + joined(writer.next(all)), "12 + 7");
}

}  // namespace
}  // namespace convoy::recipes

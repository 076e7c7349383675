// SPDX-License-Identifier: Apache-2.0
//
// Answers that must match a grammar, written by the bundled model, which knows sums and no JSON.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/generate/engine/engine.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/registry.h"
#include "files/source_folder.h"

namespace convoy {
namespace {

using nlohmann::json;

constexpr const char* kSchema = R"({
  "type": "object",
  "properties": {
    "steps": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 999}, "minItems": 1, "maxItems": 3},
    "unit": {"enum": ["m", "s"]},
    "note": {"type": "string", "maxLength": 12}
  },
  "required": ["steps", "unit"],
  "additionalProperties": false
})";

void expect_match(const std::string& text) {
  const json answer = json::parse(text, nullptr, false);
  ASSERT_TRUE(answer.is_object()) << text;
  for (const auto& [key, value] : answer.items())
    EXPECT_TRUE(key == "steps" || key == "unit" || key == "note") << text;
  ASSERT_TRUE(answer.contains("steps") && answer.contains("unit")) << text;
  EXPECT_GE(answer["steps"].size(), 1u);
  EXPECT_LE(answer["steps"].size(), 3u);
  for (const json& step : answer["steps"]) EXPECT_TRUE(step.is_number_integer()) << text;
  EXPECT_TRUE(answer["unit"] == "m" || answer["unit"] == "s") << text;
}

class Grammar : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const io::ModelFolder folder =
        io::ModelFolder::open(testing::source_folder() / "examples/tally-3m");
    model_ = models::load_causal_lm(folder, at::kFloat).release();
    tokenizer_ = new text::Tokenizer(text::Tokenizer::load(folder.path()));
    end_ids_ = families::end_token_ids(folder);
  }
  static void TearDownTestSuite() {
    delete model_;
    delete tokenizer_;
  }

  static std::shared_ptr<const text::AnswerGrammar> compiled(const text::GrammarSource& source) {
    const text::GrammarCompiler compiler(*tokenizer_,
                                         std::min(model_->vocab_size(), tokenizer_->vocab_size()));
    return compiler.compile(source);
  }
  static std::vector<generate::Request> requests(
      int64_t count, const std::shared_ptr<const text::AnswerGrammar>& grammar,
      double temperature = 1.0) {
    std::vector<generate::Request> made;
    for (int64_t row = 0; row < count; ++row) {
      const std::string prompt = fmt::format("Question: {} + {} = ?\nAnswer:", row, 3 * row);
      made.push_back({.prompt = tokenizer_->encode(prompt, text::SpecialTokens::Add).ids,
                      .sampling = {.temperature = temperature},
                      .draw = {.seed = 5, .row = row},
                      .max_new_tokens = 1000,
                      .form = {.grammar = grammar}});
    }
    return made;
  }
  static std::vector<generate::Completion> answers(std::vector<generate::Request> requests,
                                                   generate::EngineConfig config = {}) {
    config.end_ids = end_ids_;
    generate::Engine engine(*model_, *tokenizer_, std::move(config));
    return generate::answer_all(engine, std::move(requests));
  }

  static nn::CausalLm* model_;
  static text::Tokenizer* tokenizer_;
  static std::vector<int32_t> end_ids_;
};
nn::CausalLm* Grammar::model_ = nullptr;
text::Tokenizer* Grammar::tokenizer_ = nullptr;
std::vector<int32_t> Grammar::end_ids_;

TEST_F(Grammar, EveryAnswerMatchesTheSchema) {
  const auto schema = compiled({text::GrammarKind::JsonSchema, kSchema});
  for (const double temperature : {0.0, 1.0, 3.0}) {
    for (const generate::Completion& answer : answers(requests(24, schema, temperature))) {
      ASSERT_EQ(answer.finish_reason, generate::FinishReason::Stop);
      expect_match(answer.text);
    }
  }
}

TEST_F(Grammar, AChoiceIsTakenByTheModelsOwnShares) {
  const auto choice = compiled({text::GrammarKind::Choice, R"([" 4", " 5 apples"])"});
  auto asked = requests(12, choice);
  for (generate::Request& request : asked) {
    request.wants_logprobs = true;
    request.num_likeliest = 64;
  }
  for (const generate::Completion& answer : answers(std::move(asked))) {
    EXPECT_TRUE(answer.text == " 4" || answer.text == " 5 apples") << answer.text;
    EXPECT_EQ(answer.finish_reason, generate::FinishReason::Stop);
    for (const auto& likeliest : answer.likeliest) {
      double sum = 0;
      for (const auto& token : likeliest) sum += std::exp(token.logprob);
      EXPECT_NEAR(sum, 1.0, 1e-4)
          << "few ids are allowed, end tokens among them, and all are listed";
    }
  }
}

TEST_F(Grammar, StepsAndNeighboursChangeNoAnswer) {
  const auto schema = compiled({text::GrammarKind::JsonSchema, kSchema});
  std::vector<generate::Request> mixed = requests(12, schema);
  for (generate::Request& request : mixed) request.max_new_tokens = 120;
  for (size_t row = 1; row < mixed.size(); row += 2) mixed[row].form = {};
  std::vector<std::vector<int32_t>> wanted;
  for (const generate::Request& one : mixed)
    wanted.push_back(answers({one}, {.max_rows = 1}).front().token_ids);
  for (const bool reads_late : {false, true}) {
    // Few blocks, so that rows are preempted and computed again.
    const auto found = answers(
        mixed, {.max_rows = 6, .prefill_chunk = 16, .kv_blocks = 26, .reads_late = reads_late});
    for (size_t row = 0; row < wanted.size(); ++row)
      EXPECT_EQ(found[row].token_ids, wanted[row]) << row << " " << reads_late;
  }
}

}  // namespace
}  // namespace convoy

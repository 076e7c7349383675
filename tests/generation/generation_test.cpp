// SPDX-License-Identifier: Apache-2.0
//
// The bundled model writes answers: models, text and generate together.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/generate/generator.h"
#include "convoy/models/registry.h"
#include "convoy/text/tokenizer.h"

namespace convoy {
namespace {

std::string example(const std::string& name) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  return std::string(source ? source : ".") + "/examples/" + name;
}

struct Sum {
  std::string prompt;
  std::string result;  // after "####"
};

std::vector<Sum> test_sums(size_t count) {
  std::ifstream file(example("sums/test.jsonl"));
  std::vector<Sum> sums;
  std::string line;
  while (sums.size() < count && std::getline(file, line)) {
    const auto row = nlohmann::json::parse(line);
    const auto answer = row.at("answer").get<std::string>();
    sums.push_back({"Question: " + row.at("question").get<std::string>() + "\nAnswer:",
                    answer.substr(answer.find("####"))});
  }
  return sums;
}

class Tally : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const io::ModelFolder folder = io::ModelFolder::open(example("tally-3m"));
    model_ = models::load_causal_lm(folder, at::kFloat).release();
    tokenizer_ = new text::Tokenizer(text::Tokenizer::load(folder.path()));
    end_ids_ = models::end_token_ids(folder);
  }
  static void TearDownTestSuite() {
    delete model_;
    delete tokenizer_;
  }

  std::vector<std::vector<int32_t>> encode(const std::vector<Sum>& sums) const {
    std::vector<std::vector<int32_t>> prompts;
    for (const Sum& sum : sums)
      prompts.push_back(tokenizer_->encode(sum.prompt, text::SpecialTokens::Add).ids);
    return prompts;
  }
  generate::GenerationConfig greedy() const {
    generate::GenerationConfig config;
    config.sampling.temperature = 0;
    config.max_new_tokens = 120;
    config.end_ids = end_ids_;
    return config;
  }

  static nn::CausalLm* model_;
  static text::Tokenizer* tokenizer_;
  static std::vector<int32_t> end_ids_;
};
nn::CausalLm* Tally::model_ = nullptr;
text::Tokenizer* Tally::tokenizer_ = nullptr;
std::vector<int32_t> Tally::end_ids_;

TEST_F(Tally, SolvesSums) {
  const auto sums = test_sums(60);
  ASSERT_EQ(sums.size(), 60u);
  int64_t reported = 0;
  const auto answers =
      generate::Generator(*model_, *tokenizer_, greedy()).run(encode(sums), [&](const auto&) {
        ++reported;
      });
  ASSERT_EQ(answers.size(), sums.size());
  EXPECT_EQ(reported, 60);
  int64_t right = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(answers[i].index, static_cast<int64_t>(i));
    EXPECT_EQ(answers[i].finish_reason, generate::FinishReason::Stop);
    right += answers[i].text.ends_with(sums[i].result);
  }
  EXPECT_GE(right, 58);
}

TEST_F(Tally, TextDoesNotDependOnTheBatch) {
  const auto prompts = encode(test_sums(7));
  generate::GenerationConfig config = greedy();
  config.sampling = {.temperature = 2.0, .top_p = 0.99, .seed = 11};
  config.max_new_tokens = 40;
  config.samples_per_prompt = 2;
  config.batch_size = 3;
  const auto narrow = generate::Generator(*model_, *tokenizer_, config).run(prompts);
  config.batch_size = 16;
  const auto wide = generate::Generator(*model_, *tokenizer_, config).run(prompts);
  ASSERT_EQ(narrow.size(), 14u);
  ASSERT_EQ(wide.size(), 14u);
  int64_t unlike = 0;
  for (size_t i = 0; i < wide.size(); ++i) {
    EXPECT_EQ(narrow[i].index, static_cast<int64_t>(i / 2));
    EXPECT_EQ(narrow[i].sample, static_cast<int64_t>(i % 2));
    EXPECT_EQ(narrow[i].token_ids, wide[i].token_ids) << i;
    if (i % 2 == 1) unlike += wide[i].token_ids != wide[i - 1].token_ids;
  }
  EXPECT_GT(unlike, 0);  // samples of one prompt differ
}

TEST_F(Tally, TextDoesNotDependOnWhoAnswersWhichPrompt) {
  const auto prompts = encode(test_sums(5));
  generate::GenerationConfig config = greedy();
  config.sampling = {.temperature = 2.0, .top_p = 0.99, .seed = 11};
  config.max_new_tokens = 20;
  config.samples_per_prompt = 2;
  const auto all = generate::Generator(*model_, *tokenizer_, config).run(prompts);
  config.index_step = 2;
  for (int64_t first : {0, 1}) {
    config.first_index = first;
    std::vector<std::vector<int32_t>> own;
    for (size_t number = static_cast<size_t>(first); number < prompts.size(); number += 2)
      own.push_back(prompts[number]);
    for (const auto& answer : generate::Generator(*model_, *tokenizer_, config).run(own)) {
      const auto& same = all[static_cast<size_t>(2 * answer.index + answer.sample)];
      EXPECT_EQ(answer.index % 2, first);
      EXPECT_EQ(answer.index, same.index);
      EXPECT_EQ(answer.token_ids, same.token_ids);
    }
  }
  EXPECT_TRUE(generate::Generator(*model_, *tokenizer_, config).run({}).empty());
}

TEST_F(Tally, StopStringsEndATextAndAreNotPartOfIt) {
  generate::GenerationConfig config = greedy();
  const auto prompts = encode(test_sums(1));
  const auto whole = generate::Generator(*model_, *tokenizer_, config).run(prompts)[0];
  const size_t hash = whole.text.find("\n####");
  ASSERT_NE(hash, std::string::npos);
  config.stop = {"nowhere", "\n####"};
  const auto stopped = generate::Generator(*model_, *tokenizer_, config).run(prompts)[0];
  EXPECT_EQ(stopped.text, whole.text.substr(0, hash));
  EXPECT_EQ(stopped.finish_reason, generate::FinishReason::Stop);
  EXPECT_LT(stopped.token_ids.size(), whole.token_ids.size());
}

TEST_F(Tally, LengthLimitsEndATextWithReasonLength) {
  generate::GenerationConfig config = greedy();
  config.max_new_tokens = 5;
  auto prompts = encode(test_sums(1));
  const auto cut = generate::Generator(*model_, *tokenizer_, config).run(prompts)[0];
  EXPECT_EQ(cut.token_ids.size(), 5u);
  EXPECT_EQ(cut.finish_reason, generate::FinishReason::Length);
  EXPECT_EQ(cut.prompt_tokens, static_cast<int64_t>(prompts[0].size()));

  prompts[0].assign(static_cast<size_t>(model_->max_positions()) - 2, prompts[0][0]);
  EXPECT_LE(generate::Generator(*model_, *tokenizer_, greedy()).run(prompts)[0].token_ids.size(),
            2u);
  prompts[0].resize(static_cast<size_t>(model_->max_positions()), prompts[0][0]);
  EXPECT_THROW(generate::Generator(*model_, *tokenizer_, greedy()).run(prompts), DataError);
  EXPECT_THROW(generate::Generator(*model_, *tokenizer_, greedy()).run({{}}), DataError);
}

TEST_F(Tally, RefusesSettingsOutOfRange) {
  generate::GenerationConfig config = greedy();
  config.sampling.top_p = 0;
  EXPECT_THROW(generate::Generator(*model_, *tokenizer_, config), ConfigError);
  config = greedy();
  config.stop = {""};
  EXPECT_THROW(generate::Generator(*model_, *tokenizer_, config), ConfigError);
}

}  // namespace
}  // namespace convoy

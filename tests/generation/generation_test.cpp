// SPDX-License-Identifier: Apache-2.0
//
// Generates answers with the bundled model: tests the model, text and generate layers together.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/models/registry.h"

namespace convoy {
namespace {

std::string example(const std::string& name) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  return std::string(source ? source : ".") + "/examples/" + name;
}

struct Sum {
  std::string prompt;
  std::string result;  // the digits after "####"
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

TEST(AnswerText, GrowsToWhatItIsAsAWhole) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(example("tally-3m"));
  const std::string written =
      "12 + 7 = 19 \u00e4\u20ac\U0001F600\U0001F468\u200d\U0001F469  x\n\nend";
  const std::vector<int32_t> ids = tokenizer.encode(written, text::SpecialTokens::Omit).ids;
  const std::vector<int32_t> no_end_ids;
  generate::AnswerText answer(tokenizer, no_end_ids, {}, 1000);
  size_t given = 0;
  for (const int32_t id : ids) {
    answer.take(id);
    const std::string text = answer.text_so_far();
    EXPECT_EQ(text, answer.text());
    EXPECT_GE(text.size() + 3, given);  // at most a part of a character goes away
    given = text.size();
  }
  EXPECT_EQ(answer.text_so_far(), written);
}

TEST(AnswerText, ShowsSpecialTokensWhereAsked) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(example("tally-3m"));
  const std::vector<int32_t> end_ids{*tokenizer.eos_id()};
  const std::vector<int32_t> ids =
      tokenizer.encode("<|im_start|>a<|im_end|>", text::SpecialTokens::Omit).ids;
  ASSERT_EQ(ids.size(), 3u);
  for (const bool shows : {false, true}) {
    generate::AnswerText answer(tokenizer, end_ids, {.shows_special_tokens = shows}, 1000);
    for (const int32_t id : ids) answer.take(id);
    EXPECT_EQ(answer.text(), shows ? "<|im_start|>a" : "a");
  }
}

class Tally : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const io::ModelFolder folder = io::ModelFolder::open(example("tally-3m"));
    model_ = models::load_causal_lm(folder, at::kFloat).release();
    tokenizer_ = new text::Tokenizer(text::Tokenizer::load(folder.path()));
    end_ids_ = families::end_token_ids(folder);
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
  // Returns a greedy request for each prompt.
  std::vector<generate::Request> requests(const std::vector<std::vector<int32_t>>& prompts,
                                          int64_t max_new_tokens = 120) const {
    std::vector<generate::Request> made;
    for (const auto& prompt : prompts)
      made.push_back({.prompt = prompt,
                      .sampling = {.temperature = 0},
                      .draw = {.seed = 11, .row = static_cast<int64_t>(made.size())},
                      .max_new_tokens = max_new_tokens});
    return made;
  }
  std::vector<generate::Request> sampled(const std::vector<std::vector<int32_t>>& prompts) const {
    std::vector<generate::Request> made = requests(prompts, 40);
    for (generate::Request& request : made) request.sampling = {.temperature = 2.0, .top_p = 0.99};
    return made;
  }
  generate::Engine engine(generate::EngineConfig config = {}) const {
    config.end_ids = end_ids_;
    return {*model_, *tokenizer_, std::move(config)};
  }
  std::vector<generate::Completion> answers(std::vector<generate::Request> requests,
                                            generate::EngineConfig config = {}) const {
    generate::Engine made = engine(std::move(config));
    return generate::answer_all(made, std::move(requests));
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
  generate::Engine made = engine();
  int64_t reported = 0;
  const auto found =
      generate::answer_all(made, requests(encode(sums)), [&](const auto&) { ++reported; });
  ASSERT_EQ(found.size(), sums.size());
  EXPECT_EQ(reported, 60);
  int64_t right = 0;
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_EQ(found[i].number, static_cast<int64_t>(i));
    EXPECT_EQ(found[i].finish_reason, generate::FinishReason::Stop);
    right += found[i].text.ends_with(sums[i].result);
  }
  EXPECT_GE(right, 58);
  const generate::EngineFigures figures = made.figures();
  EXPECT_EQ(figures.running + figures.waiting, 0);
  EXPECT_EQ(figures.kv_use, 0);
  EXPECT_GT(figures.decode_tokens, 60);
  EXPECT_GT(figures.prefill_tokens, 60);
}

TEST_F(Tally, TextDoesNotDependOnTheBatch) {
  const auto requests = sampled(encode(test_sums(14)));
  const auto wide = answers(requests, {.max_rows = 16});
  for (const generate::EngineConfig& config :
       {generate::EngineConfig{.max_rows = 1},
        {.max_rows = 3},
        {.prefill_chunk = 5},
        {.prefill_chunk = 7, .kv_blocks = 6},
        {.shares_prefixes = false},
        {.max_rows = 3, .reads_late = true},
        {.prefill_chunk = 7, .kv_blocks = 6, .reads_late = true}}) {
    const auto narrow = answers(requests, config);
    for (size_t i = 0; i < wide.size(); ++i)
      EXPECT_EQ(narrow[i].token_ids, wide[i].token_ids) << i << " " << config.max_rows;
  }
}

TEST_F(Tally, SamplesOfOnePromptDifferAndShareItsBlocks) {
  const auto prompts = encode(test_sums(2));
  std::vector<int32_t> prompt = prompts[0];
  prompt.insert(prompt.end(), prompts[1].begin(), prompts[1].end());
  ASSERT_GT(prompt.size(), 33u);
  auto requests = sampled({prompt, prompt, prompt});
  for (size_t sample = 0; sample < 3; ++sample)
    requests[sample].draw = {.seed = 11, .sample = sample};
  generate::Engine made = engine();
  const auto found = generate::answer_all(made, requests);
  EXPECT_NE(found[0].token_ids, found[1].token_ids);
  EXPECT_NE(found[1].token_ids, found[2].token_ids);
  const auto full = static_cast<int64_t>((prompt.size() - 1) / 32 * 32);
  EXPECT_EQ(made.figures().cached_prompt_tokens, 2 * full);
  for (size_t sample = 0; sample < 3; ++sample)
    EXPECT_EQ(found[sample].cached_tokens, sample == 0 ? 0 : full);
  // The same request later and in another place draws the same tokens.
  EXPECT_EQ(answers({requests[2]})[0].token_ids, found[2].token_ids);
}

TEST_F(Tally, RequestsComeAndGoAtAnyTime) {
  const auto sums = test_sums(6);
  const auto alone = answers(requests(encode(sums)));
  generate::Engine made = engine({.max_rows = 2});
  std::map<int64_t, std::vector<int32_t>> found;
  const auto step = [&] {
    for (const auto& ended : made.step()) found[ended.number] = ended.token_ids;
  };
  auto all = requests(encode(sums));
  for (int64_t number = 0; number < 6; ++number) {
    all[static_cast<size_t>(number)].number = number;
    made.submit(all[static_cast<size_t>(number)]);
    for (int64_t steps = 0; steps < 5; ++steps) step();
    if (number == 3) made.cancel(3);
  }
  while (made.unfinished() > 0) step();
  EXPECT_TRUE(made.step().empty());
  ASSERT_EQ(found.size(), 5u);
  for (const auto& [number, tokens] : found)
    EXPECT_EQ(tokens, alone[static_cast<size_t>(number)].token_ids) << number;
}

TEST_F(Tally, StopStringsEndATextAndAreNotPartOfIt) {
  auto asked = requests(encode(test_sums(1)));
  const auto whole = answers(asked)[0];
  const size_t hash = whole.text.find("\n####");
  ASSERT_NE(hash, std::string::npos);
  asked[0].stop = {"nowhere", "\n####"};
  const auto stopped = answers(asked)[0];
  EXPECT_EQ(stopped.text, whole.text.substr(0, hash));
  EXPECT_EQ(stopped.finish_reason, generate::FinishReason::Stop);
  EXPECT_LT(stopped.token_ids.size(), whole.token_ids.size());
  // The answer has exactly the tokens of its text.
  const auto text_of = [&](int64_t tokens) {
    return tokenizer_->decode({stopped.token_ids.begin(), stopped.token_ids.begin() + tokens},
                              true);
  };
  EXPECT_LT(stopped.text_tokens, std::ssize(stopped.token_ids));
  EXPECT_TRUE(text_of(stopped.text_tokens).starts_with(stopped.text));
  EXPECT_LT(text_of(stopped.text_tokens - 1).size(), stopped.text.size());
  EXPECT_EQ(whole.text_tokens, std::ssize(whole.token_ids) - 1);
  asked[0].stop.clear();
  asked[0].stop_ids = {whole.token_ids[4]};
  const auto first = std::find(whole.token_ids.begin(), whole.token_ids.end(), whole.token_ids[4]);
  EXPECT_EQ(answers(asked)[0].token_ids,
            (std::vector<int32_t>{whole.token_ids.begin(), first + 1}));
}

// A step may draw before the host has read the previous step's tokens. Penalties, unexpected ends
// and preempted rows must give the same tokens then.
TEST_F(Tally, TokensThatAreReadAStepLaterAreTheSame) {
  auto asked = sampled(encode(test_sums(9)));
  for (size_t index = 0; index < asked.size(); ++index) {
    generate::Request& request = asked[index];
    request.wants_logprobs = index % 2 == 0;
    request.max_new_tokens = 3 + 11 * static_cast<int64_t>(index);
    if (index % 3 == 0) request.sampling.temperature = 0;
    if (index % 3 == 1) request.sampling.repetition_penalty = 1.7;
    if (index % 4 == 1) request.stop = {"1", " t"};
  }
  asked[2].sampling.frequency_penalty = 1.5;
  asked[2].sampling.presence_penalty = 0.5;
  asked[2].logit_bias = {{.id = 40, .bias = 3}};
  asked[3].sampling.repetition_penalty = 2.5;
  asked[3].sampling.presence_penalty = 2;
  asked[4].num_likeliest = 3;
  asked[6].max_new_tokens = 1;
  asked[7].sampling = {.temperature = 0.01};  // ends by an end token
  const auto expect_equal = [&](const generate::EngineConfig& config) {
    generate::EngineConfig now = config;
    now.reads_late = false;
    generate::EngineConfig late = config;
    late.reads_late = true;
    const auto wanted = answers(asked, now);
    generate::Engine made = engine(late);
    const auto found = generate::answer_all(made, asked);
    for (size_t index = 0; index < asked.size(); ++index) {
      EXPECT_EQ(found[index].token_ids, wanted[index].token_ids) << index;
      EXPECT_EQ(found[index].text, wanted[index].text) << index;
      EXPECT_EQ(found[index].logprobs, wanted[index].logprobs) << index;
      EXPECT_EQ(found[index].likeliest.size(), index == 4 ? found[index].token_ids.size() : 0);
      for (size_t at = 0; at < found[index].likeliest.size(); ++at)
        for (size_t rank = 0; rank < 3; ++rank)
          EXPECT_EQ(found[index].likeliest[at].at(rank).id,
                    wanted[index].likeliest.at(at).at(rank).id);
      EXPECT_EQ(found[index].finish_reason, wanted[index].finish_reason) << index;
    }
    EXPECT_EQ(made.figures().kv_use, 0);
    EXPECT_TRUE(made.step().empty()) << "what came after the last end";
    return made.figures().preemptions;
  };
  EXPECT_EQ(expect_equal({}), 0);
  EXPECT_EQ(expect_equal({.max_rows = 2, .prefill_chunk = 9}), 0);
  EXPECT_GT(expect_equal({.prefill_chunk = 7, .kv_blocks = 4}), 0);
}

// The engine knows a last step by length in advance. An end by a token costs one more step.
TEST_F(Tally, ReadingLateTakesNoStepThatIsKnownToBeTooMuch) {
  auto asked = requests(encode(test_sums(1)), 5);
  const auto steps_and_tokens = [&](bool reads_late) {
    generate::Engine made = engine({.reads_late = reads_late});
    made.submit(asked[0]);
    int64_t steps = 0;
    for (; made.unfinished() > 0; ++steps) made.step();
    return std::pair(steps, made.figures().decode_tokens);
  };
  EXPECT_EQ(steps_and_tokens(false), std::pair(int64_t{5}, int64_t{4}));
  EXPECT_EQ(steps_and_tokens(true), std::pair(int64_t{6}, int64_t{4})) << "the last one reads";
  asked[0].stop_ids = {answers(asked)[0].token_ids[2]};
  ASSERT_EQ(answers(asked)[0].token_ids.size(), 3U);
  EXPECT_EQ(steps_and_tokens(true), std::pair(int64_t{4}, int64_t{3})) << "one is dropped";
}

TEST_F(Tally, ANumberThatIsCancelledAndUsedAgainIsAnotherText) {
  const auto prompts = encode(test_sums(2));
  const auto wanted = answers(requests({prompts[1]}));
  generate::Engine made = engine({.reads_late = true});
  auto asked = requests(prompts);
  asked[1].number = asked[0].number = 7;
  made.submit(asked[0]);
  for (int64_t step = 0; step < 4; ++step) made.step();
  made.cancel(7);
  asked[1].draw = asked[0].draw;
  made.submit(asked[1]);
  std::vector<generate::Completion> ended;
  while (made.unfinished() > 0)
    for (auto& completion : made.step()) ended.push_back(std::move(completion));
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].token_ids, wanted[0].token_ids);
}

TEST_F(Tally, LengthLimitsEndATextWithReasonLength) {
  auto prompts = encode(test_sums(1));
  const auto cut = answers(requests(prompts, 5))[0];
  EXPECT_EQ(cut.token_ids.size(), 5u);
  EXPECT_EQ(cut.finish_reason, generate::FinishReason::Length);
  EXPECT_EQ(cut.prompt_tokens, static_cast<int64_t>(prompts[0].size()));

  prompts[0].assign(static_cast<size_t>(model_->max_positions()) - 2, prompts[0][0]);
  EXPECT_LE(answers(requests(prompts))[0].token_ids.size(), 2u);
  prompts[0].resize(static_cast<size_t>(model_->max_positions()), prompts[0][0]);
  EXPECT_THROW(answers(requests(prompts)), DataError);
  EXPECT_THROW(answers(requests({{}})), DataError);
}

TEST_F(Tally, RefusesWhatItCanNotAnswer) {
  const auto prompts = encode(test_sums(1));
  auto asked = requests(prompts);
  asked[0].sampling.top_p = 0;
  EXPECT_THROW(answers(asked), ConfigError);
  asked = requests(prompts);
  asked[0].stop = {""};
  EXPECT_THROW(answers(asked), ConfigError);
  EXPECT_THROW(answers(requests(prompts, 0)), ConfigError);
  EXPECT_THROW(engine({.max_rows = 0}), ConfigError);
  // A cache of two blocks holds 64 tokens.
  try {
    answers(requests(prompts), {.kv_blocks = 2});
    FAIL();
  } catch (const DataError& error) {
    EXPECT_NE(error.sentence().find("--kv-blocks"), std::string::npos) << error.sentence();
  }
  generate::Engine made = engine();
  asked = requests(prompts);
  asked[0].prompt.clear();
  EXPECT_THROW(made.submit(asked[0]), DataError);
  EXPECT_EQ(made.unfinished(), 0);  // refused requests leave nothing in the engine
}

}  // namespace
}  // namespace convoy

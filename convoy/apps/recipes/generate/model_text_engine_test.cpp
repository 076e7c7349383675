// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/generate/model_text_engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/model/nn/kv_cache.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

using process::TextFinish;
using process::TextRequest;
using process::TextResult;

class TextEngineOfAModel : public ::testing::Test {
 protected:
  TextEngineOfAModel()
      : loaded_(load_model(
            {.name = std::string(std::getenv("CONVOY_SOURCE_DIR")) + "/examples/tally-3m"},
            Log(LogLevel::Quiet))) {}

  static TextRequest sum(int64_t number, const std::string& question) {
    return {.number = number,
            .prompt = {.text = "Question: " + question + "\nAnswer:"},
            .sampling = {.temperature = 0, .max_new_tokens = 80},
            .draw = {.row = number}};
  }
  static std::map<int64_t, TextResult> finish(process::TextEngine& engine) {
    std::map<int64_t, TextResult> results;
    while (engine.unfinished() > 0)
      for (TextResult& result : engine.step()) results[result.number] = std::move(result);
    return results;
  }

  LoadedModel loaded_;
};

TEST_F(TextEngineOfAModel, AnswersTextsAndMessages) {
  const auto engine = make_text_engine(loaded_, {.rows = 3});
  engine->submit(sum(
      1, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?"));
  TextRequest chat = sum(2, "");
  chat.prompt = {.messages = {{{"role", "user"}, {"content", "Question: 1 + 1 = ?"}}}};
  engine->submit(chat);
  TextRequest stopped = sum(
      3, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?");
  stopped.sampling.stop = {"####"};
  engine->submit(stopped);
  EXPECT_EQ(engine->unfinished(), 3);
  auto results = finish(*engine);
  EXPECT_EQ(results[1].finish, TextFinish::Stop);
  EXPECT_TRUE(results[1].text.ends_with("#### 26")) << results[1].text;
  EXPECT_GT(results[1].prompt_tokens, 10);
  EXPECT_GT(results[1].new_tokens, 5);
  EXPECT_GT(results[2].new_tokens, 0);
  EXPECT_EQ(results[3].text, results[1].text.substr(0, results[1].text.find("####")));
  const process::EngineFigures figures = engine->figures();
  EXPECT_EQ(figures.running + figures.waiting, 0);
  EXPECT_GT(figures.decode_tokens, 0);
  EXPECT_GT(figures.prefill_tokens, 0);
}

TEST_F(TextEngineOfAModel, ATextOfASchemaMatchesIt) {
  const std::string schema = R"({"enum": ["yes", 7]})";
  const auto engine = make_text_engine(loaded_, {.rows = 3, .schemas = {{"generate", schema}}});
  TextRequest plain = sum(1, "1 + 1 = ?");
  plain.schema = schema;
  engine->submit(plain);
  TextRequest chat = plain;
  chat.number = 2;
  chat.prompt = {.messages = {{{"role", "user"}, {"content", "Question: 1 + 1 = ?"}}}};
  engine->submit(chat);
  TextRequest odd = plain;
  odd.number = 3;
  odd.schema = R"({"not": {}})";
  engine->submit(odd);
  auto results = finish(*engine);
  for (const int64_t number : {1, 2}) {
    EXPECT_EQ(results[number].finish, TextFinish::Stop);
    EXPECT_TRUE(results[number].text == "\"yes\"" || results[number].text == "7")
        << results[number].text;
  }
  EXPECT_NE(results[3].error.find("\"not\""), std::string::npos) << results[3].error;
  EXPECT_THROW(make_text_engine(loaded_, {.schemas = {{"generate", odd.schema}}}), ConfigError);
}

TEST_F(TextEngineOfAModel, ReadsTokensAndRefusesToScoreThem) {
  const auto engine = make_text_engine(loaded_, {.rows = 3});
  const TextRequest text = sum(1, "1 + 1 = ?");
  TextRequest tokens = text;
  tokens.number = 2;
  tokens.prompt = {.ids = loaded_.tokenizer.encode(text.prompt.text, text::SpecialTokens::Add).ids};
  TextRequest scored = tokens;
  scored.number = 3;
  scored.prompt_likeliest = 5;
  for (const TextRequest& request : {text, tokens, scored}) engine->submit(request);
  auto results = finish(*engine);
  EXPECT_EQ(results[2].text, results[1].text);
  EXPECT_EQ(results[2].prompt_tokens, results[1].prompt_tokens);
  EXPECT_EQ(results[3].finish, TextFinish::Error);
  EXPECT_NE(results[3].error.find("no likeliest tokens of a prompt"), std::string::npos);
}

// A model whose files name no end at all, and a template that writes what it was trained on.
TEST_F(TextEngineOfAModel, AnAnswerInAChatEndsWithItsTurn) {
  convoy::testing::TemporaryFolder folder;
  write_file_atomic(folder / "t.jinja",
                    "{% for m in messages %}{{ m.content }}{% if m.role == 'assistant' %}"
                    "<|endoftext|>{% endif %}{% endfor %}");
  const std::string model = loaded_.folder.path().string();
  LoadedModel loaded = load_model({.name = model, .template_path = (folder / "t.jinja").string()},
                                  Log(LogLevel::Quiet));
  TextRequest chat = sum(
      1, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?");
  chat.prompt = {.messages = {{{"role", "user"}, {"content", chat.prompt.text}}}};
  const auto answer = [&] {
    const auto engine = make_text_engine(loaded, {.rows = 1});
    engine->submit(chat);
    return finish(*engine)[1];
  };
  const TextResult whole = answer();
  ASSERT_EQ(whole.finish, TextFinish::Stop);
  loaded.tokenizer = text::Tokenizer::load(model, "<|im_start|>");
  loaded.end_ids.clear();
  EXPECT_EQ(answer().text, whole.text);
  EXPECT_EQ(answer().new_tokens, whole.new_tokens);
  loaded.turn_end_ids.clear();
  EXPECT_GT(answer().new_tokens, whole.new_tokens);
}

TEST_F(TextEngineOfAModel, WhatCanNotBeAnsweredIsAnErrorOfItsOwn) {
  const auto engine = make_text_engine(loaded_, {.rows = 2});
  TextRequest endless = sum(1, std::string(200'000, 'x'));
  engine->submit(endless);
  TextRequest strange = sum(2, "1 + 1");
  strange.sampling.top_p = 0;
  engine->submit(strange);
  TextRequest refused = sum(3, "");
  refused.prompt = {.messages = {{{"no", "role"}}}};
  engine->submit(refused);
  engine->submit(sum(
      4, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?"));
  auto results = finish(*engine);
  ASSERT_EQ(results.size(), 4u);
  for (const int64_t number : {1, 2, 3}) {
    EXPECT_EQ(results[number].finish, TextFinish::Error) << number;
    EXPECT_FALSE(results[number].error.empty());
    EXPECT_FALSE(results[number].error_may_pass);
    EXPECT_TRUE(results[number].text.empty());
  }
  EXPECT_TRUE(results[4].text.ends_with("#### 26"));
}

TEST_F(TextEngineOfAModel, ACancelledRequestLeavesNothing) {
  const auto engine = make_text_engine(loaded_, {.rows = 2});
  for (int64_t number = 0; number < 4; ++number) engine->submit(sum(number, "1 + 1 = ?"));
  TextRequest strange = sum(4, "1 + 1");
  strange.sampling.top_p = 0;
  engine->submit(strange);
  engine->cancel(4);
  EXPECT_TRUE(engine->step().empty());
  engine->cancel(0);
  engine->cancel(3);
  engine->cancel(77);
  EXPECT_EQ(engine->unfinished(), 2);
  const auto results = finish(*engine);
  EXPECT_EQ(results.size(), 2u);
  engine->submit(sum(0, "1 + 1 = ?"));  // the number may be used again
  EXPECT_EQ(finish(*engine).size(), 1u);
  EXPECT_THROW(make_text_engine(loaded_, {.rows = 0}), ConfigError);
}

// A model before whose passes something may be thrown.
class FailingModel : public nn::CausalLm {
 public:
  using BeforePass = std::function<void(const nn::TokenBatch&)>;
  FailingModel(std::unique_ptr<nn::CausalLm> model, BeforePass before_pass)
      : model_(std::move(model)), before_pass_(std::move(before_pass)) {}

  at::Tensor hidden_states(const nn::TokenBatch& batch,
                           const nn::ForwardOptions& options) override {
    before_pass_(batch);
    return model_->hidden_states(batch, options);
  }
  nn::Linear& head() override { return model_->head(); }
  bool head_is_tied() const override { return model_->head_is_tied(); }
  std::vector<nn::NamedTensor> parameters() override { return model_->parameters(); }
  std::vector<nn::Unit> units() override { return model_->units(); }
  void set_residency(nn::Residency* residency) override { model_->set_residency(residency); }
  nn::Residency* residency() const override { return model_->residency(); }
  nn::UnitUse use_head() const override { return model_->use_head(); }
  std::vector<nn::Linear*> block_linears() override { return model_->block_linears(); }
  void quantize_blocks(const kernels::IntegerFormat& format) override {
    model_->quantize_blocks(format);
  }
  void set_requires_grad(bool wanted) override { model_->set_requires_grad(wanted); }
  at::Device device() const override { return model_->device(); }
  int64_t hidden_size() const override { return model_->hidden_size(); }
  int64_t vocab_size() const override { return model_->vocab_size(); }
  int64_t num_layers() const override { return model_->num_layers(); }
  int64_t max_positions() const override { return model_->max_positions(); }
  const std::string& family() const override { return model_->family(); }
  int64_t matmul_parameters() const override { return model_->matmul_parameters(); }
  int64_t attention_width() const override { return model_->attention_width(); }
  nn::KvGeometry kv_geometry() const override { return model_->kv_geometry(); }

 private:
  std::unique_ptr<nn::CausalLm> model_;
  BeforePass before_pass_;
};

// The step's texts may succeed when they are made again: fewer at once then.
TEST_F(TextEngineOfAModel, WhereMemoryRunsOutTextsAreTriedAgainFewerAtOnce) {
  loaded_.model =
      std::make_unique<FailingModel>(std::move(loaded_.model), [](const nn::TokenBatch& batch) {
        if (batch.rows().num_rows() > 1) throw std::bad_alloc();
      });
  const auto engine = make_text_engine(loaded_, {.rows = 4});
  const char* question =
      "Pia shares 78 buttons equally among 3 friends. How many buttons does each "
      "friend get?";
  std::map<int64_t, int> tries;
  std::map<int64_t, TextResult> results;
  for (int64_t number = 0; number < 4; ++number) engine->submit(sum(number, question));
  while (engine->unfinished() > 0)
    for (TextResult& result : engine->step()) {
      ++tries[result.number];
      if (result.finish == TextFinish::Error) {
        EXPECT_TRUE(result.error_may_pass);
        EXPECT_NE(result.error.find("memory ran out"), std::string::npos) << result.error;
        ASSERT_LT(tries[result.number], 10);
        engine->submit(sum(result.number, question));
      }
      results[result.number] = std::move(result);
    }
  for (int64_t number = 0; number < 4; ++number) {
    EXPECT_TRUE(results[number].text.ends_with("#### 26")) << results[number].text;
    EXPECT_LE(tries[number], 3);
  }
}

// Prompts of more than a block with equal first blocks: the blocks of a failed step must never be
// read.
TEST_F(TextEngineOfAModel, NoTextComesFromBlocksOfAStepThatFailed) {
  const std::string story =
      "Pia has 78 buttons in a box and a friend who counts them twice. On Monday she shares all 78 "
      "buttons equally among 3 friends. How many buttons does each friend get?";
  const std::vector<TextRequest> asked = {sum(1, story), sum(2, story + " Say it."), sum(3, story)};
  const auto answer = [&](process::TextEngine& engine) {
    for (const TextRequest& request : asked) engine.submit(request);
    return finish(engine);
  };
  const auto wanted = answer(*make_text_engine(loaded_, {.rows = 4}));
  ASSERT_GT(wanted.at(1).prompt_tokens, 33);
  std::function<void()> next_fault;
  loaded_.model =
      std::make_unique<FailingModel>(std::move(loaded_.model), [&](const nn::TokenBatch&) {
        if (const auto fault = std::exchange(next_fault, {})) fault();
      });
  const std::vector<std::function<void()>> faults = {
      [] { throw std::bad_alloc(); },
      [] { TORCH_CHECK(false, "DefaultCPUAllocator: can't allocate memory"); },
      [] { throw std::runtime_error("another one"); }};
  for (size_t fault = 0; fault < faults.size(); ++fault) {
    const auto engine = make_text_engine(loaded_, {.rows = 4});
    next_fault = faults[fault];
    for (const TextRequest& request : asked) engine->submit(request);
    try {
      for (const TextResult& result : engine->step()) {
        EXPECT_TRUE(result.error_may_pass) << result.error;
        engine->submit(asked.at(static_cast<size_t>(result.number) - 1));
      }
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "another one");
    }
    const auto found = finish(*engine);
    ASSERT_EQ(found.size(), wanted.size()) << fault;
    for (const auto& [number, result] : wanted)
      EXPECT_EQ(found.at(number).text, result.text) << "fault " << fault << " text " << number;
  }
}

// 8 bits for keys, values and weights: sums are still right.
TEST_F(TextEngineOfAModel, FewBitsStillAnswer) {
  quantize_linears(*loaded_.model, "int8");
  const auto engine = make_text_engine(loaded_, {.kv_int8 = true});
  engine->submit(sum(
      1, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?"));
  EXPECT_TRUE(finish(*engine).at(1).text.ends_with("#### 26"));
}

TEST_F(TextEngineOfAModel, RoundedActivationsStillAnswer) {
  quantize_linears(*loaded_.model, "int4", "int8");
  const auto engine = make_text_engine(loaded_, {});
  engine->submit(sum(
      1, "Pia shares 78 buttons equally among 3 friends. How many buttons does each friend get?"));
  EXPECT_TRUE(finish(*engine).at(1).text.ends_with("#### 26"));
}

TEST(RoundedActivations, NeedWeightsWithCodesAndACpu) {
  EXPECT_NO_THROW(require_codes_of_activations("model", "model", at::kCUDA));
  EXPECT_NO_THROW(require_codes_of_activations("int8", "int4", at::kCPU));
  EXPECT_THROW(require_codes_of_activations("int8", "model", at::kCPU), ConfigError);
  EXPECT_THROW(require_codes_of_activations("int8", "int8", at::kCUDA), ConfigError);
}

}  // namespace
}  // namespace convoy::recipes

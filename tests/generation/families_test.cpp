// SPDX-License-Identifier: Apache-2.0
//
// The greedy answers of every family equal transformers' answers (tests/golden/generation), in
// every way of generating: alone, in mixed batches, in pieces, from shared prefixes, and after
// preemption.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/io/safetensors.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/machine/device/stored_tensor.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/head_loss.h"
#include "files/temporary_folder.h"
#include "generation/word_tokenizer_test.h"

namespace convoy::generate {
namespace {

namespace fs = std::filesystem;
using testing::word_tokenizer;

fs::path golden(const std::string& name) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  return fs::path(source ? source : ".") / "tests/golden" / name;
}

class Family : public ::testing::TestWithParam<const char*> {
 protected:
  Family()
      : model_(models::load_causal_lm(
            io::ModelFolder::open(golden(std::string("models/") + GetParam()).string()),
            at::kFloat)),
        tokenizer_(word_tokenizer(model_->vocab_size())) {
    std::ifstream file(golden(std::string("generation/") + GetParam() + ".json"));
    const auto json = nlohmann::json::parse(file);
    prompts_ = json.at("prompts").get<std::vector<std::vector<int32_t>>>();
    answers_ = json.at("answers").get<std::vector<std::vector<int32_t>>>();
    golden_ = json;
  }

  Request request(size_t index) const {
    return {.prompt = prompts_[index],
            .sampling = {.temperature = 0},
            .max_new_tokens = static_cast<int64_t>(answers_[index].size())};
  }

  EngineFigures expect_answers(const EngineConfig& config) {
    Engine engine(*model_, tokenizer_, config);
    std::vector<Request> requests;
    for (size_t index = 0; index < prompts_.size(); ++index) requests.push_back(request(index));
    const auto found = answer_all(engine, requests);
    for (size_t index = 0; index < prompts_.size(); ++index)
      EXPECT_EQ(found[index].token_ids, answers_[index]) << "prompt " << index;
    return engine.figures();
  }

  // Whether some layer has neither a window nor a state.
  bool keeps_all_keys() const {
    const auto windows = model_->kv_geometry().windows;
    return std::count(windows.begin(), windows.end(), 0) > 0;
  }

  std::unique_ptr<nn::CausalLm> model_;
  text::Tokenizer tokenizer_;
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<std::vector<int32_t>> answers_;
  nlohmann::json golden_;
};

TEST_P(Family, AloneAnswersAsTransformersDoes) {
  for (size_t index = 0; index < prompts_.size(); ++index) {
    Engine engine(*model_, tokenizer_, {});
    EXPECT_EQ(answer_all(engine, {request(index)})[0].token_ids, answers_[index]) << index;
  }
}

TEST_P(Family, MixedBatchesAnswerAsTransformersDoes) {
  expect_answers({.max_rows = 32, .shares_prefixes = false});
  expect_answers({.max_rows = 3, .shares_prefixes = false});
}

TEST_P(Family, PromptsInPiecesAnswerAsTransformersDoes) {
  expect_answers({.prefill_chunk = 1, .shares_prefixes = false});
  expect_answers({.max_rows = 5, .prefill_chunk = 11, .shares_prefixes = false});
}

TEST_P(Family, SharedPrefixesAnswerAsTransformersDoes) {
  for (const EngineConfig& config :
       {EngineConfig{.max_rows = 4}, EngineConfig{.max_rows = 32, .prefill_chunk = 40}})
    EXPECT_GT(expect_answers(config).cached_prompt_tokens, 64);
}

TEST_P(Family, SamplesOfOnePromptComputeItsBlocksOnce) {
  constexpr int64_t kSamples = 8;
  const auto longest =
      std::max_element(prompts_.begin(), prompts_.end(),
                       [](const auto& a, const auto& b) { return a.size() < b.size(); });
  const auto index = static_cast<size_t>(longest - prompts_.begin());
  Engine engine(*model_, tokenizer_, {.max_rows = kSamples});
  for (const Completion& found : answer_all(engine, std::vector(kSamples, request(index))))
    EXPECT_EQ(found.token_ids, answers_[index]) << found.number;
  const int64_t blocks = (std::ssize(*longest) - 1) / kernels::kBlockTokensStep;
  ASSERT_GE(blocks, 2);
  EXPECT_EQ(engine.figures().cached_prompt_tokens,
            (kSamples - 1) * blocks * kernels::kBlockTokensStep);
}

// Runs with room for one of the longest rows only, and with a few more blocks.
TEST_P(Family, RowsPutBackAnswerAsTransformersDoes) {
  int64_t put_back = 0;
  for (const int64_t blocks : {4, 5, 6, 7, 9, 11}) {
    for (const bool shares : {true, false})
      put_back +=
          expect_answers(
              {.max_rows = 8, .prefill_chunk = 16, .kv_blocks = blocks, .shares_prefixes = shares})
              .preemptions;
  }
  // If every layer has a window, rows hold one or two blocks. They may wait before they begin, but
  // are never preempted.
  EXPECT_TRUE(keeps_all_keys() || put_back == 0) << put_back;
}

// Which rows of mixed prompts are preempted depends on which rows run together. Two rows with the
// same prompt begin together, and one block less than both need in the end preempts one of them.
TEST_P(Family, OneOfTwoRowsThatGrowAlikeIsPutBackAndAnswersAsTransformersDoes) {
  constexpr int64_t kBlock = kernels::kBlockTokensStep;
  const auto blocks_of = [](size_t tokens) {
    return (static_cast<int64_t>(tokens) + kBlock - 1) / kBlock;
  };
  int64_t tried = 0;
  for (size_t index = 0; index < prompts_.size(); ++index) {
    // The last token of an answer is never an input.
    const int64_t whole = blocks_of(prompts_[index].size() + answers_[index].size() - 1);
    if (whole == blocks_of(prompts_[index].size())) continue;
    ++tried;
    Engine engine(*model_, tokenizer_, {.kv_blocks = 2 * whole - 1, .shares_prefixes = false});
    const auto found = answer_all(engine, {request(index), request(index)});
    EXPECT_TRUE(engine.figures().preemptions > 0 || !keeps_all_keys()) << "prompt " << index;
    for (const Completion& completion : found)
      EXPECT_EQ(completion.token_ids, answers_[index]) << "prompt " << index;
  }
  EXPECT_GT(tried, 3);
}

TEST_P(Family, LogProbabilitiesAreThoseOfTransformers) {
  Request asked = request(0);
  asked.wants_logprobs = true;
  Engine engine(*model_, tokenizer_, {});
  const auto found = answer_all(engine, {asked})[0];
  const auto wanted = golden_.at("logprobs").get<std::vector<float>>();
  ASSERT_EQ(found.logprobs.size(), wanted.size());
  for (size_t token = 0; token < wanted.size(); ++token)
    EXPECT_NEAR(found.logprobs[token], wanted[token], 1e-4) << token;
}

TEST_P(Family, RepetitionPenaltiesAreThoseOfTransformers) {
  std::vector<Request> requests;
  std::vector<std::vector<int32_t>> wanted;
  for (size_t index = 0; index < prompts_.size(); ++index) {
    if (golden_.at("penalised")[index].is_null()) continue;
    requests.push_back(request(index));
    requests.back().sampling.repetition_penalty = 1.3;
    wanted.push_back(golden_.at("penalised")[index].get<std::vector<int32_t>>());
  }
  ASSERT_GE(requests.size(), 8u);
  Engine engine(*model_, tokenizer_, {.max_rows = 6, .prefill_chunk = 20});
  const auto found = answer_all(engine, requests);
  for (size_t index = 0; index < wanted.size(); ++index)
    EXPECT_EQ(found[index].token_ids, wanted[index]) << index;
}

// Pearson's statistic of many first tokens against transformers' probabilities. The seeds are
// fixed, so the statistic is always the same.
TEST_P(Family, DrawsFollowTheDistributionOfTransformers) {
  constexpr int64_t kDraws = 6000;
  const auto& rule = golden_.at("drawn");
  const auto probabilities = rule.at("probabilities").get<std::vector<double>>();
  std::vector<Request> requests;
  for (int64_t sample = 0; sample < kDraws; ++sample)
    requests.push_back({.prompt = prompts_[4],
                        .sampling = {.temperature = rule.at("temperature"),
                                     .top_k = rule.at("top_k"),
                                     .top_p = rule.at("top_p"),
                                     .min_p = rule.at("min_p")},
                        .draw = {.seed = 1, .sample = static_cast<uint64_t>(sample)},
                        .max_new_tokens = 1});
  Engine engine(*model_, tokenizer_, {.max_rows = 64});
  std::map<int32_t, int64_t> counts;
  for (const Completion& completion : answer_all(engine, requests))
    ++counts[completion.token_ids.front()];
  double statistic = 0;
  int64_t kept = 0;
  for (size_t id = 0; id < probabilities.size(); ++id) {
    const double wanted = probabilities[id] * static_cast<double>(kDraws);
    const auto found = static_cast<double>(counts[static_cast<int32_t>(id)]);
    if (wanted == 0) {
      EXPECT_EQ(found, 0) << id;
      continue;
    }
    ++kept;
    statistic += (found - wanted) * (found - wanted) / wanted;
  }
  ASSERT_GT(kept, 1);
  // The bound is six standard deviations above the mean of the chi-square distribution with kept -
  // 1 degrees of freedom.
  const auto freedom = static_cast<double>(kept - 1);
  EXPECT_LT(statistic, freedom + 6 * std::sqrt(2 * freedom));
}

// Expects each row's bytes and log-probabilities to be the same with other rows beside it, with its
// prompt in pieces, and after preemption.
void expect_same_bytes(nn::CausalLm& model, const text::Tokenizer& tokenizer,
                       const std::vector<std::vector<int32_t>>& prompts) {
  std::vector<Request> all;
  for (int64_t copy = 0; copy < 2; ++copy) {
    for (const std::vector<int32_t>& prompt : prompts)
      all.push_back({.prompt = prompt,
                     .sampling = {.temperature = 0.8, .top_p = 0.95, .repetition_penalty = 1.1},
                     .draw = {.seed = 4, .row = static_cast<int64_t>(all.size())},
                     .max_new_tokens = 20,
                     .wants_logprobs = true});
  }
  const auto answered = [&](std::vector<Request> requests, const EngineConfig& config) {
    Engine engine(model, tokenizer, config);
    return answer_all(engine, std::move(requests));
  };
  std::vector<Completion> alone;
  for (const Request& request : all) alone.push_back(answered({request}, {}).front());
  const EngineConfig configs[] = {{.max_rows = 2},
                                  {.max_rows = 5, .prefill_chunk = 7},
                                  {.max_rows = 33},
                                  {.max_rows = 33, .prefill_chunk = 40, .shares_prefixes = false},
                                  {.max_rows = 9, .prefill_chunk = 19, .kv_blocks = 7}};
  for (const EngineConfig& config : configs) {
    const std::vector<Completion> together = answered(all, config);
    for (size_t row = 0; row < all.size(); ++row) {
      EXPECT_EQ(together[row].token_ids, alone[row].token_ids) << row << " of " << config.max_rows;
      EXPECT_EQ(together[row].logprobs, alone[row].logprobs) << row << " of " << config.max_rows;
    }
  }
}

TEST_P(Family, BytesOfARowDoNotDependOnItsNeighbours) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto model = models::load_causal_lm(
        io::ModelFolder::open(golden(std::string("models/") + GetParam()).string()), dtype);
    expect_same_bytes(*model, tokenizer_, prompts_);
  }
}

class FewBits : public ::testing::TestWithParam<const char*> {};

TEST_P(FewBits, LossesOfAQuantisedHeadAreThoseOfItsLogits) {
  const auto model = models::load_causal_lm(
      io::ModelFolder::open(golden(std::string("models/") + GetParam()).string()), at::kFloat);
  model->head().quantize({.weight = kernels::WeightFormat::Int8});
  at::manual_seed(2);
  const at::Tensor hidden_TD = at::randn({700, model->hidden_size()});
  std::vector<int64_t> labels(700);
  for (size_t token = 0; token < labels.size(); ++token)
    labels[token] =
        token % 3 == 0 ? kernels::kIgnoredLabel : static_cast<int64_t>(token) % model->vocab_size();
  const kernels::TokenLosses found =
      nn::head_token_losses(*model, hidden_TD, kernels::LabelledTokens(labels));
  at::Tensor logits_TV = model->head().forward(hidden_TD);
  if (model->logit_cap() > 0)
    logits_TV = (logits_TV / model->logit_cap()).tanh() * model->logit_cap();
  const at::Tensor wanted = at::cross_entropy_loss(logits_TV, at::tensor(labels), {},
                                                   at::Reduction::None, kernels::kIgnoredLabel);
  EXPECT_TRUE(at::allclose(found.nll_T, wanted, 1e-5, 1e-5));
  EXPECT_TRUE(at::equal(found.correct_T, logits_TV.argmax(1).eq(at::tensor(labels))));
}

INSTANTIATE_TEST_SUITE_P(Models, FewBits,
                         ::testing::Values("llama", "gemma2", "gemma4", "muse_glimmer"),
                         [](const auto& tested) { return std::string(tested.param); });

// The expected tokens are from transformers; make_models.py generates them for this model.
TEST(LongRope, ARowThatMayGrowBeyondTheOriginalPositionsAnswersAsTransformersDoes) {
  const auto model = models::load_causal_lm(
      io::ModelFolder::open(golden("models/phi3-long").string()), at::kFloat);
  const io::SafetensorsFile wanted(golden("models/phi3-long/golden.safetensors"));
  const at::Tensor row_T = device::copy_to_tensor(wanted.require("row_0")).to(at::kInt);
  const at::Tensor greedy_T = device::copy_to_tensor(wanted.require("greedy")).to(at::kInt);
  constexpr int64_t kPromptTokens = 9;  // as in golden.json
  const auto ids = [](const at::Tensor& ids_T) {
    const int32_t* const first = ids_T.const_data_ptr<int32_t>();
    return std::vector<int32_t>(first, first + ids_T.numel());
  };
  const auto tokenizer = word_tokenizer(model->vocab_size());
  Engine engine(*model, tokenizer, {});
  const auto found = answer_all(engine, {{.prompt = ids(row_T.narrow(0, 0, kPromptTokens)),
                                          .sampling = {.temperature = 0},
                                          .max_new_tokens = greedy_T.numel()}});
  EXPECT_EQ(found[0].token_ids, ids(greedy_T));
}

// The limit of a row's tokens decides its rotation before its first token. Rows with different
// rotations share no prefix.
TEST(LongRope, RowsDoNotDependOnNeighboursOfTheOtherRotation) {
  const testing::TemporaryFolder folder;
  fs::copy(golden("models/phi3-long"), folder.path(), fs::copy_options::recursive);
  nlohmann::json changed =
      nlohmann::json::parse(std::ifstream(golden("models/phi3-long/config.json")));
  changed["original_max_position_embeddings"] = 48;
  changed["max_position_embeddings"] = 128;
  std::ofstream(folder / "config.json") << changed;
  const auto model =
      models::load_causal_lm(io::ModelFolder::open(folder.path().string()), at::kFloat);
  const auto tokenizer = word_tokenizer(model->vocab_size());
  std::vector<int32_t> prompt;
  for (int32_t token = 0; token < 40; ++token) prompt.push_back(3 + token * 37 % 100);
  std::vector<Request> requests;
  for (const int64_t tokens : {8, 30, 8, 30})
    requests.push_back({.prompt = prompt,
                        .sampling = {.temperature = 0},
                        .max_new_tokens = tokens,
                        .wants_logprobs = true});
  std::vector<Completion> alone;
  for (const Request& request : requests) {
    Engine engine(*model, tokenizer, {});
    alone.push_back(answer_all(engine, {request})[0]);
  }
  EXPECT_NE(alone[0].logprobs[0], alone[1].logprobs[0]);
  for (const EngineConfig& config :
       {EngineConfig{.max_rows = 1}, EngineConfig{.max_rows = 4, .prefill_chunk = 11}}) {
    Engine engine(*model, tokenizer, config);
    const auto together = answer_all(engine, requests);
    for (size_t row = 0; row < requests.size(); ++row) {
      EXPECT_EQ(together[row].token_ids, alone[row].token_ids) << row;
      EXPECT_EQ(together[row].logprobs, alone[row].logprobs) << row;
    }
    EXPECT_EQ(together[1].cached_tokens, 0);
    EXPECT_GT(together[3].cached_tokens, 0);
  }
}

// Each request of a batch names an adapter or none.
TEST(Served, AdaptersOfABatchAnswerAsMergedOnesDo) {
  const std::string folder = golden("train/qwen2").string();
  const auto load = [&] {
    return models::load_causal_lm(io::ModelFolder::open(folder), at::kFloat);
  };
  const fs::path adapters_of[] = {golden("train/qwen2/lora"), golden("train/qwen2/dora")};
  const auto tokenizer = word_tokenizer(load()->vocab_size());
  std::vector<Request> requests;
  for (int32_t row = 0; row < 12; ++row)
    requests.push_back(
        {.prompt = {3, 5, row, 7, 11, row}, .sampling = {.temperature = 0}, .max_new_tokens = 12});
  std::vector<std::vector<Completion>> wanted;
  for (int64_t adapter = 0; adapter <= 2; ++adapter) {
    const auto model = load();
    if (adapter > 0) adapters::LoraModel::load(*model, adapters_of[adapter - 1]).merge();
    Engine engine(*model, tokenizer, {});
    wanted.push_back(answer_all(engine, requests));
  }
  const auto model = load();
  adapters::ServedAdapters served(*model, {adapters_of[0], adapters_of[1]});
  Engine engine(*model, tokenizer, {.max_rows = 7, .prefill_chunk = 16, .adapters = &served});
  for (size_t row = 0; row < requests.size(); ++row)
    requests[row].adapter = static_cast<int64_t>(row % 3);
  int64_t unlike = 0;
  const std::vector<Completion> found = answer_all(engine, requests);
  for (size_t row = 0; row < requests.size(); ++row) {
    EXPECT_EQ(found[row].token_ids, wanted[row % 3][row].token_ids) << row;
    unlike += row % 3 != 0 && found[row].token_ids != wanted[0][row].token_ids;
  }
  EXPECT_GT(unlike, 0);
  requests[0].adapter = 3;
  EXPECT_THROW(engine.submit(requests[0]), DataError);
}

INSTANTIATE_TEST_SUITE_P(Models, Family,
                         ::testing::Values("llama", "llama-biased", "qwen2", "qwen2-window",
                                           "qwen3", "qwen3-yarn", "gemma3", "mistral",
                                           "mistral-nemo", "smollm3", "smollm3-window", "olmo3",
                                           "phi3", "glm4", "gemma2", "gemma2-untied", "qwen3_5",
                                           "qwen3_5-tied", "gemma4", "gemma4-keys", "muse_glimmer",
                                           "muse_glimmer-tied", "gemma4-unified", "gemma"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace convoy::generate

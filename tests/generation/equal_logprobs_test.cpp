// SPDX-License-Identifier: Apache-2.0
//
// Scoring and training compute the same log-probability of a token as the engine that drew it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>
#include <span>
#include <vector>

#include "convoy/generate/engine/engine.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/head_loss.h"
#include "files/source_folder.h"
#include "generation/word_tokenizer_test.h"

namespace convoy::generate {
namespace {

namespace fs = std::filesystem;

// A prompt and the answer to it.
struct AnsweredRow {
  std::vector<int64_t> ids;
  int64_t prompt_tokens = 0;
  std::vector<float> logprobs;  // the engine's log-probabilities of the answer
};

AnsweredRow answered_row(const Request& request, const Completion& found) {
  AnsweredRow row{.ids = {request.prompt.begin(), request.prompt.end()},
                  .prompt_tokens = std::ssize(request.prompt),
                  .logprobs = found.logprobs};
  row.ids.insert(row.ids.end(), found.token_ids.begin(), found.token_ids.end());
  return row;
}

// Packed rows, whose answers are the labels.
struct LabelledRows {
  nn::TokenBatch tokens;
  kernels::LabelledTokens labels;
};

LabelledRows packed(const std::vector<AnsweredRow>& rows) {
  std::vector<int64_t> ids, positions, labels, starts{0};
  for (const AnsweredRow& row : rows) {
    for (size_t at = 0; at < row.ids.size(); ++at) {
      const bool is_labelled = std::ssize(row.ids) > static_cast<int64_t>(at) + 1 &&
                               static_cast<int64_t>(at) + 1 >= row.prompt_tokens;
      ids.push_back(row.ids[at]);
      positions.push_back(static_cast<int64_t>(at));
      labels.push_back(is_labelled ? row.ids[at + 1] : kernels::kIgnoredLabel);
    }
    starts.push_back(std::ssize(ids));
  }
  return {nn::TokenBatch(ids, positions, starts), kernels::LabelledTokens(labels)};
}

// Returns the log-probabilities of the labels, in their order.
std::vector<float> computed_logprobs(nn::CausalLm& model, const LabelledRows& batch,
                                     double temperature = 1) {
  const at::Tensor hidden_TD = model.hidden_states(batch.tokens, {});
  const at::Tensor nll_N =
      nn::head_token_losses(model, hidden_TD.detach(), batch.labels, temperature)
          .nll_T.index_select(0, batch.labels.tokens_N());
  const at::Tensor logprobs_N = 0 - nll_N;  // a loss of 0 gives 0, not -0
  const float* const first = logprobs_N.const_data_ptr<float>();
  return {first, first + logprobs_N.numel()};
}

// The head has four more rows than the tokenizer has ids.
TEST(LogprobsOfAPaddedHead, AreNormalisedOverAllRows) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const auto model = models::load_causal_lm(
        io::ModelFolder::open(testing::golden_model("llama").string()), dtype);
    const auto tokenizer = testing::word_tokenizer(model->vocab_size() - 4);
    std::vector<Request> requests;
    for (int32_t row = 0; row < 6; ++row)
      requests.push_back({.prompt = {3, 5, 2 * row + 7, 11},
                          .draw = {.seed = 2, .row = row},
                          .max_new_tokens = 20,
                          .wants_logprobs = true});
    Engine engine(*model, tokenizer, {});
    const std::vector<Completion> found = answer_all(engine, requests);
    for (size_t row = 0; row < requests.size(); ++row) {
      const AnsweredRow answer = answered_row(requests[row], found[row]);
      const std::vector<float> wanted = computed_logprobs(*model, packed({answer}));
      ASSERT_EQ(answer.logprobs.size(), wanted.size());
      for (size_t token = 0; token < wanted.size(); ++token)
        EXPECT_NEAR(answer.logprobs[token], wanted[token], 2e-5) << row << " " << token;
    }
  }
}

// The weights that are trained: all weights of the model, or factors over frozen weights, which
// QLoRA holds as codes.
enum class Tuning { Full, Lora, Dora, Qlora };

// A model that both generates and trains with the same weights.
struct Trainee {
  std::unique_ptr<nn::CausalLm> model;
  std::optional<adapters::LoraModel> lora;
};

Trainee make_trainee(const fs::path& folder, at::ScalarType dtype, Tuning tuning) {
  Trainee made{models::load_causal_lm(io::ModelFolder::open(folder.string()), dtype), {}};
  if (tuning == Tuning::Full) {
    made.model->set_requires_grad(true);
    return made;
  }
  if (tuning == Tuning::Qlora)
    for (nn::Linear* linear : made.model->block_linears())
      linear->set_bitsandbytes(kernels::encode_weight(linear->weight(), {}));
  adapters::LoraConfig config;
  config.r = 4;
  config.use_dora = tuning == Tuning::Dora;
  made.lora.emplace(adapters::LoraModel::create(*made.model, config, /*seed=*/5));
  at::Generator generator = at::detail::createCPUGenerator(6);
  const at::NoGradGuard no_grad;
  for (const nn::NamedTensor& factor : made.lora->parameters())
    if (factor.name.ends_with("lora_B.weight")) at::Tensor(factor.value).normal_(0, 0.2, generator);
  return made;
}

// The distance between the engine's log-probabilities and other ones.
struct Distance {
  int64_t tokens = 0;
  int64_t unlike = 0;  // log-probabilities with different bits
  float largest = 0;

  void add(std::span<const float> drawn, std::span<const float> computed) {
    ASSERT_EQ(drawn.size(), computed.size());
    for (size_t token = 0; token < drawn.size(); ++token) {
      ++tokens;
      unlike += std::bit_cast<uint32_t>(drawn[token]) != std::bit_cast<uint32_t>(computed[token]);
      largest = std::max(largest, std::abs(drawn[token] - computed[token]));
    }
  }
};
std::ostream& operator<<(std::ostream& out, const Distance& distance) {
  return out << distance.unlike << " of " << distance.tokens << " differ, at most by "
             << distance.largest;
}

// For bench/engine_trainer.py, which makes a table of them.
void record(const std::string& what, const Distance& distance) {
  ::testing::Test::RecordProperty(
      what, fmt::format("{} {} {:.3g}", distance.unlike, distance.tokens, distance.largest));
}

struct TunedCase {
  const char* name;
  at::ScalarType dtype;
  Tuning tuning;
};
constexpr TunedCase kCases[] = {
    {"full fp32", at::kFloat, Tuning::Full},   {"full bf16", at::kBFloat16, Tuning::Full},
    {"LoRA fp32", at::kFloat, Tuning::Lora},   {"LoRA bf16", at::kBFloat16, Tuning::Lora},
    {"QLoRA fp32", at::kFloat, Tuning::Qlora}, {"QLoRA bf16", at::kBFloat16, Tuning::Qlora},
    {"DoRA fp32", at::kFloat, Tuning::Dora},   {"DoRA bf16", at::kBFloat16, Tuning::Dora}};

// Ways to generate: few rows, many rows, prompts in pieces, and too few blocks, so that rows are
// preempted.
struct Way {
  const char* name;
  EngineConfig config;
};
std::vector<Way> ways(int64_t few_blocks) {
  return {{"two rows", {.max_rows = 2}},
          {"33 rows", {.max_rows = 33, .shares_prefixes = false}},
          {"pieces", {.max_rows = 5, .prefill_chunk = 7}},
          {"rows put back", {.max_rows = 9, .prefill_chunk = 19, .kv_blocks = few_blocks}}};
}

std::vector<Request> sampling_requests(const std::vector<std::vector<int32_t>>& prompts,
                                       int64_t max_new_tokens) {
  std::vector<Request> requests;
  for (const std::vector<int32_t>& prompt : prompts) {
    const int64_t row = std::ssize(requests);
    requests.push_back({.prompt = prompt,
                        .sampling = {.temperature = 1},
                        .draw = {.seed = 9, .row = row},
                        .max_new_tokens = row % 4 == 0 ? 3 : max_new_tokens,
                        .wants_logprobs = true});
  }
  return requests;
}

// Compares the engine's log-probabilities with a forward pass for training, over all rows packed
// and over each row alone. Returns how often rows were preempted.
int64_t expect_equal_logprobs(const fs::path& folder, const TunedCase& of,
                              const std::vector<Request>& requests, int64_t few_blocks) {
  Trainee trainee = make_trainee(folder, of.dtype, of.tuning);
  nn::CausalLm& model = *trainee.model;
  const text::Tokenizer tokenizer = testing::word_tokenizer(model.vocab_size());
  std::vector<AnsweredRow> rows;
  int64_t put_back = 0;
  for (const Way& way : ways(few_blocks)) {
    Engine engine(model, tokenizer, way.config);
    const std::vector<Completion> found = answer_all(engine, requests);
    put_back += engine.figures().preemptions;
    Distance distance;
    for (size_t row = 0; row < requests.size(); ++row) {
      AnsweredRow answered = answered_row(requests[row], found[row]);
      if (rows.size() == row) rows.push_back(answered);
      EXPECT_EQ(answered.ids, rows[row].ids) << of.name << ", " << way.name << ", row " << row;
      distance.add(answered.logprobs, rows[row].logprobs);
    }
    EXPECT_EQ(distance.unlike, 0) << of.name << ", " << way.name << ": " << distance;
    record(fmt::format("{}, {}", of.name, way.name), distance);
  }
  std::vector<float> drawn;
  Distance alone, together;
  for (const AnsweredRow& row : rows) {
    drawn.insert(drawn.end(), row.logprobs.begin(), row.logprobs.end());
    alone.add(row.logprobs, computed_logprobs(model, packed({row})));
  }
  together.add(drawn, computed_logprobs(model, packed(rows)));
  EXPECT_EQ(alone.unlike, 0) << of.name << ", rows alone: " << alone;
  EXPECT_EQ(together.unlike, 0) << of.name << ", rows packed: " << together;
  record(fmt::format("{}, rows alone", of.name), alone);
  record(fmt::format("{}, rows packed", of.name), together);
  return put_back;
}

// Training's loss of a single token is the negative log-probability of that token.
void expect_loss_of_a_token(const fs::path& folder, const TunedCase& of,
                            const std::vector<Request>& requests) {
  Trainee trainee = make_trainee(folder, of.dtype, of.tuning);
  nn::CausalLm& model = *trainee.model;
  const text::Tokenizer tokenizer = testing::word_tokenizer(model.vocab_size());
  Engine engine(model, tokenizer, {});
  const std::vector<Completion> found = answer_all(engine, requests);
  for (size_t row = 0; row < requests.size(); ++row) {
    const AnsweredRow answer = answered_row(requests[row], found[row]);
    const LabelledRows batch = packed({answer});
    std::vector<int64_t> labels(answer.ids.size(), kernels::kIgnoredLabel);
    labels[answer.ids.size() - 2] = answer.ids.back();
    const at::Tensor loss = nn::head_loss(model, model.hidden_states(batch.tokens, {}),
                                          kernels::LabelledTokens(labels));
    EXPECT_TRUE(loss.requires_grad());
    EXPECT_EQ(loss.item<float>(), -answer.logprobs.back()) << of.name << " row " << row;
  }
}

class EqualLogprobs : public ::testing::TestWithParam<const char*> {};

TEST_P(EqualLogprobs, HaveTheBitsOfTraining) {
  const fs::path folder = testing::golden_model(GetParam());
  std::ifstream file(testing::source_folder() / "tests/golden/generation" /
                     (std::string(GetParam()) + ".json"));
  const auto prompts =
      nlohmann::json::parse(file).at("prompts").get<std::vector<std::vector<int32_t>>>();
  const std::vector<Request> requests = sampling_requests(prompts, 24);
  for (const TunedCase& of : kCases) {
    expect_equal_logprobs(folder, of, requests, /*few_blocks=*/7);
    expect_loss_of_a_token(folder, of, {requests.begin(), requests.begin() + 4});
  }
}

INSTANTIATE_TEST_SUITE_P(Models, EqualLogprobs,
                         ::testing::Values("llama", "llama-biased", "qwen2", "qwen2-window",
                                           "qwen3", "qwen3-yarn", "gemma3", "mistral",
                                           "mistral-nemo", "smollm3", "smollm3-window", "olmo3",
                                           "phi3", "glm4", "gemma2", "gemma2-untied", "qwen3_5",
                                           "qwen3_5-tied"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Training computes the same log-probabilities of a prompt: in pieces, put back, and beside rows
// that share prefixes.
TEST(LogprobsOfAPrompt, HaveTheBitsOfTraining) {
  const fs::path folder = testing::golden_model("qwen3_5");
  for (const TunedCase& of : kCases) {
    Trainee trainee = make_trainee(folder, of.dtype, of.tuning);
    nn::CausalLm& model = *trainee.model;
    const text::Tokenizer tokenizer = testing::word_tokenizer(model.vocab_size());
    std::vector<Request> requests;
    for (int64_t row = 0; row < 12; ++row) {
      std::vector<int32_t> prompt(static_cast<size_t>(row % 6 == 5 ? 1 : 18 + 5 * (row % 6)));
      for (size_t at = 0; at < prompt.size(); ++at)
        prompt[at] = 3 + static_cast<int32_t>(at * at + at) % 40;
      requests.push_back({.prompt = std::move(prompt),
                          .max_new_tokens = row % 2 == 0 ? 0 : 9,
                          .wants_logprobs = true,
                          .wants_prompt_logprobs = row % 3 != 1 || row % 2 == 0,
                          .num_prompt_likeliest = row % 3 == 0 ? 2 : 0});
    }
    for (const Way& way : ways(/*few_blocks=*/9)) {
      Engine engine(model, tokenizer, way.config);
      const std::vector<Completion> found = answer_all(engine, requests);
      for (size_t row = 0; row < requests.size(); ++row) {
        SCOPED_TRACE(fmt::format("{}, {}, row {}", of.name, way.name, row));
        const std::vector<int32_t>& prompt = requests[row].prompt;
        const PromptLogprobs& given = found[row].prompt_logprobs;
        EXPECT_EQ(std::ssize(found[row].token_ids), requests[row].max_new_tokens);
        EXPECT_EQ(found[row].logprobs.size(), found[row].token_ids.size());
        if (!requests[row].wants_prompt_logprobs || prompt.size() == 1) {
          EXPECT_TRUE(given.logprobs.empty());
          continue;
        }
        ASSERT_EQ(given.logprobs.size(), prompt.size());
        EXPECT_TRUE(std::isnan(given.logprobs.front()));
        Distance distance;
        distance.add(std::span(given.logprobs).subspan(1),
                     computed_logprobs(model, packed({{.ids = {prompt.begin(), prompt.end()},
                                                       .prompt_tokens = 1,
                                                       .logprobs = {}}})));
        EXPECT_EQ(distance.unlike, 0) << distance;
        EXPECT_EQ(found[row].cached_tokens, 0);
        if (requests[row].num_prompt_likeliest == 0) continue;
        ASSERT_EQ(given.likeliest.size(), prompt.size());
        for (size_t at = 1; at < prompt.size(); ++at) {
          ASSERT_EQ(given.likeliest[at].size(), 2u);
          EXPECT_GE(given.likeliest[at][0].logprob, given.logprobs[at]);
        }
      }
    }
  }
}

// Rows at a temperature, some of which draw from fewer tokens: the log-probability stays that of
// the whole distribution at the temperature, and that of neighbours at their own.
std::vector<Request> requests_at(double temperature,
                                 const std::vector<std::vector<int32_t>>& prompts) {
  std::vector<Request> requests = sampling_requests(prompts, 16);
  for (size_t row = 0; row < requests.size(); ++row) {
    Request& request = requests[row];
    request.sampling.temperature = temperature;
    request.logprobs_at_temperature = true;
    if (row % 4 == 1) request.sampling.top_k = 5;
    if (row % 4 == 2) request.sampling.top_p = 0.8;
    if (row % 4 == 3) request.sampling.min_p = 0.1;
  }
  return requests;
}

TEST(EqualLogprobsAtATemperature, HaveTheBitsOfTraining) {
  for (const char* const name : {"llama", "qwen2", "gemma2", "qwen3_5"}) {
    const fs::path folder = testing::golden_model(name);
    std::ifstream file(testing::source_folder() / "tests/golden/generation" /
                       (std::string(name) + ".json"));
    const auto prompts =
        nlohmann::json::parse(file).at("prompts").get<std::vector<std::vector<int32_t>>>();
    for (const TunedCase& of : kCases) {
      Trainee trainee = make_trainee(folder, of.dtype, of.tuning);
      nn::CausalLm& model = *trainee.model;
      const text::Tokenizer tokenizer = testing::word_tokenizer(model.vocab_size());
      for (const double temperature : {0.3, 0.7, 1.0, 1.3, 2.5}) {
        SCOPED_TRACE(fmt::format("{} {} at {}", name, of.name, temperature));
        std::vector<Request> requests = requests_at(temperature, prompts);
        // A row of the model's own distribution beside them.
        Request plain = requests.front();
        plain.number = std::ssize(requests);
        plain.logprobs_at_temperature = false;
        requests.push_back(plain);
        Engine engine(model, tokenizer, {.max_rows = 5, .prefill_chunk = 7});
        const std::vector<Completion> found = answer_all(engine, requests);
        std::vector<AnsweredRow> rows;
        Distance alone, together;
        std::vector<float> drawn;
        for (size_t row = 0; row + 1 < requests.size(); ++row) {
          rows.push_back(answered_row(requests[row], found[row]));
          const std::vector<float>& own = rows.back().logprobs;
          drawn.insert(drawn.end(), own.begin(), own.end());
          alone.add(own, computed_logprobs(model, packed({rows.back()}), temperature));
        }
        together.add(drawn, computed_logprobs(model, packed(rows), temperature));
        EXPECT_EQ(alone.unlike, 0) << alone;
        EXPECT_EQ(together.unlike, 0) << together;
        record(fmt::format("{}, {} at {}", of.name, name, temperature), together);
        Distance beside;
        const AnsweredRow last = answered_row(requests.back(), found.back());
        beside.add(last.logprobs, computed_logprobs(model, packed({last})));
        EXPECT_EQ(beside.unlike, 0) << beside;
        if (temperature == 1) continue;
        Distance without;
        without.add(drawn, computed_logprobs(model, packed(rows)));
        EXPECT_GT(without.largest, 0.01f) << "the temperature counts";
      }
    }
  }
}

// LibTorch's ops, which stand for the kernels of a device, have other orders of sums on the two
// sides: nothing is promised, and the distance is recorded.
TEST(EqualLogprobsOfLibTorchsOps, AreNotPromised) {
  const kernels::CpuTableOverride devices(kernels::aten_op_table());
  const fs::path folder = testing::golden_model("llama");
  std::vector<std::vector<int32_t>> prompts;
  for (int32_t row = 0; row < 9; ++row) prompts.push_back({3, 5, 2 * row + 7, 11});
  for (const TunedCase& of : kCases) {
    if (of.tuning == Tuning::Qlora) continue;
    Trainee trainee = make_trainee(folder, of.dtype, of.tuning);
    nn::CausalLm& model = *trainee.model;
    const text::Tokenizer tokenizer = testing::word_tokenizer(model.vocab_size());
    Engine engine(model, tokenizer, {.max_rows = 5});
    const std::vector<Request> requests = sampling_requests(prompts, 24);
    const std::vector<Completion> found = answer_all(engine, requests);
    std::vector<AnsweredRow> rows;
    std::vector<float> drawn;
    for (size_t row = 0; row < requests.size(); ++row) {
      rows.push_back(answered_row(requests[row], found[row]));
      drawn.insert(drawn.end(), rows.back().logprobs.begin(), rows.back().logprobs.end());
    }
    Distance distance;
    distance.add(drawn, computed_logprobs(model, packed(rows)));
    EXPECT_LT(distance.largest, of.dtype == at::kFloat ? 1e-4f : 0.3f)
        << of.name << ": " << distance;
    record(fmt::format("{}, LibTorch's ops", of.name), distance);
  }
}

// The rows have several splits of keys, and the model has a size of practical use.
TEST(EqualLogprobsOfLongRows, HaveTheBitsOfTraining) {
  const fs::path folder = testing::source_folder() / "examples/tally-3m";
  std::vector<std::vector<int32_t>> prompts;
  for (const int32_t tokens : {5, 490, 700, 520, 900, 30})
    for (std::vector<int32_t>& prompt = prompts.emplace_back(); std::ssize(prompt) < tokens;)
      prompt.push_back(3 + static_cast<int32_t>(prompt.size()) * (31 + tokens) % 2000);
  for (const TunedCase& of : kCases) {
    if (of.tuning == Tuning::Dora) continue;
    EXPECT_GT(expect_equal_logprobs(folder, of, sampling_requests(prompts, 40), /*few_blocks=*/40),
              0);
  }
}

}  // namespace
}  // namespace convoy::generate

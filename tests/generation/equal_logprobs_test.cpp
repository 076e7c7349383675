// SPDX-License-Identifier: Apache-2.0
//
// The log-probability that a token was drawn with is the one that scoring and training compute for
// it.
#include <gtest/gtest.h>

#include <vector>

#include "convoy/generate/engine/engine.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/head_loss.h"
#include "files/source_folder.h"
#include "generation/word_tokenizer_test.h"

namespace convoy::generate {
namespace {

// An answer behind its prompt.
struct AnsweredRow {
  std::vector<int64_t> ids;
  int64_t prompt_tokens = 0;
  std::vector<float> logprobs;  // of the answer's tokens, from the engine
};

AnsweredRow answered_row(const Request& request, const Completion& found) {
  AnsweredRow row{.ids = {request.prompt.begin(), request.prompt.end()},
                  .prompt_tokens = std::ssize(request.prompt),
                  .logprobs = found.logprobs};
  row.ids.insert(row.ids.end(), found.token_ids.begin(), found.token_ids.end());
  return row;
}

// Rows packed one behind the other, each answer as labels.
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

// Of the labels, in their order.
std::vector<float> computed_logprobs(nn::CausalLm& model, const LabelledRows& batch) {
  const at::Tensor hidden_TD = model.hidden_states(batch.tokens, {});
  const at::Tensor nll_N = nn::head_token_losses(model, hidden_TD.detach(), batch.labels)
                               .nll_T.index_select(0, batch.labels.tokens_N());
  const at::Tensor logprobs_N = 0 - nll_N;  // a loss of 0 gives 0, not -0
  const float* const first = logprobs_N.const_data_ptr<float>();
  return {first, first + logprobs_N.numel()};
}

// The head has four rows more than the tokenizer has ids.
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

}  // namespace
}  // namespace convoy::generate

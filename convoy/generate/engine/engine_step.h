// SPDX-License-Identifier: Apache-2.0
//
// The parts of an engine's step, for the sources of Engine alone: a row, the inputs of a step, and
// a recorded step.
#pragma once

#include "convoy/generate/engine/engine.h"
#include "convoy/generate/engine/row_grammar.h"
#include "convoy/machine/device/device_graph.h"

namespace convoy::generate {

struct Engine::Row {
  Request request;  // without the prompt, which the scheduler keeps
  int64_t prompt_tokens = 0;
  int64_t first_position = 0;  // CausalLm::first_position() of its longest possible length
  AnswerText answer;
  std::vector<float> logprobs;
  std::vector<std::vector<kernels::TokenLogprob>> likeliest;
  PromptLogprobs prompt_logprobs;
  std::optional<RowGrammar> grammar;
  // Index of the row's unread token among the tokens that its step drew; below 0: the row has no
  // unread token.
  int64_t unread_place = -1;
};

// The input tokens of a step whose ids only the device knows: the step before drew them, and the
// host has not read them yet.
struct UnreadIds {
  std::vector<int64_t> tokens;  // their indices in this step
  std::vector<int64_t> places;  // their indices in the ids that the step before drew

  // True when these are all tokens of both steps, in the same order.
  bool are_all(int64_t num_tokens, int64_t num_before) const {
    if (std::ssize(tokens) != num_tokens || num_tokens != num_before) return false;
    for (int64_t token = 0; token < num_tokens; ++token)
      if (places[static_cast<size_t>(token)] != token) return false;
    return true;
  }
};

// A prompt token whose log-probability is wanted.
struct Engine::ScoredToken {
  std::shared_ptr<Row> row;
  int64_t position = 0;  // in the prompt
  int32_t id = 0;
  int64_t place = 0;  // index of the token before it among the tokens of the step
};

struct Engine::Inputs {
  nn::TokenBatch batch;
  std::vector<kernels::PagedRows> paged;  // by layer group
  std::vector<nn::StateSlot> states;      // by row
  UnreadIds unread;
  at::Tensor unread_tokens_U, unread_places_U;
  at::Tensor drawing_R;  // indices of the last tokens of rows that draw; undefined: all tokens
  std::vector<std::shared_ptr<Row>> drawing;
  std::optional<TokenDraw> draw;  // empty when no row draws
  std::vector<ScoredToken> scored;

  void replace_unread_ids(const at::Tensor& before) {
    if (unread.tokens.empty()) return;
    batch.replace_ids(unread.are_all(batch.num_tokens(), before.size(0))
                          ? before
                          : batch.token_ids_T().index_copy(
                                0, unread_tokens_U, before.index_select(0, unread_places_U)));
  }
};

// Before each start, the tables and ids of the new step are copied into `tables` and `ids_T`.
// `draw` holds the tokens of the last start.
struct Engine::RecordedStep {
  device::DeviceGraph graph;
  nn::TokenBatch batch;
  std::vector<kernels::PagedRows> paged;
  std::optional<TokenDraw> draw;
  at::Tensor tables;
  at::Tensor ids_T;
};

}  // namespace convoy::generate

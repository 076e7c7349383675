// SPDX-License-Identifier: Apache-2.0
//
// Learning a teacher's distributions over the model's own texts (task distill). Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::settings {

inline constexpr const char* kForwardKl = "forward_kl";
inline constexpr const char* kReverseKl = "reverse_kl";
inline constexpr const char* kJensenShannon = "js";

// q is the teacher's distribution of the next token, p the distribution of the model that learns.
struct DistillSettings {
  std::string teacher;
  std::vector<std::string> engine;
  int64_t engine_timeout = 600;
  std::string divergence = kReverseKl;
  double beta = 0.5;
  double temperature = 1;
  int64_t top_k = 0;

  // True: servers say the teacher's distributions, and no teacher is in memory.
  bool is_served() const { return !engine.empty(); }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("teacher", teacher,
          "the teacher: a model folder, an adapter folder or a hub id, of the model's tokens; with "
          "engine its name there");
    visit("engine", engine,
          "servers of OpenAI's HTTP API that answer prompt_logprobs for the teacher, such as "
          "http://HOST:8000/v1, with commas between; their key is CONVOY_ENGINE_KEY or "
          "OPENAI_API_KEY");
    visit("engine_timeout", engine_timeout, "seconds after which a request to them is given up")
        .at_least(1)
        .at_most(86400);
    visit("divergence", divergence,
          "forward_kl: KL(teacher || model), it covers all that the teacher does; reverse_kl: "
          "KL(model || teacher), it keeps to what the teacher does; js: generalized "
          "Jensen-Shannon (arXiv 2306.13649)")
        .one_of({kForwardKl, kReverseKl, kJensenShannon});
    visit("beta", beta,
          "js: share of the teacher in the mixture beta q + (1 - beta) p; 0.5 is the "
          "Jensen-Shannon divergence")
        .above(0);
    visit("temperature", temperature,
          "divides the logits of both in the loss; the draws have rollout.temperature")
        .above(0);
    visit("top_k", top_k,
          "the teacher's likeliest tokens that are compared one by one, all others as one; 0 = the "
          "whole vocabulary")
        .at_least(0);
  }
};

}  // namespace convoy::settings

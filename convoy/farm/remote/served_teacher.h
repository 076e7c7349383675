// SPDX-License-Identifier: Apache-2.0
//
// The teacher of task distill as a model behind OpenAI's HTTP API (distill.engine): its likeliest
// tokens at each token of texts, by `prompt_logprobs` of completions, which vLLM and `convoy serve`
// answer. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/http/curl_library.h"
#include "convoy/core/settings/distill_settings.h"
#include "convoy/farm/process/text_engine.h"
#include "convoy/farm/remote/servers.h"

namespace convoy::remote {

// The tokens of the model that learns, which must be the teacher's too.
struct OwnTokens {
  int64_t vocab_size = 0;               // rows of the model's head
  std::vector<std::string> texts = {};  // each token of the tokenizer, decoded alone
};

// A text whose tokens from `first` on, not 0, are asked about.
struct TaughtText {
  std::vector<int32_t> ids = {};
  int64_t first = 1;
  std::string place = {};  // for errors: "row 3, sample 1"
};

// The teacher at the tokens asked about. Its log-probabilities are the server's to the bit.
struct TaughtTokens {
  std::vector<int32_t> ids = {};     // top_k for each, likeliest first
  std::vector<float> logprobs = {};  // top_k + 1 for each: of these, then of all others together
};

// The servers of distill.engine. Throws ConfigError for an address that is none; asks nothing.
Servers teacher_servers(const settings::DistillSettings& settings);

class ServedTeacher {
 public:
  // Asks the servers for their models, and one question over tokens of the whole vocabulary. Throws
  // ConfigError if the teacher is not there, gives fewer than top_k tokens or none of a prompt, or
  // has other tokens; NetworkError if no server answers.
  ServedTeacher(const settings::DistillSettings& settings, OwnTokens tokens, Log log);
  ~ServedTeacher();
  ServedTeacher(const ServedTeacher&) = delete;
  ServedTeacher& operator=(const ServedTeacher&) = delete;

  using Take = std::function<void(size_t text, TaughtTokens tokens)>;
  // Asks about all texts at once, as many as the servers bear. Blocks. Calls `take` on this thread
  // with the place of each text, in any order. Throws as the constructor, DataError for a text that
  // the server refuses or whose numbers are no log-probabilities, StopRequest once `stop_requested`
  // is true, and what `take` throws.
  void ask(std::span<const TaughtText> texts, const std::function<bool()>& stop_requested,
           const Take& take);

 private:
  TaughtTokens tokens_of(const TaughtText& text, const process::TextResult& answer);
  void add_place(const TaughtText& text, size_t at, std::vector<process::LikelyToken> place,
                 TaughtTokens& tokens);
  void require_own(const process::LikelyToken& token);
  void ask_over_vocabulary();
  [[noreturn]] void refuse(const std::string& why, const std::string& hint) const;
  [[noreturn]] void refuse_place(const TaughtText& text, size_t at, const std::string& why,
                                 const std::string& hint) const;

  const settings::DistillSettings settings_;
  const OwnTokens own_;
  const Log log_;
  const Servers servers_;
  http::CurlLibrary curl_;
  std::unique_ptr<process::TextEngine> engine_;
  std::vector<bool> is_compared_;  // by token: its spelling was compared
  bool told_unspelled_ = false;
};

}  // namespace convoy::remote

// SPDX-License-Identifier: Apache-2.0
//
// Answers prompts with servers of OpenAI's HTTP API, for commands that keep no ledger.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/settings/command_flags.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/data/datasets/encoding/encode_sample.h"
#include "convoy/farm/process/text_engine.h"
#include "convoy/farm/remote/servers.h"

namespace convoy::remote {

// The prompt of a sample, as SampleEncoder::encode_prompt() takes it. Throws DataError.
process::Prompt prompt_of(const data::Sample& sample);

struct RemoteAnswer {
  int64_t prompt = 0;
  int64_t sample = 0;
  process::TextResult text = {};
};

// A text that no server gave.
struct RemoteFailure {
  int64_t prompt = 0;
  std::string why;
  bool may_pass = false;  // the same request may succeed later
};

struct RemoteQuestions {
  std::vector<process::Prompt> prompts = {};
  settings::SamplingFlags sampling = {};  // settled
  int64_t requests = 512;                 // at once
  telemetry::ProgressOptions progress = {};
  // Answers that already exist: they are not asked for again.
  std::function<bool(int64_t prompt, int64_t sample)> is_done = {};
  std::function<bool()> stop_wanted = {};  // asked after every step
};

// Looks at the servers, then calls `take` with each answer as it comes. Returns what has no answer
// once all others have one: a text that a server refuses, or on which the servers fail again and
// again. Throws what the servers' engine throws; StopRequest, with the number of finished answers.
// Blocks.
std::vector<RemoteFailure> answer_remotely(const Servers& servers, const RemoteQuestions& questions,
                                           const Log& log,
                                           const std::function<void(const RemoteAnswer&)>& take);

// Names the prompts of `failures` (not empty) by `rows`, their numbers for a person. Throws
// NetworkError where one of them may pass, else DataError.
[[noreturn]] void refuse_failures(const std::vector<RemoteFailure>& failures,
                                  const std::vector<int64_t>& rows, const std::string& hint = {});

}  // namespace convoy::remote

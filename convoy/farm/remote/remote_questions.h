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

// The prompt of a sample, as for SampleEncoder::encode_prompt(). Throws DataError.
process::Prompt prompt_of(const data::Sample& sample);

struct RemoteAnswer {
  int64_t prompt = 0;
  int64_t sample = 0;
  process::TextResult text = {};
};

// A text that no server returned.
struct RemoteFailure {
  int64_t prompt = 0;
  std::string why;
  bool may_pass = false;  // the same request may succeed later
};

struct RemoteQuestions {
  std::vector<process::Prompt> prompts = {};
  settings::SamplingFlags sampling = {};  // no setting is open
  int64_t requests = 512;                 // requests in flight
  telemetry::ProgressOptions progress = {};
  // True for answers that already exist; they are not requested again.
  std::function<bool(int64_t prompt, int64_t sample)> is_done = {};
  std::function<bool()> stop_wanted = {};  // called after every step
};

// Checks the servers, then calls `take` with each answer as it arrives. When all other texts have
// answers, returns the texts without one: a server refused the text, or the servers failed on it
// again and again. Throws the errors of the servers' engine, and StopRequest with the number of
// finished answers. Blocks.
std::vector<RemoteFailure> answer_remotely(const Servers& servers, const RemoteQuestions& questions,
                                           const Log& log,
                                           const std::function<void(const RemoteAnswer&)>& take);

// Throws an error that names the prompts of `failures` (not empty). `rows`: the numbers that people
// see, by prompt. Throws NetworkError if a failure may pass, else DataError.
[[noreturn]] void refuse_failures(const std::vector<RemoteFailure>& failures,
                                  const std::vector<int64_t>& rows, const std::string& hint = {});

}  // namespace convoy::remote

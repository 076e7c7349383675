// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/remote_questions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/remote/http_text_engine.h"

namespace convoy::remote {
namespace {

// Each round is several requests of the engine; the same number as workers.max_tries of `convoy
// process`.
constexpr int kMostRounds = 3;
constexpr size_t kMostNamed = 100;  // most prompts without an answer that an error names
// Most failures that an error quotes, with the server's words.
constexpr size_t kMostQuotedFailures = 3;

process::TextRequest text_request(const RemoteQuestions& questions, int64_t prompt,
                                  int64_t sample) {
  const settings::SamplingFlags& sampling = questions.sampling;
  return {.number = prompt * sampling.n + sample,
          .prompt = questions.prompts[static_cast<size_t>(prompt)],
          .sampling = {.temperature = sampling.temperature.value.value(),
                       .top_k = sampling.top_k.value.value(),
                       .top_p = sampling.top_p.value.value(),
                       .min_p = sampling.min_p.value.value(),
                       .repetition_penalty = sampling.repetition_penalty.value.value(),
                       .max_new_tokens = sampling.max_new_tokens.value.value(),
                       .stop = sampling.stop.names},
          .draw = {.seed = static_cast<uint64_t>(sampling.seed),
                   .row = prompt,
                   .sample = static_cast<uint64_t>(sample)}};
}

std::string at_once(const process::EngineFigures& figures) {
  return fmt::format("{} at once", counted(figures.running, "request"));
}

}  // namespace

process::Prompt prompt_of(const data::Sample& sample) {
  using Kind = data::Sample::Kind;
  if (sample.kind == Kind::Text) return {.text = sample.text};
  if (sample.kind == Kind::PromptCompletion) return {.text = sample.prompt};
  return {.messages = data::prompt_messages(sample), .variables = sample.variables};
}

std::vector<RemoteFailure> answer_remotely(const Servers& servers, const RemoteQuestions& questions,
                                           const Log& log,
                                           const std::function<void(const RemoteAnswer&)>& take) {
  const http::CurlLibrary curl;
  {
    http::Client client(curl, servers.limits());
    look_at_servers(servers, client, log);
  }
  const auto engine = make_http_text_engine(curl, servers, {.requests = questions.requests}, log);
  const int64_t samples = questions.sampling.n;
  telemetry::ProgressOptions shown = questions.progress;
  if (log.level() == LogLevel::Quiet) shown.style = telemetry::ProgressStyle::None;
  shown.total = std::ssize(questions.prompts) * samples;
  for (int64_t number = 0; number < shown.total; ++number) {
    if (questions.is_done && questions.is_done(number / samples, number % samples))
      ++shown.start;
    else
      engine->submit(text_request(questions, number / samples, number % samples));
  }
  int64_t done = shown.start;
  std::map<int64_t, int> failures;  // by request number
  // Prompts that failed for good; all other prompts are still answered.
  std::vector<RemoteFailure> failed;
  telemetry::Progress progress(shown);
  while (engine->unfinished() > 0) {
    progress.update({.done = done, .extra = at_once(engine->figures())});
    for (process::TextResult& text : engine->step()) {
      const int64_t prompt = text.number / samples;
      if (text.finish == process::TextFinish::Error) {
        if (text.error_may_pass && ++failures[text.number] < kMostRounds)
          engine->submit(text_request(questions, prompt, text.number % samples));
        else
          failed.push_back(
              {.prompt = prompt, .why = std::move(text.error), .may_pass = text.error_may_pass});
        continue;
      }
      take({.prompt = prompt, .sample = text.number % samples, .text = std::move(text)});
      ++done;
    }
    if (engine->unfinished() > 0 && questions.stop_wanted && questions.stop_wanted())
      throw StopRequest(
          fmt::format("stopped on request: {} of {} answers are finished", done, shown.total));
  }
  progress.update({.done = done});
  progress.finish();
  return failed;
}

void refuse_failures(const std::vector<RemoteFailure>& failures, const std::vector<int64_t>& rows,
                     const std::string& hint) {
  std::map<int64_t, const RemoteFailure*> first;  // the first failure, by prompt
  bool may_pass = false;
  for (const RemoteFailure& failure : failures) {
    first.try_emplace(failure.prompt, &failure);
    may_pass |= failure.may_pass;
  }
  const auto row = [&rows](int64_t prompt) { return rows[static_cast<size_t>(prompt)]; };
  std::string message;
  if (first.size() == 1) {
    message = fmt::format("prompt {} has no answer", row(first.begin()->first));
  } else {
    std::vector<std::string> numbers;
    for (const auto& [prompt, failure] : first) {
      if (numbers.size() == kMostNamed) break;
      numbers.push_back(std::to_string(row(prompt)));
    }
    if (first.size() > numbers.size()) numbers.emplace_back("...");
    message = fmt::format("{} have no answer: {}", counted(std::ssize(first), "prompt"),
                          fmt::join(numbers, ", "));
  }
  size_t quoted = 0;
  for (const auto& [prompt, failure] : first) {
    if (++quoted > kMostQuotedFailures) break;
    message += first.size() == 1 ? fmt::format(": {}", failure->why)
                                 : fmt::format("; {}: {}", row(prompt), failure->why);
  }
  if (std::ssize(failures) > std::ssize(first))
    message += fmt::format("; {} answers are missing", failures.size());
  if (may_pass) throw NetworkError(message, {.hint = hint});
  throw DataError(message, {.hint = hint});
}

}  // namespace convoy::remote

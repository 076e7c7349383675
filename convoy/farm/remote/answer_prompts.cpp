// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/remote/answer_prompts.h"

#include <map>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/remote/http_text_engine.h"

namespace convoy::remote {
namespace {

// Each is several requests of the engine; as workers.max_tries of `convoy process`.
constexpr int kMostRounds = 3;

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

[[noreturn]] void refuse_errors(const std::vector<process::TextResult>& failed, int64_t samples) {
  const process::TextResult& first = failed.front();
  std::string message =
      fmt::format("prompt {} has no answer: {}", first.number / samples, first.error);
  if (failed.size() > 1) message += fmt::format("; {} answers are missing", failed.size());
  if (first.error_may_pass) throw NetworkError(message);
  throw DataError(message);
}

}  // namespace

process::Prompt prompt_of(const data::Sample& sample) {
  using Kind = data::Sample::Kind;
  if (sample.kind == Kind::Text) return {.text = sample.text};
  if (sample.kind == Kind::PromptCompletion) return {.text = sample.prompt};
  return {.messages = data::prompt_messages(sample), .variables = sample.variables};
}

void answer_remotely(const Servers& servers, const RemoteQuestions& questions, const Log& log,
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
  std::map<int64_t, int> failures;          // by number
  std::vector<process::TextResult> failed;  // for good; the others are answered all the same
  telemetry::Progress progress(shown);
  while (engine->unfinished() > 0) {
    progress.update({.done = done, .extra = at_once(engine->figures())});
    for (process::TextResult& text : engine->step()) {
      const int64_t prompt = text.number / samples;
      if (text.finish == process::TextFinish::Error) {
        if (text.error_may_pass && ++failures[text.number] < kMostRounds)
          engine->submit(text_request(questions, prompt, text.number % samples));
        else
          failed.push_back(std::move(text));
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
  if (!failed.empty()) refuse_errors(failed, samples);
}

}  // namespace convoy::remote

// SPDX-License-Identifier: Apache-2.0
#include "process/noop_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <thread>

#include "convoy/core/base/hash.h"

namespace convoy::process {
namespace {

constexpr int64_t kPromptBytesPerToken = 4;

uint64_t word_of(const TextRequest& request) {
  const std::string prompt =
      request.prompt.messages.is_null() ? request.prompt.text : request.prompt.messages.dump();
  const std::array<uint64_t, 4> words = {crc32c(prompt), request.draw.seed,
                                         static_cast<uint64_t>(request.draw.row),
                                         request.draw.sample};
  return mix_seed(words);
}

const KeptStep* find(std::span<const KeptStep> kept, const std::string& key) {
  const auto found =
      std::find_if(kept.begin(), kept.end(), [&](const KeptStep& step) { return step.key == key; });
  return found == kept.end() ? nullptr : &*found;
}

FinishedRow failed_row(const KeptStep& step) {
  return {.state = "engine_error",
          .value = {{"stage", step.key}, {"tries", step.tries}, {"error", step.result.error}}};
}

}  // namespace

NoopEngine::NoopEngine(NoopEngineOptions options) : options_(std::move(options)) {}

void NoopEngine::submit(TextRequest request) { waiting_.push_back(std::move(request)); }

void NoopEngine::cancel(int64_t number) {
  std::erase_if(waiting_, [&](const TextRequest& one) { return one.number == number; });
  std::erase_if(running_, [&](const Running& one) { return one.request.number == number; });
}

int64_t NoopEngine::unfinished() const {
  return static_cast<int64_t>(waiting_.size() + running_.size());
}

std::vector<TextResult> NoopEngine::step() {
  while (!waiting_.empty() && static_cast<int64_t>(running_.size()) < options_.batch) {
    Running next{.request = std::move(waiting_.front())};
    waiting_.pop_front();
    next.word = word_of(next.request);
    const auto spread = static_cast<uint64_t>(options_.max_tokens - options_.min_tokens + 1);
    next.tokens = options_.min_tokens + static_cast<int64_t>(next.word % spread);
    next.tokens_left = next.tokens;
    running_.push_back(std::move(next));
  }
  if (options_.step_time.count() > 0 && !running_.empty())
    std::this_thread::sleep_for(options_.step_time);
  std::vector<TextResult> finished;
  for (Running& one : running_) {
    const int64_t written = std::min(one.tokens_left, options_.tokens_per_step);
    one.tokens_left -= written;
    figures_.decode_tokens += written;
    if (one.tokens_left == 0) finished.push_back(finish(one));
  }
  std::erase_if(running_, [](const Running& one) { return one.tokens_left == 0; });
  return finished;
}

TextResult NoopEngine::finish(const Running& running) const {
  const TextRequest& request = running.request;
  TextResult result{
      .number = request.number,
      .prompt_tokens = static_cast<int64_t>(request.prompt.text.size()) / kPromptBytesPerToken};
  if (options_.error_of) result.error = options_.error_of(request);
  if (!result.error.empty()) {
    result.finish = TextFinish::Error;
    result.error_may_pass = options_.error_may_pass;
    return result;
  }
  result.new_tokens = running.tokens;
  result.text = fmt::format("{:016x}", running.word);
  for (int64_t token = 1; token < running.tokens; ++token)
    result.text += fmt::format(" {:03x}", (running.word >> (token % 48)) & 0xfff);
  return result;
}

EngineFigures NoopEngine::figures() const {
  EngineFigures figures = figures_;
  figures.running = static_cast<int64_t>(running_.size());
  figures.waiting = static_cast<int64_t>(waiting_.size());
  return figures;
}

NextSteps NoopProgram::next(const InputRow& row, std::span<const KeptStep> kept) const {
  NextSteps next;
  if (!row.value.contains("problem") || !row.value["problem"].is_string()) {
    next.finished = FinishedRow{.state = "bad_input", .value = row.value};
    return next;
  }
  FinishedRow done{.state = "ok", .value = row.value};
  bool all = true;
  for (int candidate = 0; candidate < options_.candidates; ++candidate) {
    std::string prompt = row.value["problem"];
    for (const char* const stage : {"generate", "judge"}) {
      if (!options_.judges && std::string_view(stage) == "judge") continue;
      const std::string key = fmt::format("{}/{}", stage, candidate);
      const KeptStep* const has = find(kept, key);
      if (has == nullptr) {
        all = false;
        Step step{.key = key, .request = {}};
        step.request.prompt.text = prompt;
        step.request.draw = {.seed = options_.seed,
                             .row = row.source_index,
                             .sample = static_cast<uint64_t>(candidate)};
        next.steps.push_back(std::move(step));
        break;
      }
      if (has->result.finish == TextFinish::Error) {
        next.steps.clear();
        next.finished = failed_row(*has);
        return next;
      }
      done.value[key] = has->result.text;
      prompt = "judge " + has->result.text;
    }
  }
  if (all) next.finished = std::move(done);
  return next;
}

int64_t NoopProgram::expected_cost(const InputRow& row) const {
  return row.value.value("cost", int64_t{0});
}

}  // namespace convoy::process

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/answer_prompts.h"

#include <algorithm>
#include <chrono>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/memory.h"
#include "convoy/model/architecture/families/family.h"

namespace convoy::recipes {
namespace {

// Shows the progress of all ranks, and ends the work on a stop request.
class AnswerProgress {
 public:
  AnswerProgress(RankShare& share, telemetry::ProgressOptions options,
                 std::function<bool()> stop_wanted, const Log& log)
      : share_(share),
        total_(options.total),
        kept_(options.start),
        stop_wanted_(std::move(stop_wanted)),
        progress_(quiet_for(std::move(options), log)) {}

  void add(int64_t tokens) {
    tokens_ += tokens;
    const int64_t all = share_.report_done(++own_);
    if (share_.leads()) show(all);
  }
  // Throws StopRequest.
  void leave_if_asked() const {
    if (stop_wanted_ && stop_wanted_())
      throw StopRequest(fmt::format("stopped on request: {} of {} answers are finished",
                                    kept_ + share_.report_done(own_), total_));
  }
  void finish() {
    share_.wait_for_all(total_ - kept_, [this](int64_t all) {
      if (share_.leads()) show(all);
      if (all < total_ - kept_) leave_if_asked();
    });
    progress_.finish();
  }

 private:
  static telemetry::ProgressOptions quiet_for(telemetry::ProgressOptions options, const Log& log) {
    if (log.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
    return options;
  }
  // `all`: number of answers made by this start.
  void show(int64_t all) {
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    // Only this rank's tokens are counted; the others' answers are assumed to have the same length.
    const double tokens_of_all = static_cast<double>(tokens_) * static_cast<double>(all) /
                                 static_cast<double>(std::max<int64_t>(own_, 1));
    progress_.update({.done = kept_ + all, .per_second = tokens_of_all / std::max(seconds, 1e-9)});
  }

  RankShare& share_;
  int64_t total_;
  int64_t kept_;  // by an earlier start
  std::function<bool()> stop_wanted_;
  telemetry::Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t own_ = 0;
  int64_t tokens_ = 0;
};

double temperature_of(const settings::SamplingFlags& sampling) {
  constexpr double kUsualTemperature = 0.2;
  if (!sampling.greedy) return sampling.temperature.value.value_or(kUsualTemperature);
  if (sampling.temperature.value.value_or(0) > 0)
    throw ConfigError("--greedy and a --temperature above 0 exclude each other",
                      {.key = "--temperature", .hint = "leave one of them out"});
  return 0.0;
}

int64_t longest_row(const std::vector<std::vector<int32_t>>& prompts,
                    const settings::SamplingFlags& sampling) {
  size_t longest = 0;
  for (const std::vector<int32_t>& prompt : prompts) longest = std::max(longest, prompt.size());
  return static_cast<int64_t>(longest) + sampling.max_new_tokens;
}

}  // namespace

generate::EngineConfig engine_config(const settings::EngineFlags& flags, const LoadedModel& model,
                                     int64_t longest_row_tokens, int engines_on_host) {
  // Half of the free memory: packed weights and activations also need some.
  const int64_t free_bytes =
      device::usable_rank_memory_bytes(model.model->device(), engines_on_host);
  return {.max_rows = flags.batch_size,
          .prefill_chunk = flags.prefill_chunk,
          .kv_blocks = flags.kv_blocks.value.value_or(0),
          .longest_row_tokens = longest_row_tokens,
          .kv_memory_bytes = free_bytes / 2,
          .kv_element =
              flags.kv_dtype == "int8" ? kernels::CacheElement::Int8 : kernels::CacheElement::Model,
          .end_ids = families::end_token_ids(model.folder)};
}

generate::Request answer_request(const settings::SamplingFlags& sampling, int64_t prompt,
                                 int64_t sample) {
  return {.sampling = {.temperature = temperature_of(sampling),
                       .top_k = sampling.top_k,
                       .top_p = sampling.top_p,
                       .min_p = sampling.min_p,
                       .repetition_penalty = sampling.repetition_penalty},
          .draw = {.seed = static_cast<uint64_t>(sampling.seed),
                   .row = prompt,
                   .sample = static_cast<uint64_t>(sample)},
          .max_new_tokens = sampling.max_new_tokens,
          .stop = sampling.stop.names,
          .wants_logprobs = sampling.logprobs};
}

void answer_prompts(RankShare& share, const LoadedModel& loaded,
                    const std::vector<std::vector<int32_t>>& prompts, const AnswerOptions& options,
                    const Log& log, const std::function<void(const Answer&)>& take) {
  const int64_t samples = options.sampling.n;
  generate::Engine engine(
      *loaded.model, loaded.tokenizer,
      engine_config(options.engine, loaded, longest_row(prompts, options.sampling), share.size()));
  const auto is_done = [&options](int64_t prompt, int64_t sample) {
    return options.is_done && options.is_done(prompt, sample);
  };
  telemetry::ProgressOptions shown = options.progress;
  shown.total = static_cast<int64_t>(prompts.size()) * samples;
  for (int64_t place = 0; place < shown.total; ++place)
    shown.start += is_done(place / samples, place % samples);
  AnswerProgress progress(share, shown, options.stop_wanted, log);
  for (auto prompt = static_cast<int64_t>(share.rank());
       prompt < static_cast<int64_t>(prompts.size()); prompt += share.size()) {
    for (int64_t sample = 0; sample < samples; ++sample) {
      if (is_done(prompt, sample)) continue;
      generate::Request request = answer_request(options.sampling, prompt, sample);
      request.number = prompt * samples + sample;
      request.prompt = prompts[static_cast<size_t>(prompt)];
      engine.submit(std::move(request));
    }
  }
  while (engine.unfinished() > 0) {
    progress.leave_if_asked();
    for (generate::Completion& ended : engine.step()) {
      const int64_t prompt = ended.number / samples;
      CONVOY_CHECK(ended.finish_reason != generate::FinishReason::NotFinite, NumericError,
                   "the model's logits are not finite (prompt {}, token {})", prompt,
                   ended.token_ids.size());
      const auto tokens = static_cast<int64_t>(ended.token_ids.size());
      take({.prompt = prompt, .sample = ended.number % samples, .completion = std::move(ended)});
      progress.add(tokens);
    }
  }
  progress.finish();
}

}  // namespace convoy::recipes

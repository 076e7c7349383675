// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/generate/answer_prompts.h"

#include <algorithm>
#include <chrono>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/generate/engine/thought_ids.h"
#include "convoy/generate/scheduler/engine_defaults.h"
#include "convoy/machine/device/device_claim.h"
#include "convoy/machine/device/device_graph.h"
#include "convoy/machine/device/memory.h"

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
    const double seconds = seconds_since(start_);
    // Only this rank's tokens are counted; the others' answers are assumed to have the same length.
    const double tokens_of_all = static_cast<double>(tokens_) * static_cast<double>(all) /
                                 static_cast<double>(std::max<int64_t>(own_, 1));
    progress_.update({.done = kept_ + all, .per_second = tokens_of_all / std::max(seconds, 1e-9)});
  }

  RankShare& share_;
  int64_t total_;
  int64_t kept_;  // answers kept by an earlier start
  std::function<bool()> stop_wanted_;
  telemetry::Progress progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  int64_t own_ = 0;
  int64_t tokens_ = 0;
};

// Returns the bytes for the KV cache and a step's activations.
int64_t memory_for_engine(at::Device device, const EngineSurroundings& surroundings,
                          bool deterministic) {
  // The memory plan of a deterministic run must not depend on the memory of other processes.
  const int64_t all_bytes = device::device_memory_bytes(device);
  if (deterministic && all_bytes > 0) return all_bytes - device::rank_memory(device).held_bytes;
  return device::usable_rank_memory_bytes(device, surroundings.engines_on_host);
}

std::shared_ptr<const device::DeviceClaim> claim_of(at::Device device,
                                                    const settings::EngineFlags& flags,
                                                    const Log& log) {
  auto claim = std::make_shared<const device::DeviceClaim>(device::claim_device(device));
  if (!claim->is_taken) return claim;
  const std::string holder = claim->holder_process > 0
                                 ? fmt::format("process {}", claim->holder_process)
                                 : "a process of another container";
  if (flags.kv_blocks.is_auto())
    throw ConfigError(
        fmt::format("{} has the engine of {} on it, which fills its memory", device.str(), holder),
        {.key = "kv_blocks",
         .hint = "wait for its end, name another GPU in CUDA_VISIBLE_DEVICES, or let both engines "
                 "share this one: give each its --kv-blocks"});
  log.warning(fmt::format("{} also has the engine of {} on it: they share its speed", device.str(),
                          holder));
  return claim;
}

std::optional<bool> records_steps(const std::string& cuda_graphs, at::Device device) {
  if (cuda_graphs == "auto") return {};
  if (cuda_graphs == "off") return false;
  const std::string problem =
      device.is_cuda() ? device::DeviceGraph::problem(device) : "the device is no CUDA device";
  if (!problem.empty())
    throw ConfigError(fmt::format("CUDA graphs cannot be had: {}", problem),
                      {.key = "cuda_graphs", .hint = "leave it out, or use --cuda-graphs off"});
  return true;
}

}  // namespace

int64_t longest_row(const std::vector<AskedPrompt>& prompts,
                    const settings::SamplingFlags& sampling) {
  size_t longest = 0;
  for (const AskedPrompt& prompt : prompts) longest = std::max(longest, prompt.ids.size());
  return static_cast<int64_t>(longest) + sampling.max_new_tokens.value.value();
}

sizing::GenerationRows rows_together(const settings::EngineFlags& flags, at::Device device,
                                     int64_t row_tokens) {
  const scheduler::EngineDefaults defaults = scheduler::engine_defaults(
      device.is_cpu() ? scheduler::Hardware::Cpu : scheduler::Hardware::Gpu,
      device::device_memory_bytes(device));
  return {.rows = flags.batch_size.value.value_or(defaults.max_rows),
          .row_tokens = row_tokens,
          .step_tokens = flags.prefill_chunk.value.value_or(defaults.step_tokens),
          .kv_blocks = flags.kv_blocks.value.value_or(0),
          .int8_kv = flags.kv_dtype == "int8"};
}

generate::EngineConfig engine_config(const settings::EngineFlags& flags, const LoadedModel& model,
                                     const EngineSurroundings& surroundings, const Log& log) {
  const at::Device device = model.model->device();
  const bool fills_gpu = !device.is_cpu() && !surroundings.is_beside_training;
  const scheduler::EngineDefaults defaults =
      scheduler::engine_defaults(fills_gpu ? scheduler::Hardware::Gpu : scheduler::Hardware::Cpu,
                                 device::device_memory_bytes(device));
  device::release_kept_memory(device);
  generate::EngineConfig config{
      .max_rows = flags.batch_size.value.value_or(defaults.max_rows),
      .prefill_chunk = flags.prefill_chunk.value.value_or(defaults.step_tokens),
      .kv_blocks = flags.kv_blocks.value.value_or(0),
      .longest_row_tokens = surroundings.longest_row_tokens,
      .kv_memory_bytes =
          static_cast<int64_t>(defaults.kv_share * static_cast<double>(memory_for_engine(
                                                       device, surroundings, flags.deterministic))),
      .kv_element =
          flags.kv_dtype == "int8" ? kernels::CacheElement::Int8 : kernels::CacheElement::Model,
      .records_steps = records_steps(flags.cuda_graphs, device),
      .end_ids = model.end_ids};
  if (fills_gpu) config.claim = claim_of(device, flags, log);
  return config;
}

generate::Request answer_request(const settings::SamplingFlags& sampling, int64_t prompt,
                                 int64_t sample) {
  return {.sampling = {.temperature = sampling.temperature.value.value(),
                       .top_k = sampling.top_k.value.value(),
                       .top_p = sampling.top_p.value.value(),
                       .min_p = sampling.min_p.value.value(),
                       .repetition_penalty = sampling.repetition_penalty.value.value()},
          .draw = {.seed = static_cast<uint64_t>(sampling.seed),
                   .row = prompt,
                   .sample = static_cast<uint64_t>(sample)},
          .max_new_tokens = sampling.max_new_tokens.value.value(),
          .stop = sampling.stop.names,
          .wants_logprobs = sampling.logprobs};
}

text::GrammarCompiler grammar_compiler(const LoadedModel& loaded) {
  return {loaded.tokenizer, std::min(loaded.model->vocab_size(), loaded.tokenizer.vocab_size())};
}

void answer_prompts(RankShare& share, const LoadedModel& loaded,
                    const std::vector<AskedPrompt>& prompts, const AnswerOptions& options,
                    const Log& log, const std::function<void(const Answer&)>& take) {
  const int64_t samples = options.sampling.n;
  generate::Engine engine(
      *loaded.model, loaded.tokenizer,
      engine_config(options.engine, loaded,
                    {.longest_row_tokens = longest_row(prompts, options.sampling),
                     .engines_on_host = share.size()},
                    log));
  const std::shared_ptr<const text::AnswerGrammar> grammar =
      options.form ? grammar_compiler(loaded).compile(*options.form) : nullptr;
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
      const AskedPrompt& asked = prompts[static_cast<size_t>(prompt)];
      request.prompt = asked.ids;
      if (asked.is_chat) request.stop_ids = loaded.turn_end_ids;
      if (grammar != nullptr) request.form.grammar = grammar;
      if (grammar != nullptr && asked.is_chat)
        request.form.thoughts = generate::thought_ids(asked.ids, loaded.tokenizer);
      engine.submit(std::move(request));
    }
  }
  while (engine.unfinished() > 0) {
    progress.leave_if_asked();
    for (generate::Completion& ended : engine.step()) {
      const int64_t prompt = ended.number / samples;
      if (ended.finish_reason == generate::FinishReason::NotFinite)
        throw NumericError(fmt::format("the model's logits are not finite (prompt {}, token {})",
                                       prompt, ended.token_ids.size()),
                           {.hint = "compute with --dtype fp32; if it stays, the weights hold NaN: "
                                    "fetch the model again"});
      const auto tokens = static_cast<int64_t>(ended.token_ids.size());
      take({.prompt = prompt, .sample = ended.number % samples, .completion = std::move(ended)});
      progress.add(tokens);
    }
  }
  progress.finish();
}

}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
//
// The generation engine: requests come at any time, each step() is one forward pass over the next
// tokens of all running requests - pieces of prompts and single tokens together, without padding -
// and returns the completed requests. On GPUs it starts a step before it reads the tokens of the
// one before, so that no device waits for the host: they stay on the device as input, and what a
// text gets after its end is dropped. A request's text depends on the request alone, not on the
// other requests of its batch (limits: docs/decisions/0006-bits-of-a-row.md). One thread.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/answer_text.h"
#include "convoy/generate/engine/request.h"
#include "convoy/generate/engine/step_costs.h"
#include "convoy/generate/scheduler/engine_figures.h"
#include "convoy/generate/scheduler/scheduler.h"
#include "convoy/machine/device/device_claim.h"
#include "convoy/model/adapters/served_adapters.h"
#include "convoy/model/nn/causal_lm.h"
#include "convoy/model/nn/kv_cache.h"

namespace convoy::generate {

struct EngineConfig {
  int64_t max_rows = 16;           // in one step
  int64_t prefill_chunk = 512;     // tokens of a step, of prompts and new ones together
  int64_t kv_blocks = 0;           // 0: enough for `max_rows` of the longest rows
  int64_t longest_row_tokens = 0;  // prompt and answer, where it is known; 0: the model's positions
  int64_t kv_memory_bytes = 0;     // bound of the KV cache where `kv_blocks` is 0; 0: none
  kernels::CacheElement kv_element = kernels::CacheElement::Model;
  bool shares_prefixes = true;
  // A step's tokens are read once the next one was started; nothing: on GPUs. Steps that all ranks
  // take together are always read at once.
  std::optional<bool> reads_late = {};
  // Steps of single tokens are recorded and then started as a whole (device::DeviceGraph); nothing:
  // on CUDA devices that can. Not with adapters to serve, or a model whose weights are loaded and
  // released.
  std::optional<bool> records_steps = {};
  adapters::ServedAdapters* adapters = nullptr;  // adapters of this model; outlives the engine
  std::vector<int32_t> end_ids = {};  // beside the tokenizer's eos: families::end_token_ids
  std::shared_ptr<const device::DeviceClaim> claim = {};  // held as long as the engine
};

using EngineFigures = scheduler::EngineFigures;

class Engine {
 public:
  // Model and tokenizer must outlive it. Throws ConfigError on a config out of range.
  Engine(nn::CausalLm& model, const text::Tokenizer& tokenizer, EngineConfig config);
  ~Engine();

  // Throws DataError on a prompt without tokens, or one that leaves no room before the model's last
  // position or in the KV cache, ConfigError on a rule out of range. A text that reaches the last
  // position ends with reason Length.
  void submit(Request request);
  void cancel(int64_t number);                    // at any time; nothing is returned of it
  bool has_begun(int64_t number) const;           // an unfinished request, which may wait again
  std::string text_so_far(int64_t number) const;  // for an unfinished request
  // The tokens that are read; until the next call of step().
  AnswerTokens tokens_so_far(int64_t number) const;
  int64_t unfinished() const { return std::ssize(rows_) + std::ssize(ended_); }
  // Runs one step. Blocks. Returns the completed requests, in the order of the step's rows; where
  // tokens are read late, of the step before, and the last step runs nothing. Without
  // requests it does nothing, except when the model's residency is collective: then it joins the
  // forward pass of the other ranks, since all ranks step together. After an exception the next
  // call computes the same rows again.
  std::vector<Completion> step();

  EngineFigures figures() const;

 private:
  struct Row;
  struct Inputs;
  struct RecordedStep;
  // The tokens of a step that the host has not read. A cancelled row is gone.
  struct Drawn {
    std::vector<std::weak_ptr<Row>> rows;
    UnreadTokens tokens;
  };
  // Rows of one adapter stand together in the step.
  std::vector<scheduler::PlannedRow> plan_step();
  void attend_pass();
  // Queues a step; returns true where a row draws in it.
  bool start(const std::vector<scheduler::PlannedRow>& plan);
  void announce(const Drawn& drawn);
  // Everything that the pass and the draw need on the device; the caller sends it. `planned_keys`:
  // as kernels::PagedRows takes them.
  Inputs list_inputs(const std::vector<scheduler::PlannedRow>& plan, int64_t planned_keys,
                     device::Upload& upload);
  void run(const nn::TokenBatch& batch, const at::Tensor& drawing_R, std::optional<TokenDraw>& draw,
           const at::Tensor& unread_ids);
  std::optional<c10::Stream> stream_of_steps();
  bool can_record() const;
  // Keys up to which steps like this one may be recorded as one; 0: it is no such step.
  int64_t recorded_keys(const std::vector<scheduler::PlannedRow>& plan) const;
  // The recorded step that does the work of this one, up to date and started; null where there is
  // none: the first ones of a kind run by themselves.
  const RecordedStep* start_recorded(const Inputs& inputs, int64_t planned_keys,
                                     device::Upload& upload);
  int64_t num_recorded() const;
  std::unique_ptr<RecordedStep> record(const Inputs& inputs, const at::Tensor& tables,
                                       const at::Tensor& ids_T);
  DrawPoint draw_point(const Row& row) const;
  void set_adapters(const std::vector<scheduler::PlannedRow>& plan) const;
  bool reads_late() const;
  int64_t fewest_admissions() const;
  // The oldest steps, until the host has not read so many.
  void read_down_to(size_t unread);
  void take(Row& row, kernels::SampledToken token);
  void remove(int64_t number);
  Completion complete(const Row& row, FinishReason reason) const;
  void count(const std::vector<scheduler::PlannedRow>& plan, double seconds);

  nn::CausalLm& model_;
  const text::Tokenizer& tokenizer_;
  EngineConfig config_;
  int64_t pickable_ids_;  // padded rows of the vocabulary are never picked
  std::vector<scheduler::LayerGroup> groups_;
  scheduler::Scheduler scheduler_;
  nn::KvCache cache_;
  std::unordered_map<int64_t, std::shared_ptr<Row>> rows_;
  std::deque<Drawn> unread_;
  // By rows and keys.
  struct StepKind {
    int64_t uses = 0;
    std::unique_ptr<RecordedStep> recorded;
  };
  std::map<std::pair<int64_t, int64_t>, StepKind> step_kinds_;
  RecordedStep* first_recorded_ = nullptr;  // the other recorded steps share its memory
  std::optional<c10::Stream> stream_;       // runs all steps, if they are recorded
  std::vector<Completion> ended_;  // not returned yet: from this step, or read before it failed
  bool step_failed_ = false;
  EngineFigures figures_;
  StepCosts costs_;
};

// Answers all requests. Called with each completion when it ends; returns them in the order of the
// requests, whose numbers are set to their places.
using OnCompletion = std::function<void(const Completion&)>;
std::vector<Completion> answer_all(Engine& engine, std::vector<Request> requests,
                                   const OnCompletion& on_completion = {});

}  // namespace convoy::generate

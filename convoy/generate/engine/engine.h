// SPDX-License-Identifier: Apache-2.0
//
// The generation engine: requests come at any time, each step() is one forward pass over the next
// tokens of all running requests - pieces of prompts and single tokens together, without padding -
// and returns the completed requests. On GPUs it starts a step before it reads the tokens of the
// previous step, so that no device waits for the host: the unread tokens stay on the device as
// input of the new step, and tokens drawn after the end of a text are dropped. A request's text
// depends on the request alone, not on the other requests of its batch (limits:
// docs/decisions/0006-bits-of-a-row.md). One thread.
#pragma once

#include <c10/core/Stream.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
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

class RowGrammar;

struct EngineConfig {
  int64_t max_rows = 16;           // rows in one step
  int64_t prefill_chunk = 512;     // tokens of a step: prompt tokens and new tokens together
  int64_t kv_blocks = 0;           // 0: enough for `max_rows` of the longest rows
  int64_t longest_row_tokens = 0;  // prompt and answer; 0: as many as the model's positions
  int64_t kv_memory_bytes = 0;     // limit of the KV cache if `kv_blocks` is 0; 0: no limit
  kernels::CacheElement kv_element = kernels::CacheElement::Model;
  // With a model that has recurrent layers this keeps as many states at ends of prefixes as rows.
  bool shares_prefixes = true;
  // True: the tokens of a step are read after the next step was started. Empty: true on GPUs only.
  // The tokens of steps that all ranks take together are always read at once.
  std::optional<bool> reads_late = {};
  // True: steps of single tokens are recorded and then started as a whole (device::DeviceGraph).
  // Empty: true on CUDA devices that can record. Steps are never recorded with adapters to serve,
  // with a model whose weights are loaded and released, or with one that has recurrent layers.
  std::optional<bool> records_steps = {};
  adapters::ServedAdapters* adapters = nullptr;  // adapters of this model; outlives the engine
  std::vector<int32_t> end_ids = {};  // besides the tokenizer's eos: families::end_token_ids
  std::shared_ptr<const device::DeviceClaim> claim = {};  // held as long as the engine exists
};

using EngineFigures = scheduler::EngineFigures;

class Engine {
 public:
  // Model and tokenizer must outlive it. Throws ConfigError on a config out of range.
  Engine(nn::CausalLm& model, const text::Tokenizer& tokenizer, EngineConfig config);
  ~Engine();

  // Throws DataError on a prompt without tokens and on a prompt that leaves no room before the
  // model's last position or in the KV cache, ConfigError on a sampling rule out of range. A text
  // that reaches the last position ends with reason Length. A grammar must have been compiled for
  // this tokenizer and min(the model's, the tokenizer's) ids.
  void submit(Request request);
  void cancel(int64_t number);           // at any time; step() then returns no completion of it
  bool has_begun(int64_t number) const;  // true once an unfinished request was admitted
  std::string text_so_far(int64_t number) const;  // for an unfinished request
  // The tokens that the host has read. Valid until the next call of step().
  AnswerTokens tokens_so_far(int64_t number) const;
  int64_t unfinished() const { return std::ssize(rows_) + std::ssize(ended_); }
  // Runs one step. Blocks. Returns the completed requests, in the order of the step's rows. If
  // tokens are read late, the previous step completed these requests, and the last call runs no
  // step. Without requests a call does nothing, unless the model's residency is collective: the
  // call then joins the forward pass of the other ranks, because all ranks step together. After an
  // exception the next call computes the same rows again.
  std::vector<Completion> step();

  EngineFigures figures() const;

 private:
  struct Row;
  struct Inputs;
  struct RecordedStep;
  struct ScoredToken;
  // The tokens of a step that the host has not read. The pointer to a cancelled row is expired.
  struct Drawn {
    std::vector<std::weak_ptr<Row>> rows;
    UnreadTokens tokens;
  };
  // Plans the next step. Rows with the same adapter are adjacent.
  std::vector<scheduler::PlannedRow> plan_step();
  void attend_pass();
  // Queues a step. Returns true when a row draws in the step.
  bool start(const std::vector<scheduler::PlannedRow>& plan);
  void announce(const Drawn& drawn);
  // Adds everything that the pass and the draw need on the device to `upload`, which the caller
  // sends. `planned_keys`: as in kernels::PagedRows.
  Inputs list_inputs(const std::vector<scheduler::PlannedRow>& plan, int64_t planned_keys,
                     device::Upload& upload);
  // `scored`: prompt tokens that get their log-probabilities. `drawing`: the rows of `draw`, needed
  // where one of them has a grammar.
  void run(const nn::TokenBatch& batch, const at::Tensor& drawing_R, std::optional<TokenDraw>& draw,
           const at::Tensor& unread_ids, std::span<const ScoredToken> scored = {},
           const std::vector<std::shared_ptr<Row>>& drawing = {});
  // Finds which tokens may come next in the rows with a grammar, on the threads of the host.
  static void send_allowed(const std::vector<std::shared_ptr<Row>>& drawing, TokenDraw& draw);
  void score(const at::Tensor& hidden_TD, std::span<const ScoredToken> scored);  // blocks
  static void note(const ScoredToken& scored, kernels::SampledToken token);
  int64_t prefix_space(const Request& request, int64_t first_position);
  std::optional<c10::Stream> stream_of_steps();
  bool can_record() const;
  // The number of keys per row up to which one recorded step can do this plan; 0: the plan cannot
  // run as a recorded step.
  int64_t recorded_keys(const std::vector<scheduler::PlannedRow>& plan) const;
  // Starts a recorded step with these inputs and returns it. Returns null when there is no recorded
  // step of this kind: the first steps of a kind are not recorded.
  const RecordedStep* start_recorded(const Inputs& inputs, int64_t planned_keys,
                                     device::Upload& upload);
  int64_t num_recorded() const;
  std::unique_ptr<RecordedStep> record(const Inputs& inputs, const at::Tensor& tables,
                                       const at::Tensor& ids_T);
  DrawPoint draw_point(Row& row) const;
  std::optional<RowGrammar> row_grammar(const Request& request) const;
  int64_t num_bound_rows() const;  // unfinished rows with a grammar
  void set_adapters(const std::vector<scheduler::PlannedRow>& plan) const;
  bool reads_late() const;
  int64_t fewest_admissions() const;
  // Reads the tokens of the oldest steps, until only `unread` steps are unread.
  void read_down_to(size_t unread);
  void take(Row& row, kernels::SampledToken token);
  void remove(int64_t number);
  Completion complete(const Row& row, FinishReason reason) const;
  void count(const std::vector<scheduler::PlannedRow>& plan, double seconds);

  nn::CausalLm& model_;
  const text::Tokenizer& tokenizer_;
  EngineConfig config_;
  int64_t pickable_ids_;    // padded rows of the vocabulary are never picked
  bool heads_fit_kernels_;  // the GPU kernels of paged attention take the heads of all layers
  std::vector<scheduler::LayerGroup> groups_;
  scheduler::Scheduler scheduler_;
  nn::KvCache cache_;
  std::unordered_map<int64_t, std::shared_ptr<Row>> rows_;
  std::deque<Drawn> unread_;
  // The steps with the same number of rows and of planned keys, whose logits are all scaled or not.
  struct StepKind {
    int64_t uses = 0;
    std::unique_ptr<RecordedStep> recorded;
  };
  std::map<std::tuple<int64_t, int64_t, bool>, StepKind> step_kinds_;
  RecordedStep* first_recorded_ = nullptr;  // the other recorded steps share its memory
  std::optional<c10::Stream> stream_;       // runs all steps, if they are recorded
  int64_t num_private_spaces_ = 0;          // prefix spaces that only one row has had
  std::vector<Completion> ended_;           // completed, but not returned by step() yet
  bool step_failed_ = false;
  std::vector<int64_t> bound_rows_of_lexer_;  // unfinished rows with a grammar; see RowGrammar
  EngineFigures figures_;
  StepCosts costs_;
};

// Answers all requests. Calls `on_completion` for each completion as soon as it is there, and
// returns the completions in the order of the requests. Sets the number of each request to its
// index.
using OnCompletion = std::function<void(const Completion&)>;
std::vector<Completion> answer_all(Engine& engine, std::vector<Request> requests,
                                   const OnCompletion& on_completion = {});

}  // namespace convoy::generate

// SPDX-License-Identifier: Apache-2.0
//
// Plans each step of a generation engine: the requests that run, their number of tokens, and their
// KV blocks. A step mixes rows that read their prompt piece by piece with rows that take one token.
// The next step may be planned before the host has read the tokens that rows drew in this one. When
// too few blocks are free, a row gives its blocks back and is computed again later. A plan depends
// only on the previous calls. One thread.
//
// Rows that begin alike share the blocks of their beginning. If the model's layers also keep a
// state of each row, a row can begin only after a prefix whose state is kept. The kept states are
// at the ends of prefixes that an earlier row shares with the next request, or with a row before
// it. A request waits while a running row computes a state that it can use.
//
// No request starves: one of every few admissions takes the oldest request, whatever its priority;
// while it waits for room, no other request is admitted; and the oldest running row is never
// preempted.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "convoy/generate/scheduler/layer_blocks.h"
#include "convoy/generate/scheduler/prefix_states.h"

namespace convoy::scheduler {

// Stands for a token that a row has drawn and the host has not read.
inline constexpr int32_t kUnreadToken = INT32_MIN;

struct SchedulerConfig {
  int64_t block_tokens = 16;
  int64_t max_rows = 16;      // rows that run at a time
  int64_t step_tokens = 512;  // prompt and new tokens of a step; new ones are always planned
  bool shares_prefixes = true;
  // For a model whose layers keep a state of each row: places for states at ends of prefixes.
  // Empty: the model keeps no states, and a row begins after any blocks that are there.
  std::optional<int64_t> prefix_states = {};
  std::vector<LayerGroup> groups = {};
};

struct Request {
  int64_t number = 0;  // unique among the unfinished requests
  std::vector<int32_t> prompt = {};
  int64_t most_tokens = 0;   // prompt and answer
  int64_t priority = 0;      // higher goes first
  int64_t prefix_space = 0;  // rows of different spaces share no prefix
};

// Tokens `begin` to `end` - 1 of a row. `slot`: the row's place below max_rows while it runs. A
// model finds there the data of a row that is not in its blocks. `draws`: these are the row's last
// tokens, so the step draws a new token. `takes_state`: before the step, the row's state becomes a
// copy of the one at this place of SchedulerConfig::prefix_states. `keeps_state`: the row's state
// after the step is copied to this place, before finish_step().
struct PlannedRow {
  int64_t number = 0;
  int64_t begin = 0;
  int64_t end = 0;
  bool draws = false;
  int64_t slot = 0;
  std::optional<int64_t> takes_state = {};
  std::optional<int64_t> keeps_state = {};
};

struct SchedulerFigures {
  int64_t running = 0;
  int64_t waiting = 0;
  int64_t taken_blocks = 0;  // blocks that rows hold, over all groups
  int64_t num_blocks = 0;
  int64_t cached_prompt_tokens = 0;  // tokens taken from a shared prefix since the start
  int64_t sought_prompt_tokens = 0;  // tokens for which a shared prefix was sought
  int64_t preemptions = 0;
};

class Scheduler {
 public:
  // Throws ConfigError when a number is out of range.
  explicit Scheduler(SchedulerConfig config);
  ~Scheduler();

  // True when a row of `most_tokens` tokens fits if it runs alone. add() refuses larger requests.
  bool fits(int64_t most_tokens) const;
  // For callers whose steps with prompts cost more than other steps, however few prompt tokens they
  // read. From now on, while all running rows take single tokens and at least `fewest` requests
  // wait, no request begins until `fewest` rows are free or kMostHeldSteps steps have passed. 1:
  // each request begins as soon as there is room.
  void hold_admissions(int64_t fewest) { fewest_admissions_ = fewest; }
  static constexpr int64_t kMostHeldSteps = 8;
  void add(Request request);  // throws StateError when fits() is false

  // The next step. The caller computes all of it, then calls finish_step(). Rows of one step may
  // already share the blocks of this step, because a step stores keys before it reads them. If a
  // step is not finished when the next step is planned, it has failed: its blocks are not shared,
  // and its rows are computed from their beginning.
  std::vector<PlannedRow> plan();
  void finish_step();  // call it when the whole step is computed
  // The blocks of a planned row, by group. Valid until the next call.
  const std::vector<BlockTable>& tables(int64_t number) const;
  // Prompt tokens and new tokens of a row; the last one may be kUnreadToken.
  const std::vector<int32_t>& tokens(int64_t number) const;
  // Number of prompt tokens that were taken from a shared prefix when the request was first
  // admitted; nothing before that.
  std::optional<int64_t> cached_tokens(int64_t number) const;

  // Records that the row drew a token in the finished step. Call append() with this token after the
  // next plan() at the latest. The last token of a row is the input of no step.
  void draw(int64_t number);
  void append(int64_t number, int32_t token);
  void remove(int64_t number);  // for a finished or cancelled request, at any time

  bool empty() const { return rows_.empty(); }
  SchedulerFigures figures() const;
  const std::vector<LayerBlocks>& groups() const { return groups_; }

 private:
  struct Row;
  // Counts of full blocks at a row's beginning: blocks that exist, and the first of them that the
  // row does not compute again.
  struct Prefix {
    int64_t stored = 0;
    int64_t shared = 0;
  };
  using Place = std::pair<int64_t, int64_t>;  // the negated priority, and the arrival

  bool holds_admissions(int64_t decoding);
  void plan_running(std::vector<PlannedRow>& plan, int64_t& prompt_tokens);
  void admit(std::vector<PlannedRow>& plan, int64_t& prompt_tokens);
  Row& next_waiting();
  Prefix find_prefix(Row& row);
  bool has_blocks(const Row& row, int64_t count) const;
  bool awaits_state(const Row& row, int64_t shared) const;
  int64_t kept_end(const Row& row, const Prefix& prefix);
  void begin(Row& row, const Prefix& prefix);
  bool has_room(const Row& row, int64_t shared) const;
  bool make_room(size_t row, int64_t end);
  void put_back(Row& row);
  void release(Row& row);
  void undo_step();
  PlannedRow advance(Row& row, int64_t end);
  void publish(Row& row, int64_t end);
  void take_out_complete();
  void sort_running();
  void wait(Row& row);
  Row& row(int64_t number) const;

  SchedulerConfig config_;
  std::vector<LayerBlocks> groups_;
  std::optional<PrefixStates> states_;  // empty: rows share no states
  std::unordered_map<int64_t, std::unique_ptr<Row>> rows_;
  std::vector<Row*> running_;
  std::vector<int64_t> free_slots_;
  std::set<std::pair<Place, Row*>> waiting_;
  std::set<std::pair<int64_t, Row*>> waiting_by_arrival_;
  bool step_is_open_ = false;  // planned and not finished
  int64_t arrivals_ = 0;
  int64_t admissions_ = 0;
  int64_t fewest_admissions_ = 1;
  int64_t held_steps_ = 0;  // consecutive steps without admissions
  int64_t cached_prompt_tokens_ = 0;
  int64_t sought_prompt_tokens_ = 0;
  int64_t preemptions_ = 0;
};

}  // namespace convoy::scheduler

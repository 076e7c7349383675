// SPDX-License-Identifier: Apache-2.0
#include "convoy/generate/scheduler/scheduler.h"

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"

namespace convoy::scheduler {
namespace {

// One admission of every kAdmissionsPerOldest takes the oldest request.
constexpr int64_t kAdmissionsPerOldest = 8;

void check(const SchedulerConfig& config) {
  const auto demand = [](bool holds, const char* key, int64_t found) {
    if (!holds)
      throw ConfigError(fmt::format("{} must be at least 1, found {}", key, found),
                        {.key = key, .hint = "give 1 or more"});
  };
  demand(config.block_tokens >= 1, "block_tokens", config.block_tokens);
  demand(config.max_rows >= 1, "batch_size", config.max_rows);
  demand(config.step_tokens >= 1, "prefill_chunk", config.step_tokens);
  const int64_t states = config.prefix_states.value_or(0);
  CONVOY_INVARIANT(states >= 0, "{} places for states", states);
  for (const LayerGroup& group : config.groups)
    demand(group.num_blocks >= 1, "kv_blocks", group.num_blocks);
}

}  // namespace

struct Scheduler::Row {
  int64_t number = 0;
  std::vector<int32_t> tokens;
  int64_t slot = -1;  // while the row runs
  int64_t priority = 0;
  int64_t arrival = 0;
  int64_t most_tokens = 0;
  int64_t computed = 0;            // tokens whose keys and values are stored
  int64_t published = 0;           // number of leading blocks that other rows may share
  std::optional<int64_t> cached;   // tokens taken from a shared prefix at the first admission
  std::vector<BlockTable> tables;  // by group
  PrefixKey root{};
  std::vector<PrefixKey> keys;  // keys of the first full blocks, computed when needed
  int64_t keep_end = 0;  // the state after this many tokens is kept for other rows; 0: none is
  std::optional<int64_t> takes_state;  // until the first step after an admission
  enum class State { Waits, Runs, IsComplete } state = State::Waits;

  Place place() const { return {-priority, arrival}; }
  int64_t num_tokens() const { return static_cast<int64_t>(tokens.size()); }
  int64_t num_read() const { return num_tokens() - (tokens.back() == kUnreadToken ? 1 : 0); }
  int64_t pending() const { return num_tokens() - computed; }
  // Full blocks after which the row may begin: at least one token remains to be computed.
  int64_t most_shared(int64_t block_tokens) const { return (num_tokens() - 1) / block_tokens; }
  // The next tokens that one step computes, at most `most`: they end where the state is kept.
  int64_t next_piece(int64_t most) const {
    const int64_t piece = std::min(pending(), most);
    return computed < keep_end ? std::min(piece, keep_end - computed) : piece;
  }

  void extend_keys(int64_t count, int64_t block_tokens) {
    while (static_cast<int64_t>(keys.size()) < count) {
      const std::span<const int32_t> all = tokens;
      const size_t first = keys.size() * static_cast<size_t>(block_tokens);
      keys.push_back(next_key(keys.empty() ? root : keys.back(),
                              all.subspan(first, static_cast<size_t>(block_tokens))));
    }
  }
};

Scheduler::Scheduler(SchedulerConfig config) : config_(std::move(config)) {
  check(config_);
  for (const LayerGroup& group : config_.groups) groups_.emplace_back(group, config_.block_tokens);
  if (config_.shares_prefixes && config_.prefix_states) states_.emplace(*config_.prefix_states);
  for (int64_t slot = config_.max_rows; slot-- > 0;) free_slots_.push_back(slot);
}

Scheduler::~Scheduler() = default;

Scheduler::Row& Scheduler::row(int64_t number) const {
  const auto found = rows_.find(number);
  CONVOY_INVARIANT(found != rows_.end(), "there is no request {}", number);
  return *found->second;
}

bool Scheduler::fits(int64_t most_tokens) const {
  // The last token of an answer is never an input, so it needs no KV.
  return std::all_of(groups_.begin(), groups_.end(), [&](const LayerBlocks& group) {
    return group.most_held(most_tokens - 1, config_.step_tokens) <= group.num_blocks();
  });
}

void Scheduler::add(Request request) {
  CONVOY_INVARIANT(!request.prompt.empty(), "request {} has no tokens", request.number);
  const int64_t most_tokens = std::max<int64_t>(request.most_tokens, request.prompt.size() + 1);
  CONVOY_INVARIANT(fits(most_tokens), "request {} is larger than the cache", request.number);
  auto added = std::make_unique<Row>();
  added->number = request.number;
  added->tokens = std::move(request.prompt);
  added->most_tokens = most_tokens;
  added->priority = request.priority;
  added->arrival = arrivals_++;
  added->tables.resize(groups_.size());
  added->root = root_key(request.prefix_space);
  const auto [place, is_new] = rows_.emplace(request.number, std::move(added));
  CONVOY_INVARIANT(is_new, "there is a request {} already", request.number);
  wait(*place->second);
}

void Scheduler::wait(Row& row) {
  row.state = Row::State::Waits;
  waiting_.emplace(row.place(), &row);
  waiting_by_arrival_.emplace(row.arrival, &row);
}

void Scheduler::remove(int64_t number) {
  Row& gone = row(number);
  if (gone.state == Row::State::Runs) std::erase(running_, &gone);
  if (gone.state == Row::State::Waits) {
    waiting_.erase({gone.place(), &gone});
    waiting_by_arrival_.erase({gone.arrival, &gone});
  }
  release(gone);
  rows_.erase(number);
}

// Frees the blocks and the slot of a row.
void Scheduler::release(Row& row) {
  for (size_t group = 0; group < groups_.size(); ++group) groups_[group].release(row.tables[group]);
  if (row.slot >= 0) free_slots_.push_back(std::exchange(row.slot, -1));
}

void Scheduler::draw(int64_t number) {
  Row& grown = row(number);
  CONVOY_INVARIANT(grown.pending() == 0 && grown.tokens.back() != kUnreadToken,
                   "request {} has tokens that were not computed or not read", number);
  grown.tokens.push_back(kUnreadToken);
}

void Scheduler::append(int64_t number, int32_t token) {
  int32_t& last = row(number).tokens.back();
  CONVOY_INVARIANT(last == kUnreadToken && token >= 0, "request {} drew no token {}", number,
                   token);
  last = token;
}

const std::vector<BlockTable>& Scheduler::tables(int64_t number) const {
  return row(number).tables;
}
const std::vector<int32_t>& Scheduler::tokens(int64_t number) const { return row(number).tokens; }
std::optional<int64_t> Scheduler::cached_tokens(int64_t number) const { return row(number).cached; }

// Removes rows that have drawn all their tokens. Their blocks become free before the host reads the
// last tokens.
void Scheduler::take_out_complete() {
  std::erase_if(running_, [&](Row* row) {
    if (row->num_tokens() < row->most_tokens) return false;
    release(*row);
    row->state = Row::State::IsComplete;
    return true;
  });
}

// Puts the oldest row first and sorts the others by priority and age. The last row is preempted
// first.
void Scheduler::sort_running() {
  const auto oldest = std::min_element(running_.begin(), running_.end(),
                                       [](auto* a, auto* b) { return a->arrival < b->arrival; });
  if (oldest == running_.end()) return;
  std::iter_swap(running_.begin(), oldest);
  std::sort(running_.begin() + 1, running_.end(),
            [](auto* a, auto* b) { return a->place() < b->place(); });
}

void Scheduler::put_back(Row& row) {
  release(row);
  row.computed = 0;
  row.published = 0;
  wait(row);
  ++preemptions_;
}

// Puts all running rows back, because any of them may share a block that the failed step did not
// compute.
void Scheduler::undo_step() {
  for (LayerBlocks& group : groups_) group.retract_published();
  if (states_) states_->drop_planned();
  for (Row* row : running_) put_back(*row);
  running_.clear();
}

// Puts rows back, the last row first, until the blocks for the tokens up to `end` are free. Returns
// false when the row itself was put back.
bool Scheduler::make_room(size_t index, int64_t end) {
  const Row& row = *running_[index];
  const auto is_short = [&] {
    for (size_t group = 0; group < groups_.size(); ++group)
      if (groups_[group].missing(row.tables[group], end) > groups_[group].num_free()) return true;
    return false;
  };
  while (is_short()) {
    Row& last = *running_.back();
    running_.pop_back();
    put_back(last);
    if (&last == &row) return false;
  }
  return true;
}

// The key of a block depends on its tokens, so a block that ends in an unread token is published in
// the next step.
void Scheduler::publish(Row& row, int64_t end) {
  const int64_t full = std::min(end, row.num_read()) / config_.block_tokens;
  row.extend_keys(full, config_.block_tokens);
  for (; row.published < full; ++row.published) {
    for (size_t group = 0; group < groups_.size(); ++group) {
      const BlockId block = row.tables[group][row.published];
      if (block != kNoBlock) groups_[group].publish(row.keys[row.published], block);
    }
  }
}

PlannedRow Scheduler::advance(Row& row, int64_t end) {
  for (size_t group = 0; group < groups_.size(); ++group)
    groups_[group].extend(row.tables[group], end);
  if (config_.shares_prefixes) publish(row, end);
  PlannedRow planned{.number = row.number,
                     .begin = row.computed,
                     .end = end,
                     .draws = end == row.num_tokens(),
                     .slot = row.slot,
                     .takes_state = std::exchange(row.takes_state, std::nullopt)};
  if (end == row.keep_end)
    planned.keeps_state = states_->plan(row.keys[end / config_.block_tokens - 1]);
  row.computed = end;
  return planned;
}

void Scheduler::plan_running(std::vector<PlannedRow>& plan, int64_t& prompt_tokens) {
  sort_running();
  for (size_t index = 0; index < running_.size(); ++index) {
    Row& row = *running_[index];
    const bool reads_prompt = row.pending() > 1;
    const int64_t tokens = reads_prompt ? row.next_piece(prompt_tokens) : 1;
    if (tokens == 0) continue;
    for (size_t group = 0; group < groups_.size(); ++group)
      groups_[group].drop_below_window(row.tables[group], row.computed);
    if (!make_room(index, row.computed + tokens)) return;
    if (reads_prompt) prompt_tokens -= tokens;
    plan.push_back(advance(row, row.computed + tokens));
  }
}

Scheduler::Row& Scheduler::next_waiting() {
  const bool takes_oldest = admissions_ % kAdmissionsPerOldest == kAdmissionsPerOldest - 1;
  return takes_oldest ? *waiting_by_arrival_.begin()->second : *waiting_.begin()->second;
}

bool Scheduler::has_blocks(const Row& row, int64_t count) const {
  return std::all_of(groups_.begin(), groups_.end(), [&](const LayerBlocks& group) {
    return group.has_prefix(std::span(row.keys).first(count));
  });
}

Scheduler::Prefix Scheduler::find_prefix(Row& row) {
  if (!config_.shares_prefixes) return {};
  int64_t stored = row.most_shared(config_.block_tokens);
  row.extend_keys(stored, config_.block_tokens);
  for (const LayerBlocks& group : groups_)
    stored = std::min(stored, group.most_shared(std::span(row.keys).first(stored)));
  while (stored > 0 && !has_blocks(row, stored)) --stored;
  int64_t shared = stored;
  const auto may_begin_after = [&](int64_t blocks) {
    return states_->has(row.keys[blocks - 1]) && has_blocks(row, blocks);
  };
  while (states_ && shared > 0 && !may_begin_after(shared)) --shared;
  return {.stored = stored, .shared = shared};
}

// True when a running row is about to compute and keep a state after which `row` could begin, with
// more than `shared` blocks already computed.
bool Scheduler::awaits_state(const Row& row, int64_t shared) const {
  return std::any_of(running_.begin(), running_.end(), [&](const Row* other) {
    const int64_t blocks = other->keep_end / config_.block_tokens;
    return other->computed <= other->keep_end && blocks > shared &&
           blocks <= row.most_shared(config_.block_tokens) &&
           row.keys[blocks - 1] == other->keys[blocks - 1];
  });
}

// The number of tokens after which the state of `row` is worth keeping; 0: none. There are two
// candidates. The first is the end of the blocks that an earlier row has computed of the same
// beginning, because further rows may begin in this way. The second is the end of the beginning
// that `row` shares with the next request. The smaller of both is taken; a later row that shares
// more can keep the state at the larger one.
int64_t Scheduler::kept_end(const Row& row, const Prefix& prefix) {
  if (!states_ || states_->num_places() == 0) return 0;
  int64_t blocks = prefix.stored > prefix.shared ? prefix.stored : 0;
  if (!waiting_.empty()) {
    Row& next = next_waiting();
    next.extend_keys(next.most_shared(config_.block_tokens), config_.block_tokens);
    const int64_t most =
        std::min(row.most_shared(config_.block_tokens), next.most_shared(config_.block_tokens));
    const auto unlike = std::mismatch(row.keys.begin(), row.keys.begin() + most, next.keys.begin());
    const int64_t common = unlike.first - row.keys.begin();
    if (common > prefix.shared) blocks = blocks == 0 ? common : std::min(blocks, common);
  }
  return blocks * config_.block_tokens;
}

// True when there are enough free blocks for all tokens of `row` and for the running rows: each
// running row needs blocks for the rest of its tokens, at least one block.
bool Scheduler::has_room(const Row& row, int64_t shared) const {
  for (size_t index = 0; index < groups_.size(); ++index) {
    const LayerBlocks& group = groups_[index];
    const auto most = [&](const Row& of) {
      return group.most_held(of.num_tokens(), config_.step_tokens);
    };
    const int64_t held = shared - group.first_place(shared * config_.block_tokens);
    int64_t wanted = std::max<int64_t>(most(row) - held, 1) +
                     group.num_unheld(std::span(row.keys).first(shared));
    for (const Row* other : running_)
      wanted += std::clamp<int64_t>(group.missing(other->tables[index], other->num_tokens()), 1,
                                    most(*other));
    if (wanted > group.num_free()) return false;
  }
  return true;
}

bool Scheduler::holds_admissions(int64_t decoding) {
  const int64_t running = std::ssize(running_), free_rows = config_.max_rows - running;
  const bool could_together = std::ssize(waiting_) >= fewest_admissions_;
  const bool holds = running > 0 && decoding == running && could_together && free_rows > 0 &&
                     free_rows < fewest_admissions_ && held_steps_ < kMostHeldSteps;
  held_steps_ = holds ? held_steps_ + 1 : 0;
  return holds;
}

void Scheduler::admit(std::vector<PlannedRow>& plan, int64_t& prompt_tokens) {
  while (!waiting_.empty() && prompt_tokens > 0 &&
         static_cast<int64_t>(running_.size()) < config_.max_rows) {
    Row& row = next_waiting();
    const Prefix prefix = find_prefix(row);
    if (awaits_state(row, prefix.shared)) return;
    if (!running_.empty() && !has_room(row, prefix.shared)) return;
    begin(row, prefix);
    const int64_t tokens = row.next_piece(prompt_tokens);
    prompt_tokens -= tokens;
    plan.push_back(advance(row, row.computed + tokens));
  }
}

void Scheduler::begin(Row& row, const Prefix& prefix) {
  waiting_.erase({row.place(), &row});
  waiting_by_arrival_.erase({row.arrival, &row});
  ++admissions_;
  const std::span<const PrefixKey> shared = std::span(row.keys).first(prefix.shared);
  for (size_t group = 0; group < groups_.size(); ++group)
    row.tables[group] = groups_[group].hold_prefix(shared);
  row.computed = prefix.shared * config_.block_tokens;
  row.published = prefix.shared;
  row.keep_end = kept_end(row, prefix);
  row.takes_state.reset();
  if (states_ && prefix.shared > 0) row.takes_state = states_->use(shared.back());
  cached_prompt_tokens_ += row.computed;
  if (config_.shares_prefixes) sought_prompt_tokens_ += row.num_tokens();
  if (!row.cached) row.cached = row.computed;
  row.state = Row::State::Runs;
  running_.push_back(&row);
  row.slot = free_slots_.back();
  free_slots_.pop_back();
}

void Scheduler::finish_step() {
  for (LayerBlocks& group : groups_) group.keep_published();
  if (states_) states_->keep_planned();
  step_is_open_ = false;
}

std::vector<PlannedRow> Scheduler::plan() {
  take_out_complete();
  if (step_is_open_) undo_step();
  step_is_open_ = true;
  std::vector<PlannedRow> plan;
  const int64_t before = preemptions_;
  const int64_t decoding = std::count_if(running_.begin(), running_.end(),
                                         [](const Row* row) { return row->pending() == 1; });
  // At least one prompt token is planned, however many rows take a new token.
  int64_t prompt_tokens = std::max<int64_t>(config_.step_tokens - decoding, 1);
  plan_running(plan, prompt_tokens);
  if (preemptions_ == before && !holds_admissions(decoding)) admit(plan, prompt_tokens);
  return plan;
}

SchedulerFigures Scheduler::figures() const {
  SchedulerFigures figures{.running = static_cast<int64_t>(running_.size()),
                           .waiting = static_cast<int64_t>(waiting_.size()),
                           .cached_prompt_tokens = cached_prompt_tokens_,
                           .sought_prompt_tokens = sought_prompt_tokens_,
                           .preemptions = preemptions_};
  for (const LayerBlocks& group : groups_) {
    figures.num_blocks += group.num_blocks();
    figures.taken_blocks += group.num_blocks() - group.num_free();
  }
  return figures;
}

}  // namespace convoy::scheduler

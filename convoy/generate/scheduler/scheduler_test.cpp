// SPDX-License-Identifier: Apache-2.0
//
// The scheduler drives a simulated cache: each slot holds the hash of the tokens up to its own, so
// a wrong, stale or shared slot is detected when a row reads it. The states of rows, and states at
// ends of prefixes, are simulated in the same way.
#include "convoy/generate/scheduler/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"

namespace convoy::scheduler {
namespace {

using Tokens = std::vector<int32_t>;

uint64_t extended(uint64_t prefix, int32_t token) {
  const uint64_t words[] = {prefix, static_cast<uint64_t>(token)};
  return mix_seed(words);
}

// As in a model, the drawn token depends only on the tokens of its row.
int32_t drawn_after(uint64_t prefix) { return static_cast<int32_t>(prefix % 97); }

// Now: each step reads its tokens, and texts end only by their length. Late: the next step reads
// them, and some tokens end a text, which cannot be known before they are read.
enum class Reading { Now, Late };

bool ends_text(Reading reading, int32_t token) { return reading == Reading::Late && token < 9; }

class SimulatedEngine {
 public:
  explicit SimulatedEngine(SchedulerConfig config, Reading reading = Reading::Now)
      : config_(config),
        reading_(reading),
        scheduler_(config),
        states_(static_cast<size_t>(config.max_rows), 0),
        prefix_states_(static_cast<size_t>(config.prefix_states.value_or(0)), 0) {
    for (const LayerGroup& group : config.groups)
      slots_.emplace_back(static_cast<size_t>(group.num_blocks * config.block_tokens), 0);
  }

  void submit(int64_t number, Tokens prompt, int64_t new_tokens, int64_t priority = 0,
              int64_t adapter = 0) {
    const auto most = static_cast<int64_t>(prompt.size()) + new_tokens;
    limits_[number] = {.most = most, .adapter = adapter};
    scheduler_.add({.number = number,
                    .prompt = std::move(prompt),
                    .most_tokens = most,
                    .priority = priority,
                    .prefix_space = adapter});
  }

  void cancel(int64_t number) {
    scheduler_.remove(number);
    limits_.erase(number);
    unread_.erase(number);
  }

  // Returns the numbers of the requests that finished.
  std::vector<int64_t> step() {
    finished_.clear();
    const std::vector<PlannedRow> plan = plan_step();
    store(plan);
    for (const PlannedRow& row : plan) read(row);
    keep_states(plan);
    std::map<int64_t, int32_t> drawn;
    for (const PlannedRow& row : plan)
      if (row.draws) drawn[row.number] = drawn_after(prefixes(row.number)[row.end - 1]);
    scheduler_.finish_step();
    read_tokens();  // the tokens of the previous step
    for (const auto& [number, token] : drawn) {
      if (!limits_.contains(number)) continue;  // the text had ended before this token
      scheduler_.draw(number);
      unread_[number] = token;
    }
    if (reading_ == Reading::Now || drawn.empty()) read_tokens();
    check_holders();
    return finished_;
  }

  // Runs a step that fails with an exception after `stored` of its rows are stored.
  void fail_step(size_t stored) {
    std::vector<PlannedRow> plan = plan_step();
    plan.resize(std::min(stored, plan.size()));
    store(plan);
    check_holders();
    read_tokens();
  }

  Scheduler& scheduler() { return scheduler_; }
  const std::map<int64_t, Tokens>& texts() const { return texts_; }
  const std::vector<std::vector<PlannedRow>>& plans() const { return plans_; }
  std::vector<int64_t> unfinished() const {
    std::vector<int64_t> numbers;
    for (const auto& [number, limit] : limits_) numbers.push_back(number);
    return numbers;
  }

 private:
  struct Limit {
    int64_t most = 0;
    int64_t adapter = 0;
  };

  void read_tokens() {
    for (const auto& [number, token] : std::exchange(unread_, {})) {
      scheduler_.append(number, token);
      const Tokens& tokens = scheduler_.tokens(number);
      if (static_cast<int64_t>(tokens.size()) < limits_[number].most && !ends_text(reading_, token))
        continue;
      texts_[number] = tokens;
      finished_.push_back(number);
      cancel(number);
    }
  }

  std::vector<PlannedRow> plan_step() {
    plans_.push_back(scheduler_.plan());
    if (reading_ == Reading::Now) {
      EXPECT_EQ(plans_.back().empty(), scheduler_.empty());
    }
    EXPECT_LE(static_cast<int64_t>(plans_.back().size()), config_.max_rows);
    return plans_.back();
  }

  std::vector<uint64_t> prefixes(int64_t number) {
    std::vector<uint64_t> hashes;
    uint64_t prefix = static_cast<uint64_t>(limits_[number].adapter) + 1;
    for (const int32_t token : scheduler_.tokens(number))
      hashes.push_back(prefix =
                           extended(prefix, token == kUnreadToken ? unread_.at(number) : token));
    return hashes;
  }

  uint64_t& slot(int64_t number, size_t group, int64_t position) {
    const BlockTable& table = scheduler_.tables(number)[group];
    const BlockId block = table.at(static_cast<size_t>(position / config_.block_tokens));
    EXPECT_NE(block, kNoBlock);
    return slots_[group].at(
        static_cast<size_t>(block * config_.block_tokens + position % config_.block_tokens));
  }

  void store(const std::vector<PlannedRow>& plan) {
    int64_t prompt_tokens = 0;
    int64_t decoding = 0;
    std::set<const uint64_t*> written;
    std::set<int64_t> slots;
    for (const PlannedRow& row : plan) {
      const auto hashes = prefixes(row.number);
      EXPECT_EQ(row.draws, row.end == static_cast<int64_t>(hashes.size()));
      EXPECT_TRUE(slots.insert(row.slot).second) << "two rows have one state";
      uint64_t& state = states_.at(static_cast<size_t>(row.slot));
      if (row.takes_state) state = prefix_states_.at(static_cast<size_t>(*row.takes_state));
      if (row.begin > 0 && (config_.prefix_states || !config_.shares_prefixes)) {
        EXPECT_EQ(state, hashes[row.begin - 1]);
      }
      state = hashes[row.end - 1];
      (row.end - row.begin > 1 ? prompt_tokens : decoding) += row.end - row.begin;
      for (size_t group = 0; group < slots_.size(); ++group) {
        for (int64_t position = row.begin; position < row.end; ++position) {
          uint64_t& stored = slot(row.number, group, position);
          EXPECT_TRUE(written.emplace(&stored).second) << "two rows write one slot";
          stored = hashes[position];
        }
      }
    }
    EXPECT_LE(prompt_tokens, std::max<int64_t>(config_.step_tokens - decoding, 1) + decoding);
  }

  void keep_states(const std::vector<PlannedRow>& plan) {
    std::set<int64_t> written;
    for (const PlannedRow& row : plan) {
      if (!row.keeps_state) continue;
      EXPECT_TRUE(written.insert(*row.keeps_state).second) << "two states have one place";
      EXPECT_EQ(row.end % config_.block_tokens, 0);
      prefix_states_.at(static_cast<size_t>(*row.keeps_state)) =
          states_.at(static_cast<size_t>(row.slot));
    }
  }

  void read(const PlannedRow& row) {
    const auto hashes = prefixes(row.number);
    for (size_t group = 0; group < slots_.size(); ++group) {
      const int64_t window = config_.groups[group].window_tokens;
      const int64_t first = window == 0 ? 0 : std::max<int64_t>(row.begin - window + 1, 0);
      for (int64_t position = first; position < row.end; ++position)
        ASSERT_EQ(slot(row.number, group, position), hashes[position])
            << "request " << row.number << " group " << group << " position " << position;
    }
  }

  // Every counted hold of a block is in some table, and every block that no table holds is free.
  void check_holders() {
    for (size_t group = 0; group < slots_.size(); ++group) {
      std::map<BlockId, int64_t> held;
      for (const int64_t number : unfinished())
        for (const BlockId block : scheduler_.tables(number)[group])
          if (block != kNoBlock) ++held[block];
      const LayerBlocks& blocks = scheduler_.groups()[group];
      for (const auto& [block, holders] : held) ASSERT_EQ(blocks.num_holders(block), holders);
      ASSERT_EQ(blocks.num_free(), blocks.num_blocks() - static_cast<int64_t>(held.size()));
    }
  }

  SchedulerConfig config_;
  Reading reading_;
  Scheduler scheduler_;
  std::map<int64_t, int32_t> unread_;  // tokens not yet read from the device
  std::vector<int64_t> finished_;      // the requests that finished in this step
  std::vector<std::vector<uint64_t>> slots_;
  std::vector<uint64_t> states_;  // by the state slot of a row
  std::vector<uint64_t> prefix_states_;
  std::map<int64_t, Limit> limits_;
  std::map<int64_t, Tokens> texts_;
  std::vector<std::vector<PlannedRow>> plans_;
};

Tokens alone(const Tokens& prompt, int64_t new_tokens, int64_t adapter,
             Reading reading = Reading::Now) {
  Tokens tokens = prompt;
  uint64_t prefix = static_cast<uint64_t>(adapter) + 1;
  for (const int32_t token : prompt) prefix = extended(prefix, token);
  for (; new_tokens > 0; --new_tokens) {
    tokens.push_back(drawn_after(prefix));
    prefix = extended(prefix, tokens.back());
    if (ends_text(reading, tokens.back())) break;
  }
  return tokens;
}

Tokens counted(int64_t count, int32_t first = 1) {
  Tokens tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = first++;
  return tokens;
}

struct Traffic {
  uint64_t seed = 1;
  SchedulerConfig config = {};
  int64_t requests = 1500;
  int64_t longest = 40;  // tokens of prompt and answer together
  Reading reading = Reading::Now;
};

class RandomTraffic : public ::testing::TestWithParam<Traffic> {};

// Thousands of requests arrive, with common beginnings, cancellations, priorities and failing
// steps. Every text equals the text of the row alone.
TEST_P(RandomTraffic, EveryTextIsThatOfARowAlone) {
  const Traffic& traffic = GetParam();
  std::mt19937_64 random(traffic.seed);
  const auto below = [&](int64_t bound) { return static_cast<int64_t>(random() % bound); };
  SimulatedEngine engine(traffic.config, traffic.reading);
  std::map<int64_t, Tokens> wanted;
  int64_t number = 0;
  int64_t steps = 0;
  while (number < traffic.requests || !engine.scheduler().empty()) {
    for (int64_t arrivals = below(3); arrivals > 0 && number < traffic.requests; --arrivals) {
      const int64_t new_tokens = 1 + below(traffic.longest / 3);
      Tokens prompt = counted(1 + below(traffic.longest - new_tokens), 0);
      prompt.back() = static_cast<int32_t>(below(3));
      if (below(2) == 0) prompt.front() = static_cast<int32_t>(below(4));
      const int64_t adapter = below(8) == 0 ? 1 : 0;
      wanted[number] = alone(prompt, new_tokens, adapter, traffic.reading);
      engine.submit(number++, std::move(prompt), new_tokens, below(3), adapter);
    }
    if (below(10) == 0 && !engine.scheduler().empty()) {
      const auto unfinished = engine.unfinished();
      const int64_t gone = unfinished[below(static_cast<int64_t>(unfinished.size()))];
      engine.cancel(gone);
      wanted.erase(gone);
    }
    if (below(12) == 0) engine.fail_step(static_cast<size_t>(below(4)));
    if (below(50) == 0) engine.scheduler().hold_admissions(1 + below(4));
    engine.step();
    if (::testing::Test::HasFatalFailure()) return;
    ASSERT_LT(++steps, 500'000);
  }
  EXPECT_EQ(engine.texts(), wanted);
  const SchedulerFigures figures = engine.scheduler().figures();
  EXPECT_EQ(figures.taken_blocks, 0);
  const bool shares =
      traffic.config.shares_prefixes && traffic.config.prefix_states.value_or(1) > 0;
  EXPECT_EQ(figures.cached_prompt_tokens > 0, shares);
}

SchedulerConfig sizes(int64_t block, int64_t rows, int64_t step, std::vector<LayerGroup> groups,
                      bool shares = true) {
  return {.block_tokens = block,
          .max_rows = rows,
          .step_tokens = step,
          .shares_prefixes = shares,
          .groups = std::move(groups)};
}

SchedulerConfig with_states(int64_t prefix_states, SchedulerConfig config) {
  config.prefix_states = prefix_states;
  return config;
}

INSTANTIATE_TEST_SUITE_P(
    Budgets, RandomTraffic,
    ::testing::Values(
        Traffic{.seed = 1, .config = sizes(4, 8, 16, {{0, 200}})},
        Traffic{.seed = 2, .config = sizes(4, 8, 16, {{0, 10}})},  // barely one row: preemption
        Traffic{.seed = 3, .config = sizes(4, 33, 1, {{0, 40}})},  // one prompt token per step
        Traffic{.seed = 4, .config = sizes(1, 5, 7, {{0, 60}})},
        Traffic{.seed = 5, .config = sizes(4, 8, 8, {{0, 14}, {6, 12}})},
        Traffic{.seed = 6, .config = sizes(4, 8, 8, {{5, 12}})},
        Traffic{.seed = 7, .config = sizes(4, 8, 8, {{0, 30}, {1, 9}, {9, 30}})},
        Traffic{.seed = 8, .config = sizes(4, 8, 16, {{0, 14}, {6, 14}}, false)}));

INSTANTIATE_TEST_SUITE_P(
    TokensReadAStepLater, RandomTraffic,
    ::testing::Values(
        Traffic{.seed = 11, .config = sizes(4, 8, 16, {{0, 200}}), .reading = Reading::Late},
        Traffic{.seed = 12, .config = sizes(4, 8, 16, {{0, 10}}), .reading = Reading::Late},
        Traffic{.seed = 13, .config = sizes(4, 33, 1, {{0, 40}}), .reading = Reading::Late},
        Traffic{.seed = 14, .config = sizes(1, 5, 7, {{0, 60}}), .reading = Reading::Late},
        Traffic{.seed = 15,
                .config = sizes(4, 8, 8, {{0, 30}, {1, 9}, {9, 30}}),
                .reading = Reading::Late},
        Traffic{.seed = 16,
                .config = sizes(4, 8, 16, {{0, 14}, {6, 14}}, false),
                .reading = Reading::Late}));

INSTANTIATE_TEST_SUITE_P(
    RowsWithStates, RandomTraffic,
    ::testing::Values(
        Traffic{.seed = 21, .config = with_states(8, sizes(4, 8, 16, {{0, 200}}))},
        Traffic{.seed = 22, .config = with_states(8, sizes(4, 8, 16, {{0, 10}}))},
        Traffic{.seed = 23, .config = with_states(3, sizes(4, 33, 1, {{0, 40}}))},
        Traffic{.seed = 24, .config = with_states(1, sizes(1, 5, 7, {{0, 60}}))},
        Traffic{.seed = 25, .config = with_states(5, sizes(4, 8, 8, {{0, 30}, {9, 30}}))},
        Traffic{.seed = 26, .config = with_states(0, sizes(4, 8, 16, {{0, 200}}))},
        Traffic{.seed = 27, .config = with_states(8, sizes(4, 8, 16, {{0, 200}}, false))},
        Traffic{.seed = 28,
                .config = with_states(2, sizes(4, 8, 16, {{0, 10}})),
                .reading = Reading::Late},
        Traffic{.seed = 29,
                .config = with_states(4, sizes(2, 8, 16, {{0, 100}})),
                .reading = Reading::Late}));

TEST(Scheduler, ALastTokenNeedsNoStepAndHoldsNothing) {
  Scheduler scheduler(sizes(4, 1, 8, {{0, 4}}));
  scheduler.add({.number = 1, .prompt = counted(6), .most_tokens = 7});
  scheduler.add({.number = 2, .prompt = counted(6, 20), .most_tokens = 7});
  ASSERT_EQ(scheduler.plan().size(), 1U);
  scheduler.finish_step();
  scheduler.draw(1);
  const auto next = scheduler.plan();
  ASSERT_EQ(next.size(), 1U);
  EXPECT_EQ(next[0].number, 2) << "though the only place is that of a row with an unread token";
  EXPECT_EQ(scheduler.figures().taken_blocks, 2);
  scheduler.append(1, 5);
  EXPECT_EQ(scheduler.tokens(1).back(), 5);
  scheduler.remove(1);
  EXPECT_EQ(scheduler.figures().running, 1);
}

TEST(Scheduler, ATokenIsReadOnceAndDrawnByARowThatIsComputed) {
  Scheduler scheduler(sizes(4, 1, 8, {{0, 8}}));
  scheduler.add({.number = 1, .prompt = counted(6), .most_tokens = 9});
  EXPECT_THROW(scheduler.draw(1), StateError);
  EXPECT_THROW(scheduler.append(1, 3), StateError);
  scheduler.plan();
  scheduler.finish_step();
  scheduler.draw(1);
  EXPECT_EQ(scheduler.tokens(1).back(), kUnreadToken);
  EXPECT_THROW(scheduler.draw(1), StateError);
  scheduler.append(1, 3);
  EXPECT_THROW(scheduler.append(1, 3), StateError);
}

// Runs 16 requests of different lengths in 8 places. Returns the number of steps that read a
// prompt.
int64_t steps_with_prompts(int64_t fewest, int64_t& steps, int64_t& longest_wait) {
  SimulatedEngine engine({.max_rows = 8, .shares_prefixes = false, .groups = {{.num_blocks = 64}}});
  engine.scheduler().hold_admissions(fewest);
  for (int64_t number = 0; number < 16; ++number)
    engine.submit(number, counted(5, static_cast<int32_t>(number)), 20 + 2 * number);
  int64_t with_prompts = 0, waited = 0;
  for (steps = longest_wait = 0; !engine.scheduler().empty(); ++steps) {
    const SchedulerFigures before = engine.scheduler().figures();
    engine.step();
    const auto& plan = engine.plans().back();
    with_prompts += std::any_of(plan.begin(), plan.end(),
                                [](const PlannedRow& row) { return row.end - row.begin > 1; });
    const bool could = std::ssize(plan) < 8 && engine.scheduler().figures().waiting > 0;
    waited = could && before.waiting == engine.scheduler().figures().waiting ? waited + 1 : 0;
    longest_wait = std::max(longest_wait, waited);
  }
  EXPECT_EQ(engine.texts().size(), 16U);
  return with_prompts;
}

TEST(Scheduler, RequestsThatAreHeldBackBeginTogether) {
  int64_t steps = 0, wait = 0;
  EXPECT_EQ(steps_with_prompts(1, steps, wait), 9) << "the first eight, then each by itself";
  EXPECT_EQ(wait, 0);
  int64_t held_steps = 0, held_wait = 0;
  EXPECT_LE(steps_with_prompts(4, held_steps, held_wait), 6) << "the last three wait for nobody";
  EXPECT_GT(held_wait, 0);
  EXPECT_LE(held_wait, Scheduler::kMostHeldSteps);
  EXPECT_LE(held_steps, steps + 2 * Scheduler::kMostHeldSteps);
  // A request begins at once if no other request waits with it.
  EXPECT_EQ(steps_with_prompts(9, held_steps, held_wait), 9);
  EXPECT_EQ(held_wait, 0);
}

TEST(Scheduler, PlansAreTheSameForTheSameCalls) {
  const auto run = [] {
    SimulatedEngine engine(sizes(4, 6, 8, {{0, 12}, {6, 10}}));
    std::mt19937_64 random(9);
    for (int64_t number = 0; number < 60; ++number) {
      engine.submit(number, counted(1 + static_cast<int64_t>(random() % 20)),
                    1 + static_cast<int64_t>(random() % 10), static_cast<int64_t>(random() % 2));
      engine.step();
    }
    while (!engine.scheduler().empty()) engine.step();
    std::vector<std::array<int64_t, 4>> flat;
    for (const auto& plan : engine.plans())
      for (const PlannedRow& row : plan)
        flat.push_back({row.number, row.begin, row.end, row.draws});
    return flat;
  };
  EXPECT_EQ(run(), run());
}

TEST(Scheduler, SamplesOfOnePromptShareItsBlocks) {
  SimulatedEngine engine(sizes(4, 8, 64, {{0, 64}}));
  for (int64_t sample = 0; sample < 8; ++sample) engine.submit(sample, counted(18), 3);
  engine.step();
  EXPECT_EQ(engine.scheduler().figures().cached_prompt_tokens, 7 * 16);
  EXPECT_EQ(engine.scheduler().figures().taken_blocks, 4 + 8);  // 4 full, a last one for each
}

// The first sample computes the prompt, and the other samples begin with a copy of its state.
TEST(Scheduler, SamplesOfOnePromptShareItsState) {
  SimulatedEngine engine(with_states(1, sizes(4, 8, 64, {{0, 64}})));
  for (int64_t sample = 0; sample < 8; ++sample) engine.submit(sample, counted(18), 3);
  engine.step();
  ASSERT_EQ(engine.plans().back().size(), 1U);
  EXPECT_EQ(engine.plans().back()[0].end, 16) << "where the full blocks of the prompt end";
  engine.step();
  EXPECT_EQ(engine.plans().back().size(), 8U);
  EXPECT_EQ(engine.scheduler().figures().cached_prompt_tokens, 7 * 16);
  EXPECT_EQ(engine.scheduler().figures().taken_blocks, 4 + 8);
  while (!engine.scheduler().empty()) engine.step();
  EXPECT_EQ(engine.texts().at(7), alone(counted(18), 3, 0));
}

Tokens after_common_beginning(int32_t own) {
  Tokens prompt = counted(10);
  for (int32_t token = 0; token < 9; ++token) prompt.push_back(100 * own + token);
  return prompt;
}

// The requests come one after another. The second one finds the common blocks without a state and
// keeps a state at their end, from which the third one begins. No state is kept behind that place.
TEST(Scheduler, TheStateWhereRowsPartIsKeptByTheSecond) {
  SimulatedEngine engine(with_states(2, sizes(4, 8, 64, {{0, 64}})));
  std::vector<int64_t> cached;
  for (int32_t number = 0; number < 3; ++number) {
    engine.submit(number, after_common_beginning(number + 1), 3);
    engine.step();
    cached.push_back(*engine.scheduler().cached_tokens(number));
    while (!engine.scheduler().empty()) engine.step();
  }
  EXPECT_EQ(cached, (std::vector<int64_t>{0, 0, 8}));
  int64_t kept = 0;
  for (const std::vector<PlannedRow>& plan : engine.plans())
    for (const PlannedRow& row : plan) kept += row.keeps_state.has_value();
  EXPECT_EQ(kept, 1);
}

TEST(Scheduler, TheStateOfAFailedStepIsKeptForNobody) {
  SimulatedEngine engine(with_states(2, sizes(4, 8, 64, {{0, 64}})));
  for (int64_t sample = 0; sample < 3; ++sample) engine.submit(sample, counted(18), 3);
  engine.fail_step(1);
  ASSERT_TRUE(engine.plans().back()[0].keeps_state);
  engine.step();
  EXPECT_EQ(engine.scheduler().figures().cached_prompt_tokens, 0);
  while (!engine.scheduler().empty()) engine.step();
  for (const int64_t number : {0, 1, 2})
    EXPECT_EQ(engine.texts().at(number), alone(counted(18), 3, 0)) << number;
}

TEST(Scheduler, ARequestWhoseBeginningIsCancelledComputesIt) {
  SimulatedEngine engine(with_states(2, sizes(4, 8, 8, {{0, 64}})));
  engine.submit(1, counted(26), 3);
  engine.submit(2, counted(26), 3);
  engine.step();  // a piece of the first prompt
  engine.cancel(1);
  while (!engine.scheduler().empty()) engine.step();
  EXPECT_EQ(engine.texts().at(2), alone(counted(26), 3, 0));
}

TEST(PrefixStates, TheOneNotUsedForLongestGivesItsPlace) {
  PrefixStates states(2);
  const PrefixKey keys[] = {{1, 1}, {2, 2}, {3, 3}, {4, 4}};
  ASSERT_TRUE(states.plan(keys[0]));
  ASSERT_TRUE(states.plan(keys[1]));
  EXPECT_FALSE(states.plan(keys[1])) << "it is planned already";
  EXPECT_FALSE(states.plan(keys[2])) << "both places are written in this step";
  EXPECT_FALSE(states.has(keys[0]));
  states.keep_planned();
  EXPECT_TRUE(states.has(keys[0]));
  const int64_t place = states.use(keys[0]);
  EXPECT_NE(states.plan(keys[2]), place);
  EXPECT_FALSE(states.has(keys[1]));
  states.drop_planned();
  EXPECT_FALSE(states.has(keys[2]));
  EXPECT_TRUE(states.has(keys[0]));
  EXPECT_TRUE(states.plan(keys[3]));
  EXPECT_THROW(states.use(keys[3]), StateError);
}

TEST(Scheduler, BlocksOfAFailedStepAreSharedWithNobody) {
  SimulatedEngine engine(sizes(4, 8, 64, {{0, 64}, {9, 64}}));
  for (int64_t sample = 0; sample < 3; ++sample) engine.submit(sample, counted(18), 3);
  engine.fail_step(0);
  engine.cancel(0);  // other rows share its blocks
  engine.submit(0, counted(18), 3);
  engine.cancel(2);
  engine.submit(3, counted(18), 3);
  engine.fail_step(1);
  while (!engine.scheduler().empty()) engine.step();
  for (const int64_t number : {0, 1, 3})
    EXPECT_EQ(engine.texts().at(number), alone(counted(18), 3, 0)) << number;
  EXPECT_EQ(engine.scheduler().figures().taken_blocks, 0);
}

TEST(Scheduler, AFailedStepLeavesWhatWasComputedBefore) {
  SimulatedEngine engine(sizes(4, 8, 64, {{0, 64}}));
  engine.submit(1, counted(10), 7);
  while (!engine.scheduler().empty()) engine.step();
  engine.submit(2, counted(14), 2);
  engine.fail_step(0);
  engine.step();
  // Two full blocks of the first request, found in the step that failed and again in the next step.
  EXPECT_EQ(engine.scheduler().figures().cached_prompt_tokens, 2 * 8);
}

TEST(Scheduler, WhatAFinishedRowLeftIsUsedAgain) {
  SimulatedEngine engine(sizes(4, 8, 64, {{0, 64}}));
  engine.submit(1, counted(10), 7);
  while (!engine.scheduler().empty()) engine.step();
  Tokens next_turn = engine.texts().at(1);  // 17 tokens, 16 of them stored
  next_turn.push_back(5);
  engine.submit(2, next_turn, 2);
  engine.step();
  EXPECT_EQ(engine.scheduler().figures().cached_prompt_tokens, 16);
  EXPECT_EQ(engine.scheduler().figures().sought_prompt_tokens, 10 + 18);
  EXPECT_EQ(engine.scheduler().cached_tokens(2), 16);
}

TEST(Scheduler, AWindowKeepsOnlyItsBlocks) {
  SimulatedEngine engine(sizes(4, 1, 8, {{0, 30}, {8, 5}}));
  engine.submit(1, counted(40), 60);
  int64_t most = 0;
  while (!engine.scheduler().empty()) {
    engine.step();
    const LayerBlocks& windowed = engine.scheduler().groups()[1];
    most = std::max(most, windowed.num_blocks() - windowed.num_free());
  }
  EXPECT_LE(most, 5);
  EXPECT_EQ(engine.scheduler().figures().preemptions, 0);
}

// Urgent requests keep arriving faster than they are answered. The other requests are answered all
// the same.
TEST(Scheduler, NothingStarvesUnderHigherPriorities) {
  SimulatedEngine engine(sizes(4, 2, 8, {{0, 12}}));
  engine.submit(-1, counted(20, 50), 20, 0);
  engine.submit(-2, counted(5, 70), 5, -1'000'000);
  int64_t number = 0;
  int64_t steps = 0;
  while (engine.texts().count(-1) == 0 || engine.texts().count(-2) == 0) {
    for (int64_t arrivals = 0; arrivals < 2; ++arrivals) {
      ++number;
      engine.submit(number, counted(8, static_cast<int32_t>(number % 50)), 8, 5);
    }
    engine.step();
    ASSERT_LT(++steps, 2000);
  }
}

TEST(Scheduler, TheUrgentGoFirst) {
  SimulatedEngine engine(sizes(4, 1, 64, {{0, 20}}));
  engine.submit(1, counted(4), 2, 0);
  engine.submit(2, counted(4), 2, 7);
  engine.submit(3, counted(4), 2, 7);
  std::vector<int64_t> order;
  while (!engine.scheduler().empty())
    for (const int64_t number : engine.step()) order.push_back(number);
  EXPECT_EQ(order, (std::vector<int64_t>{2, 3, 1}));
}

TEST(Scheduler, RefusesWhatCanNotBe) {
  EXPECT_THROW(Scheduler(sizes(0, 1, 1, {{0, 1}})), ConfigError);
  EXPECT_THROW(Scheduler(sizes(1, 0, 1, {{0, 1}})), ConfigError);
  EXPECT_THROW(Scheduler(sizes(1, 1, 0, {{0, 1}})), ConfigError);
  EXPECT_THROW(Scheduler(sizes(1, 1, 1, {{0, 0}})), ConfigError);
  Scheduler scheduler(sizes(4, 2, 8, {{0, 3}}));
  EXPECT_TRUE(scheduler.fits(13));  // the last token is not stored
  EXPECT_FALSE(scheduler.fits(14));
  EXPECT_THROW(scheduler.add({.number = 1, .prompt = counted(10), .most_tokens = 14}), StateError);
  scheduler.add({.number = 1, .prompt = {1}, .most_tokens = 2});
  EXPECT_THROW(scheduler.add({.number = 1, .prompt = {1}, .most_tokens = 2}), StateError);
}

}  // namespace
}  // namespace convoy::scheduler

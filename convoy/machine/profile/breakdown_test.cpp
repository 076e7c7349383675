// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/breakdown.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/machine/profile/report.h"

namespace convoy::profile {
namespace {

constexpr int64_t kMs = 1'000'000;

Span ms(int64_t begin, int64_t end) { return {.begin_ns = begin * kMs, .end_ns = end * kMs}; }

// Returns the trace of a rank with two steps of 100 ms: 5 ms data, 30 ms forward, 45 ms backward,
// 10 ms reduce, 8 ms optimize and 2 ms outside all phases. The rank enters the collective `late_ms`
// after the 60th millisecond.
RankTrace trace_of(int rank, int64_t late_ms) {
  RankTrace trace{.rank = rank, .world_size = 2, .host = "a", .num_notes = 10, .note_ns = 1000};
  for (int64_t step = 0; step < 2; ++step) {
    const int64_t at = step * 100;
    trace.steps.push_back({"step " + std::to_string(step + 10), ms(at, at + 100)});
    trace.phases.push_back({"data", ms(at, at + 5)});
    trace.phases.push_back({"forward", ms(at + 5, at + 35)});
    trace.phases.push_back({"backward", ms(at + 35, at + 80)});
    trace.phases.push_back({"reduce", ms(at + 80, at + 90)});
    trace.phases.push_back({"optimize", ms(at + 90, at + 98)});
    trace.collectives.push_back({.name = "world all_reduce",
                                 .group = "world",
                                 .sequence = step,
                                 .bytes = 1 << 20,
                                 .flight = ms(at + 60 + late_ms, at + 88),
                                 .wait = ms(at + std::max<int64_t>(80, 60 + late_ms), at + 88)});
  }
  return trace;
}

TEST(Breakdown, DealsEveryMomentToOneKind) {
  const Breakdown found = break_down({trace_of(0, 0)});
  ASSERT_EQ(found.ranks.size(), 1U);
  const RankBreakdown& rank = found.ranks[0];
  EXPECT_EQ(found.first_step, 10);
  EXPECT_EQ(found.last_step, 11);
  EXPECT_DOUBLE_EQ(rank.step_ms, 100);
  EXPECT_DOUBLE_EQ(rank.exposed_ms, 8);
  EXPECT_DOUBLE_EQ(rank.hidden_ms, 20);  // the part before the wait: 60 ms to 80 ms
  EXPECT_DOUBLE_EQ(rank.data_ms, 5);
  EXPECT_DOUBLE_EQ(rank.compute_ms, 30 + 45 + 2 + 8);
  EXPECT_NEAR(rank.host_ms, 2, 1e-9);
  EXPECT_NEAR(rank.step_ms,
              rank.compute_ms + rank.exposed_ms + rank.data_ms + rank.evaluation_ms + rank.host_ms,
              1e-9);
  EXPECT_DOUBLE_EQ(rank.tracing_ms, 0.005);
}

// Rank 1 enters at 84 ms. Rank 0 waits from 80 ms to 88 ms: 4 ms for rank 1 and 4 ms for the bytes.
TEST(Breakdown, WaitingForALaterRankIsToldFromWaitingForBytes) {
  const Breakdown found = break_down({trace_of(0, 0), trace_of(1, 24)});
  EXPECT_DOUBLE_EQ(found.ranks[0].waiting_ms, 4);
  EXPECT_DOUBLE_EQ(found.ranks[1].waiting_ms, 0);
  EXPECT_DOUBLE_EQ(found.ranks[1].awaited_ms, 4);
  EXPECT_DOUBLE_EQ(found.ranks[0].awaited_ms, 0);
  ASSERT_EQ(found.collectives.size(), 1U);
  EXPECT_DOUBLE_EQ(found.collectives[0].per_step, 1);
  EXPECT_DOUBLE_EQ(found.collectives[0].bytes_per_step, 1 << 20);
  EXPECT_NEAR(found.collectives[0].bytes_per_second, (1 << 20) / 0.004, 1);
  EXPECT_DOUBLE_EQ(found.mean().waiting_ms, 2);
}

TEST(Breakdown, StepsThatOneRankLacksAreLeftOut) {
  RankTrace shorter = trace_of(1, 0);
  shorter.steps.pop_back();
  const Breakdown found = break_down({trace_of(0, 0), shorter});
  EXPECT_EQ(found.first_step, 10);
  EXPECT_EQ(found.last_step, 10);
  EXPECT_DOUBLE_EQ(found.ranks[0].step_ms, 100);
  shorter.steps.clear();
  EXPECT_THROW(break_down({trace_of(0, 0), shorter}), ConfigError);
}

TEST(Breakdown, ARankThatHoldsTheOthersUpIsNamed) {
  std::vector<RankTrace> traces = {trace_of(0, 0), trace_of(1, 0), trace_of(2, 28)};
  for (RankTrace& trace : traces) trace.world_size = 3;
  const std::vector<std::string> found = findings(break_down(traces));
  EXPECT_TRUE(std::any_of(found.begin(), found.end(), [](const std::string& sentence) {
    return sentence.starts_with("rank 2 on a comes last: the others wait 8.00 ms");
  }));
}

TEST(Breakdown, TheLostShareOfManyRanksIsDealtOut) {
  ProfiledRun single{
      .name = "one", .breakdown = break_down({trace_of(0, 0)}), .units_per_second = 1000};
  ProfiledRun many{.name = "two",
                   .breakdown = break_down({trace_of(0, 0), trace_of(1, 0)}),
                   .units_per_second = 1500};
  single.breakdown.world_size = 1;
  many.breakdown.ranks[0].step_ms = many.breakdown.ranks[1].step_ms = 400.0 / 3;
  many.breakdown.ranks[0].exposed_ms += 100.0 / 3;
  many.breakdown.ranks[1].exposed_ms += 100.0 / 3;
  const std::string text = comparison_text(single, many);
  EXPECT_NE(text.find("2 ranks could do 2 times the work of one: they do 75 % of that"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("bytes of collectives         100 %"), std::string::npos) << text;
  EXPECT_DOUBLE_EQ(comparison_json(single, many)["efficiency"].get<double>(), 0.75);
  // On CPUs, one rank alone has as many threads as two ranks together.
  single.breakdown.num_threads = 4;
  many.breakdown.num_threads = 2;
  EXPECT_DOUBLE_EQ(comparison_json(single, many)["efficiency"].get<double>(), 1.5);
}

TEST(RankTrace, ClocksOfOtherHostsAreAlignedByWhatIsShared) {
  RankTrace near = trace_of(0, 0), far = trace_of(1, 0);
  far.host = "b";
  near.since_1970_ns = 1000 * kMs;
  far.since_1970_ns = 1000 * kMs;
  // Host b's clocks are ahead of host a's: the monotonic clock by 4 s, the clock of day by 7 s.
  for (NamedSpan& step : far.steps)
    step.span = {step.span.begin_ns + 4000 * kMs, step.span.end_ns + 4000 * kMs};
  for (TracedCollective& collective : far.collectives) {
    collective.flight = {collective.flight.begin_ns + 4000 * kMs,
                         collective.flight.end_ns + 4000 * kMs};
    collective.wait = {collective.wait.begin_ns + 4000 * kMs, collective.wait.end_ns + 4000 * kMs};
  }
  far.since_1970_ns += 3000 * kMs;
  std::vector<RankTrace> traces = {near, far};
  align_clocks(traces);
  EXPECT_EQ(traces[0].steps[0].span, ms(1000, 1100));
  EXPECT_EQ(traces[1].steps[0].span, ms(1000, 1100));
  EXPECT_EQ(traces[1].collectives[1].flight, ms(1160, 1188));
}

// The trace of one rank does not tell when the other ranks entered.
TEST(Breakdown, WithoutAllTracesTheCausesOfWaitsAreNotTold) {
  const ProfiledRun run{.name = "half", .breakdown = break_down({trace_of(0, 0)})};
  const std::string text = report_text(run);
  EXPECT_NE(text.find("of 2 ranks 1 traces are here"), std::string::npos) << text;
  EXPECT_NE(text.find("waiting for collectives"), std::string::npos) << text;
  EXPECT_EQ(text.find("for a later rank"), std::string::npos) << text;
}

TEST(Breakdown, UnlikeRunsAreNotCompared) {
  const ProfiledRun tokens{.name = "words", .breakdown = break_down({trace_of(0, 0)})};
  ProfiledRun samples = tokens;
  samples.unit = "samples";
  EXPECT_THROW(comparison_text(tokens, samples), ConfigError);
  EXPECT_NE(comparison_text(tokens, tokens).find("second"), std::string::npos);
}

TEST(RankTrace, WhatIsNoTraceIsRefused) {
  EXPECT_THROW(parse_rank_trace("{", "rank-0.json"), DataError);
  EXPECT_THROW(parse_rank_trace("{}", "rank-0.json"), DataError);
  EXPECT_THROW(parse_rank_trace(std::string(10'000, '['), "rank-0.json"), DataError);
}

}  // namespace
}  // namespace convoy::profile

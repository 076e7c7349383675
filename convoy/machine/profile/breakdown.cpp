// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/breakdown.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "convoy/core/base/error.h"

namespace convoy::profile {
namespace {

double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

enum class Kind { Compute, Data, Evaluation };

Kind kind_of(const std::string& phase) {
  if (phase == "data") return Kind::Data;
  if (phase == "evaluate" || phase == "save" || phase == "export") return Kind::Evaluation;
  return Kind::Compute;
}

// Returns 12 for "step 12".
int64_t number_of(const NamedSpan& step) {
  int64_t number = 0;
  const size_t space = step.name.rfind(' ');
  const char* const end = step.name.data() + step.name.size();
  if (space != std::string::npos) std::from_chars(step.name.data() + space + 1, end, number);
  return number;
}

// The time at which the last rank entered a collective, and the number of that rank.
struct LastEntry {
  int64_t time_ns = 0;
  int rank = -1;
  int num_ranks = 0;
};
using Key = std::pair<std::string, int64_t>;
using LastEntries = std::map<Key, LastEntry>;

Key key_of(const TracedCollective& collective) { return {collective.group, collective.sequence}; }

LastEntries last_entries(const std::vector<RankTrace>& traces) {
  LastEntries entries;
  for (const RankTrace& trace : traces)
    for (const TracedCollective& collective : trace.collectives) {
      LastEntry& entry = entries[key_of(collective)];
      ++entry.num_ranks;
      if (entry.rank >= 0 && collective.flight.begin_ns <= entry.time_ns) continue;
      entry.time_ns = collective.flight.begin_ns;
      entry.rank = trace.rank;
    }
  return entries;
}

// The part of `wait` before the last rank came.
Span waited_for_others(const TracedCollective& collective, const LastEntry& last) {
  return {.begin_ns = collective.wait.begin_ns,
          .end_ns = std::clamp(last.time_ns, collective.wait.begin_ns, collective.wait.end_ns)};
}

struct Waits {
  Spans flights;  // collectives under way
  Spans exposed;  // the rank waits for a collective
  Spans waiting;  // the rank waits for another rank that has not entered it
};

Waits waits_of(const RankTrace& trace, const Spans& steps, const LastEntries& entries) {
  Waits waits;
  for (const TracedCollective& collective : trace.collectives) {
    waits.flights.push_back(collective.flight);
    waits.exposed.push_back(collective.wait);
    waits.waiting.push_back(waited_for_others(collective, entries.at(key_of(collective))));
  }
  for (Spans* spans : {&waits.flights, &waits.exposed, &waits.waiting})
    *spans = intersection(union_of(std::move(*spans)), steps);
  return waits;
}

RankBreakdown break_down_rank(const RankTrace& trace, const Spans& steps, int64_t num_steps,
                              const LastEntries& entries) {
  const Waits waits = waits_of(trace, steps, entries);
  std::map<std::string, Spans> by_phase;
  std::vector<std::string> names;
  for (const NamedSpan& phase : trace.phases) {
    if (!by_phase.contains(phase.name)) names.push_back(phase.name);
    by_phase[phase.name].push_back(phase.span);
  }
  const auto per_step = [num_steps](int64_t ns) {
    return milliseconds(ns) / static_cast<double>(num_steps);
  };
  RankBreakdown found{.rank = trace.rank, .host = trace.host, .num_steps = num_steps};
  found.step_ms = per_step(length_ns(steps));
  found.exposed_ms = per_step(length_ns(waits.exposed));
  found.waiting_ms = per_step(length_ns(waits.waiting));
  found.hidden_ms = per_step(length_ns(difference(waits.flights, waits.exposed)));
  found.host_ms = found.step_ms - found.exposed_ms;
  for (const std::string& name : names) {
    const Spans own = intersection(union_of(std::move(by_phase[name])), steps);
    const double ms = per_step(length_ns(difference(own, waits.exposed)));
    found.host_ms -= ms;
    const Kind kind = kind_of(name);
    if (kind == Kind::Data) found.data_ms += ms;
    if (kind == Kind::Evaluation) found.evaluation_ms += ms;
    if (kind != Kind::Compute) continue;
    found.compute_ms += ms;
    found.compute_phases_ms.emplace_back(name, ms);
  }
  found.tracing_ms = trace.note_ns * static_cast<double>(trace.num_notes) / 1e6 /
                     static_cast<double>(trace.steps.size());
  return found;
}

// The time that each rank cost the others by coming last.
void count_awaited(const std::vector<RankTrace>& traces, const std::map<int, Spans>& steps,
                   const LastEntries& entries, Breakdown& breakdown) {
  if (traces.size() < 2) return;
  std::map<int, double> awaited_ms;
  for (const RankTrace& trace : traces)
    for (const TracedCollective& collective : trace.collectives) {
      const LastEntry& last = entries.at(key_of(collective));
      if (last.rank == trace.rank) continue;
      const Spans waited =
          intersection(union_of({waited_for_others(collective, last)}), steps.at(trace.rank));
      awaited_ms[last.rank] += milliseconds(length_ns(waited));
    }
  for (RankBreakdown& rank : breakdown.ranks)
    rank.awaited_ms = awaited_ms[rank.rank] / static_cast<double>(rank.num_steps) /
                      static_cast<double>(traces.size() - 1);
}

struct CollectiveSums {
  int64_t count = 0;
  double bytes = 0;
  double moved_bytes = 0;  // moved by collectives whose last entry is known
  double moving_seconds = 0;
  double flight_ms = 0;
  double exposed_ms = 0;
};

void sum_collectives(const RankTrace& trace, const Spans& steps, const LastEntries& entries,
                     size_t num_traces, std::map<std::string, CollectiveSums>& sums) {
  std::map<std::string, std::pair<Spans, Spans>> times;
  for (const TracedCollective& collective : trace.collectives) {
    if (intersection({collective.flight}, steps).empty()) continue;
    CollectiveSums& sum = sums[collective.name];
    ++sum.count;
    sum.bytes += static_cast<double>(collective.bytes);
    const LastEntry& last = entries.at(key_of(collective));
    if (static_cast<size_t>(last.num_ranks) == num_traces && num_traces > 1 &&
        collective.flight.end_ns > last.time_ns) {
      sum.moved_bytes += static_cast<double>(collective.bytes);
      sum.moving_seconds += static_cast<double>(collective.flight.end_ns - last.time_ns) / 1e9;
    }
    times[collective.name].first.push_back(collective.flight);
    // a wait may end later than the flight
    times[collective.name].first.push_back(collective.wait);
    times[collective.name].second.push_back(collective.wait);
  }
  for (auto& [name, spans] : times) {
    sums[name].flight_ms +=
        milliseconds(length_ns(intersection(union_of(std::move(spans.first)), steps)));
    sums[name].exposed_ms +=
        milliseconds(length_ns(intersection(union_of(std::move(spans.second)), steps)));
  }
}

std::vector<CollectiveTotals> totals_of(const std::map<std::string, CollectiveSums>& sums,
                                        double rank_steps) {
  std::vector<CollectiveTotals> totals;
  for (const auto& [name, sum] : sums)
    totals.push_back(
        {.name = name,
         .per_step = static_cast<double>(sum.count) / rank_steps,
         .bytes_per_step = sum.bytes / rank_steps,
         .flight_ms = sum.flight_ms / rank_steps,
         .exposed_ms = sum.exposed_ms / rank_steps,
         .bytes_per_second = sum.moving_seconds > 0 ? sum.moved_bytes / sum.moving_seconds : 0});
  std::stable_sort(totals.begin(), totals.end(), [](const auto& left, const auto& right) {
    return left.exposed_ms > right.exposed_ms;
  });
  return totals;
}

// The numbers of the steps that every rank has traced.
std::set<int64_t> shared_steps(const std::vector<RankTrace>& traces) {
  std::map<int64_t, size_t> counts;
  for (const RankTrace& trace : traces)
    for (const NamedSpan& step : trace.steps) ++counts[number_of(step)];
  std::set<int64_t> shared;
  for (const auto& [number, count] : counts)
    if (count == traces.size()) shared.insert(number);
  return shared;
}

void measure_steps(const std::vector<RankTrace>& traces, Breakdown& breakdown) {
  std::map<int64_t, double> lengths_ms;
  for (const RankTrace& trace : traces)
    for (const NamedSpan& step : trace.steps)
      lengths_ms[number_of(step)] +=
          milliseconds(step.span.length_ns()) / static_cast<double>(traces.size());
  std::vector<double> sorted;
  for (const auto& [number, ms] : lengths_ms)
    if (number >= breakdown.first_step && number <= breakdown.last_step) sorted.push_back(ms);
  std::sort(sorted.begin(), sorted.end());
  breakdown.shortest_ms = sorted.front();
  breakdown.median_ms = sorted[sorted.size() / 2];
  breakdown.longest_ms = sorted.back();
}

}  // namespace

Breakdown break_down(const std::vector<RankTrace>& traces) {
  const std::set<int64_t> numbers = shared_steps(traces);
  if (numbers.empty())
    throw ConfigError(
        fmt::format(
            "the {} traces have no step in common: they belong to several runs, or to a run "
            "that was too short",
            traces.size()),
        {.hint = "profile the run again: convoy profile CONFIG"});
  const auto num_steps = static_cast<int64_t>(numbers.size());
  Breakdown breakdown{.world_size = traces.front().world_size,
                      .num_threads = traces.front().num_threads,
                      .first_step = *numbers.begin(),
                      .last_step = *numbers.rbegin(),
                      .has_device_clock = traces.front().has_device_clock};
  const LastEntries entries = last_entries(traces);
  std::map<int, Spans> steps;
  std::map<std::string, CollectiveSums> sums;
  for (const RankTrace& trace : traces) {
    Spans own;
    for (const NamedSpan& step : trace.steps)
      if (numbers.contains(number_of(step))) own.push_back(step.span);
    own = union_of(std::move(own));
    breakdown.ranks.push_back(break_down_rank(trace, own, num_steps, entries));
    breakdown.is_full = breakdown.is_full || trace.is_full;
    sum_collectives(trace, own, entries, traces.size(), sums);
    steps.emplace(trace.rank, std::move(own));
  }
  measure_steps(traces, breakdown);
  count_awaited(traces, steps, entries, breakdown);
  breakdown.collectives =
      totals_of(sums, static_cast<double>(traces.size()) * static_cast<double>(num_steps));
  return breakdown;
}

RankBreakdown Breakdown::mean() const {
  RankBreakdown mean{.rank = -1, .num_steps = ranks.front().num_steps};
  const auto share = 1.0 / static_cast<double>(ranks.size());
  for (const RankBreakdown& rank : ranks) {
    for (double RankBreakdown::*field :
         {&RankBreakdown::step_ms, &RankBreakdown::compute_ms, &RankBreakdown::exposed_ms,
          &RankBreakdown::data_ms, &RankBreakdown::evaluation_ms, &RankBreakdown::host_ms,
          &RankBreakdown::waiting_ms, &RankBreakdown::hidden_ms, &RankBreakdown::awaited_ms,
          &RankBreakdown::tracing_ms})
      mean.*field += share * (rank.*field);
    for (const auto& [name, ms] : rank.compute_phases_ms) {
      auto found = std::find_if(mean.compute_phases_ms.begin(), mean.compute_phases_ms.end(),
                                [&name = name](const auto& phase) { return phase.first == name; });
      if (found == mean.compute_phases_ms.end())
        found = mean.compute_phases_ms.insert(found, {name, 0.0});
      found->second += share * ms;
    }
  }
  return mean;
}

}  // namespace convoy::profile

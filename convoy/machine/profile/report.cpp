// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/profile/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"

namespace convoy::profile {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostRankColumns = 4;
constexpr double kShownMs = 0.0005;  // times that print as 0.000 ms are left out

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string ms_text(double ms) { return fmt::format("{:.{}f} ms", ms, ms < 10 ? 2 : 1); }

// A line of the table, and the function that gives its figure.
struct Line {
  std::string label;
  std::function<double(const RankBreakdown&)> ms;
};

double phase_ms(const RankBreakdown& rank, const std::string& name) {
  for (const auto& [phase, ms] : rank.compute_phases_ms)
    if (phase == name) return ms;
  return 0;
}

std::vector<Line> lines_of(const RankBreakdown& mean, bool knows_later_ranks) {
  using R = RankBreakdown;
  std::vector<Line> lines = {{"a step", [](const R& r) { return r.step_ms; }},
                             {"  computing", [](const R& r) { return r.compute_ms; }}};
  for (const auto& [name, ms] : mean.compute_phases_ms)
    if (ms > kShownMs)
      lines.push_back({"    " + name, [name = name](const R& r) { return phase_ms(r, name); }});
  lines.push_back({"  waiting for collectives", [](const R& r) { return r.exposed_ms; }});
  if (mean.exposed_ms > kShownMs && knows_later_ranks) {
    lines.push_back({"    for a later rank", [](const R& r) { return r.waiting_ms; }});
    lines.push_back(
        {"    for their bytes", [](const R& r) { return r.exposed_ms - r.waiting_ms; }});
  }
  lines.push_back({"  waiting for data", [](const R& r) { return r.data_ms; }});
  if (mean.evaluation_ms > kShownMs)
    lines.push_back({"  evaluating and saving", [](const R& r) { return r.evaluation_ms; }});
  lines.push_back({"  the host's own work", [](const R& r) { return r.host_ms; }});
  return lines;
}

// Columns: the mean, then each rank. With many ranks, only the rank with the shortest computing and
// the rank with the longest have a column.
struct Column {
  std::string heading;
  RankBreakdown rank;
};

std::vector<Column> columns_of(const Breakdown& breakdown) {
  const RankBreakdown mean = breakdown.mean();
  if (breakdown.ranks.size() == 1)
    return {{fmt::format("rank {}", breakdown.ranks[0].rank), breakdown.ranks[0]}};
  std::vector<Column> columns = {{"mean", mean}};
  if (breakdown.ranks.size() <= kMostRankColumns) {
    for (const RankBreakdown& rank : breakdown.ranks)
      columns.push_back({fmt::format("rank {}", rank.rank), rank});
    return columns;
  }
  const auto [least, most] = std::minmax_element(
      breakdown.ranks.begin(), breakdown.ranks.end(),
      [](const auto& left, const auto& right) { return left.compute_ms < right.compute_ms; });
  columns.push_back({fmt::format("rank {}, computes least", least->rank), *least});
  columns.push_back({fmt::format("rank {}, computes most", most->rank), *most});
  return columns;
}

// Only the first column has shares, so that the table of two ranks fits into 80 columns.
std::string table_text(const std::vector<Column>& columns, bool knows_later_ranks) {
  constexpr int kLabel = 28;
  std::string text = fmt::format("{:<{}}", "", kLabel);
  const auto width = [](const Column& column) {
    return std::max<size_t>(13, column.heading.size() + 2);
  };
  for (const Column& column : columns)
    text += fmt::format("{:>{}}{}", column.heading, width(column),
                        &column == &columns.front() ? "      " : "");
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
  for (const Line& line : lines_of(columns.front().rank, knows_later_ranks)) {
    text += fmt::format("{:<{}}", line.label, kLabel);
    for (const Column& column : columns) {
      const double ms = line.ms(column.rank);
      text += fmt::format("{:>{}}", ms_text(ms), width(column));
      if (&column == &columns.front())
        text += fmt::format("{:>4.0f} %", share(ms, column.rank.step_ms));
    }
    text += '\n';
  }
  return text;
}

std::string rate_text(double bytes_per_second) {
  if (bytes_per_second < 1e5) return "-";  // figures and barriers: too few bytes to count
  if (bytes_per_second < 1e8) return fmt::format("{:.1f} MB/s", bytes_per_second / 1e6);
  return fmt::format("{:.2f} GB/s", bytes_per_second / 1e9);
}

std::string collectives_text(const std::vector<CollectiveTotals>& collectives) {
  std::string text = fmt::format("\n{:<28}{:>7}{:>7}{:>12}{:>12}{:>12}\n", "collectives of a step",
                                 "times", "MiB", "under way", "waited for", "bytes at");
  for (const CollectiveTotals& totals : collectives)
    text +=
        fmt::format("{:<28}{:>7.1f}{:>7.2f}{:>12}{:>12}{:>12}\n", "  " + totals.name,
                    totals.per_step, totals.bytes_per_step / (1 << 20), ms_text(totals.flight_ms),
                    ms_text(totals.exposed_ms), rate_text(totals.bytes_per_second));
  return text;
}

std::string missing_text(const Breakdown& breakdown) {
  if (breakdown.has_all_ranks()) return "";
  return fmt::format(
      "of {} ranks {} traces are here: other hosts have theirs in the traces folder of their run "
      "folder\n",
      breakdown.world_size, breakdown.ranks.size());
}

std::string heading_of(const ProfiledRun& run) {
  const Breakdown& breakdown = run.breakdown;
  std::string text = breakdown.first_step == breakdown.last_step
                         ? fmt::format("{}: step {} of {}\n", run.name, breakdown.first_step,
                                       counted(breakdown.world_size, "rank"))
                         : fmt::format("{}: steps {} to {} of {}\n", run.name, breakdown.first_step,
                                       breakdown.last_step, counted(breakdown.world_size, "rank"));
  text += missing_text(breakdown);
  if (breakdown.is_full) text += "a trace was full: its later steps are left out\n";
  if (breakdown.has_device_clock) text += "times are the GPU's; in a wait it had no other work\n";
  return text;
}

// Steps that differ much were disturbed or have different kinds of work: their mean is not
// representative.
std::string spread_text(const Breakdown& breakdown) {
  if (breakdown.first_step == breakdown.last_step) return "";
  const double mean_ms = breakdown.mean().step_ms;
  constexpr double kMuch = 1.15;
  return fmt::format("steps took {} to {}, in the middle {}{}\n", ms_text(breakdown.shortest_ms),
                     ms_text(breakdown.longest_ms), ms_text(breakdown.median_ms),
                     mean_ms > kMuch * breakdown.median_ms
                         ? ": a few slow steps raise the mean; profile more steps"
                         : "");
}

std::string overlap_text(const RankBreakdown& mean) {
  const double communication = mean.hidden_ms + mean.exposed_ms;
  if (communication <= kShownMs) return "";
  return fmt::format(
      "communication is under way for {}; {:.0f} % of it is hidden behind other work\n",
      ms_text(communication), share(mean.hidden_ms, communication));
}

ordered_json rank_json(const RankBreakdown& rank) {
  ordered_json phases = ordered_json::object();
  for (const auto& [name, ms] : rank.compute_phases_ms) phases[name] = ms;
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"step_ms", rank.step_ms},
          {"compute_ms", rank.compute_ms},
          {"compute_phases_ms", phases},
          {"communication_exposed_ms", rank.exposed_ms},
          {"communication_hidden_ms", rank.hidden_ms},
          {"waiting_for_later_rank_ms", rank.waiting_ms},
          {"waiting_for_bytes_ms", rank.exposed_ms - rank.waiting_ms},
          {"data_ms", rank.data_ms},
          {"evaluation_ms", rank.evaluation_ms},
          {"host_ms", rank.host_ms},
          {"awaited_ms", rank.awaited_ms},
          {"tracing_ms", rank.tracing_ms}};
}

// The ideal speedup over one rank is the number of ranks. On CPUs one rank has all threads of a
// host, so the ideal is the ratio of the threads.
double worth_of(const ProfiledRun& single, const ProfiledRun& many) {
  const int one = single.breakdown.num_threads, each = many.breakdown.num_threads;
  if (many.breakdown.has_device_clock || one == 0 || each == 0) return many.breakdown.world_size;
  return static_cast<double>(each * many.breakdown.world_size) / one;
}

bool is_scaling(const ProfiledRun& first, const ProfiledRun& second) {
  return first.breakdown.world_size == 1 && second.breakdown.world_size > 1;
}

void require_one_unit(const ProfiledRun& first, const ProfiledRun& second) {
  if (first.unit != second.unit)
    throw ConfigError(fmt::format("{} counts {} and {} {}: two kinds of training are not compared",
                                  first.name, first.unit, second.name, second.unit),
                      {.hint = "name two runs of one kind of training"});
}

// Names the rank that causes most of the waiting, if there is one.
std::string later_rank_finding(const Breakdown& breakdown, const RankBreakdown& mean) {
  const auto last = std::max_element(
      breakdown.ranks.begin(), breakdown.ranks.end(),
      [](const auto& left, const auto& right) { return left.awaited_ms < right.awaited_ms; });
  const double all_ms = mean.awaited_ms * static_cast<double>(breakdown.ranks.size());
  return last->awaited_ms > 0.75 * all_ms
             ? fmt::format(
                   "rank {} on {} comes last: the others wait {} a step for it; look at its "
                   "device and host (convoy doctor --during RUN)",
                   last->rank, last->host, ms_text(last->awaited_ms))
             : fmt::format(
                   "ranks wait {} a step for each other: their micro-batches differ "
                   "(data.balance_tokens), or they have more threads than processors",
                   ms_text(mean.waiting_ms));
}

// Divides the speed that the second run lacks, compared with the ideal, among the parts in which a
// token takes longer than in the first run.
std::string scaling_text(const ProfiledRun& single, const ProfiledRun& many) {
  const double worth = worth_of(single, many);
  const double speedup = many.units_per_second / single.units_per_second;
  const int ranks = many.breakdown.world_size;
  std::string text =
      worth == ranks
          ? fmt::format("{} ranks could do {} times the work of one: they do {:.0f} % of that\n",
                        ranks, ranks, share(speedup, worth))
          : fmt::format(
                "one rank computed with {} threads, {} ranks with {} each: they could do {:.3g} "
                "times its work, and do {:.0f} % of that\n",
                single.breakdown.num_threads, ranks, many.breakdown.num_threads, worth,
                share(speedup, worth));
  constexpr double kImpossible = 115;
  if (share(speedup, worth) > kImpossible)
    text +=
        "that is more than possible: the training of one rank was disturbed; measure it again\n";
  const RankBreakdown one = single.breakdown.mean(), each = many.breakdown.mean();
  const double seconds_one = 1 / single.units_per_second;
  const double seconds_each = worth / many.units_per_second;
  const double per_ms_one = seconds_one / one.step_ms;
  const double per_ms_each = seconds_each / each.step_ms;
  const double lost = seconds_each - seconds_one;
  if (lost <= 0.005 * seconds_one) return text;
  text += "the missing part goes to\n";
  for (const Line& line :
       {Line{"computing slower", [](const RankBreakdown& r) { return r.compute_ms; }},
        Line{"a later rank", [](const RankBreakdown& r) { return r.waiting_ms; }},
        Line{"bytes of collectives",
             [](const RankBreakdown& r) { return r.exposed_ms - r.waiting_ms; }},
        Line{"data", [](const RankBreakdown& r) { return r.data_ms; }},
        Line{"evaluating and saving", [](const RankBreakdown& r) { return r.evaluation_ms; }},
        Line{"the host's own work", [](const RankBreakdown& r) { return r.host_ms; }}}) {
    const double more = per_ms_each * line.ms(each) - per_ms_one * line.ms(one);
    if (std::abs(share(more, lost)) >= 0.5)
      text += fmt::format("  {:<26}{:>6.0f} %\n", line.label, share(more, lost));
  }
  return text;
}

}  // namespace

std::vector<std::string> findings(const Breakdown& breakdown) {
  const RankBreakdown mean = breakdown.mean();
  const double bytes_ms = mean.exposed_ms - mean.waiting_ms;
  const auto percent = [&mean](double ms) { return share(ms, mean.step_ms); };
  std::vector<std::pair<double, std::string>> found;  // cost in ms, finding
  const auto add = [&found](double ms, std::string sentence) {
    found.emplace_back(ms, std::move(sentence));
  };
  if (breakdown.has_all_ranks()) {
    add(mean.waiting_ms, later_rank_finding(breakdown, mean));
    add(bytes_ms, fmt::format("{:.0f} % of a step waits for bytes: with more accumulation "
                              "(train.grad_accum) they are exchanged less often",
                              percent(bytes_ms)));
  }
  add(mean.data_ms, fmt::format("{:.0f} % of a step waits for data: batches are made slower than "
                                "they are trained; check the disk and data.cache_dir",
                                percent(mean.data_ms)));
  add(mean.evaluation_ms, fmt::format("{:.0f} % of the time goes to evaluating and saving: "
                                      "train.eval_steps and train.save_steps set how often",
                                      percent(mean.evaluation_ms)));
  add(mean.host_ms, fmt::format("{:.0f} % of a step is the host's own work between phases: larger "
                                "micro-batches (train.batch_size) reduce it",
                                percent(mean.host_ms)));
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& left, const auto& right) { return left.first > right.first; });
  constexpr double kWorthSaying = 5;  // percent
  std::vector<std::string> sentences;
  for (auto& [ms, sentence] : found)
    if (percent(ms) > kWorthSaying) sentences.push_back(std::move(sentence));
  return sentences;
}

std::string report_text(const ProfiledRun& run) {
  const Breakdown& breakdown = run.breakdown;
  const RankBreakdown mean = breakdown.mean();
  std::string text =
      heading_of(run) + '\n' + table_text(columns_of(breakdown), breakdown.has_all_ranks());
  if (!breakdown.collectives.empty())
    text += collectives_text(breakdown.collectives) + overlap_text(mean);
  text += '\n' + spread_text(breakdown);
  if (run.units_per_second > 0)
    text += fmt::format("{:.0f} {}/s over these steps\n", run.units_per_second, run.unit);
  text += fmt::format("tracing took about {:.0f} us of a step ({:.2g} %)\n", 1e3 * mean.tracing_ms,
                      share(mean.tracing_ms, mean.step_ms));
  for (const std::string& finding : findings(breakdown)) text += "- " + finding + '\n';
  return text;
}

ordered_json report_json(const ProfiledRun& run) {
  const Breakdown& breakdown = run.breakdown;
  ordered_json ranks = ordered_json::array();
  for (const RankBreakdown& rank : breakdown.ranks) ranks.push_back(rank_json(rank));
  ordered_json collectives = ordered_json::array();
  for (const CollectiveTotals& totals : breakdown.collectives)
    collectives.push_back(
        {{"name", totals.name},
         {"per_step", totals.per_step},
         {"bytes_per_step", totals.bytes_per_step},
         {"under_way_ms", totals.flight_ms},
         {"exposed_ms", totals.exposed_ms},
         {"bytes_per_second",
          totals.bytes_per_second > 0 ? ordered_json(totals.bytes_per_second) : ordered_json()}});
  ordered_json mean = rank_json(breakdown.mean());
  mean.erase("rank");
  mean.erase("host");
  return {{"schema", "convoy.profile/1"},
          {"run", run.name},
          {"world_size", breakdown.world_size},
          {"traces", breakdown.ranks.size()},
          {"clock", breakdown.has_device_clock ? "device" : "host"},
          {"first_step", breakdown.first_step},
          {"last_step", breakdown.last_step},
          {"step_ms",
           {{"shortest", breakdown.shortest_ms},
            {"median", breakdown.median_ms},
            {"longest", breakdown.longest_ms}}},
          {run.unit + "_per_second",
           run.units_per_second > 0 ? ordered_json(run.units_per_second) : ordered_json()},
          {"mean", mean},
          {"ranks", ranks},
          {"collectives", collectives},
          {"findings", findings(breakdown)}};
}

std::string comparison_text(const ProfiledRun& first, const ProfiledRun& second) {
  require_one_unit(first, second);
  const bool scales = is_scaling(first, second);
  const std::string ranks = counted(second.breakdown.world_size, "rank");
  std::string text =
      table_text({{scales ? "1 rank" : "first", first.breakdown.mean()},
                  {scales ? ranks + ", mean" : "second", second.breakdown.mean()}},
                 first.breakdown.has_all_ranks() && second.breakdown.has_all_ranks());
  for (const ProfiledRun* run : {&first, &second})
    if (const std::string spread = spread_text(run->breakdown); !spread.empty())
      text += fmt::format("{}: {}",
                          scales && run == &first ? "1 rank"
                          : scales                ? ranks
                                                  : run->name,
                          spread);
  if (first.units_per_second <= 0 || second.units_per_second <= 0) return text;
  text += fmt::format("{:.0f} {}/s beside {:.0f}: {:.2f} times as many\n", second.units_per_second,
                      second.unit, first.units_per_second,
                      second.units_per_second / first.units_per_second);
  return scales ? text + scaling_text(first, second) : text;
}

ordered_json comparison_json(const ProfiledRun& first, const ProfiledRun& second) {
  require_one_unit(first, second);
  const bool known = first.units_per_second > 0 && second.units_per_second > 0;
  const double speedup = known ? second.units_per_second / first.units_per_second : 0;
  ordered_json record = {{"schema", "convoy.profile_comparison/1"},
                         {"speedup", known ? ordered_json(speedup) : ordered_json()}};
  if (is_scaling(first, second))
    record["efficiency"] = known ? ordered_json(speedup / worth_of(first, second)) : ordered_json();
  record["first"] = report_json(first);
  record["second"] = report_json(second);
  return record;
}

}  // namespace convoy::profile

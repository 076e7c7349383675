// SPDX-License-Identifier: Apache-2.0
#include "convoy/profile/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "convoy/base/counted.h"

namespace convoy::profile {
namespace {

using nlohmann::ordered_json;

constexpr size_t kMostRankColumns = 4;
constexpr double kShownMs = 0.0005;  // what prints as 0.000 ms is left out

double share(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

std::string ms_text(double ms) { return fmt::format("{:.{}f} ms", ms, ms < 10 ? 2 : 1); }

// A line of the table, and where its figure comes from.
struct Line {
  std::string label;
  std::function<double(const RankBreakdown&)> ms;
};

double phase_ms(const RankBreakdown& rank, const std::string& name) {
  for (const auto& [phase, ms] : rank.compute_phases_ms)
    if (phase == name) return ms;
  return 0;
}

std::vector<Line> lines_of(const RankBreakdown& mean) {
  using R = RankBreakdown;
  std::vector<Line> lines = {{"a step", [](const R& r) { return r.step_ms; }},
                             {"  computing", [](const R& r) { return r.compute_ms; }}};
  for (const auto& [name, ms] : mean.compute_phases_ms)
    if (ms > kShownMs)
      lines.push_back({"    " + name, [name = name](const R& r) { return phase_ms(r, name); }});
  lines.push_back({"  waiting for collectives", [](const R& r) { return r.exposed_ms; }});
  if (mean.exposed_ms > kShownMs) {
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

// Columns: the mean, then each rank, or of many ranks the one with the shortest and the longest computing.
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

std::string table_text(const std::vector<Column>& columns) {
  const std::vector<Line> lines = lines_of(columns.front().rank);
  std::string text = fmt::format("{:<28}", "");
  for (const Column& column : columns)
    text += fmt::format("{:>{}}", column.heading, std::max<size_t>(20, column.heading.size() + 2));
  text += '\n';
  for (const Line& line : lines) {
    text += fmt::format("{:<28}", line.label);
    for (const Column& column : columns) {
      const double ms = line.ms(column.rank);
      text += fmt::format("{:>{}}",
                          fmt::format("{} {:>4.0f} %", ms_text(ms), share(ms, column.rank.step_ms)),
                          std::max<size_t>(20, column.heading.size() + 2));
    }
    text += '\n';
  }
  return text;
}

std::string collectives_text(const std::vector<CollectiveTotals>& collectives) {
  std::string text = fmt::format("\n{:<28}{:>8}{:>12}{:>14}{:>12}{:>14}\n", "collectives", "a step",
                                 "MiB a step", "under way", "waited for", "rate");
  for (const CollectiveTotals& totals : collectives)
    text += fmt::format(
        "{:<28}{:>8.1f}{:>12.2f}{:>14}{:>12}{:>14}\n", "  " + totals.name, totals.per_step,
        totals.bytes_per_step / (1 << 20), ms_text(totals.flight_ms), ms_text(totals.exposed_ms),
        totals.bytes_per_second > 0 ? fmt::format("{:.3g} GB/s", totals.bytes_per_second / 1e9)
                                    : "-");
  return text;
}

std::string heading_of(const ProfiledRun& run) {
  const Breakdown& breakdown = run.breakdown;
  std::string text = fmt::format("{}: steps {} to {} of {}\n", run.name, breakdown.first_step,
                                 breakdown.last_step, counted(breakdown.world_size, "rank"));
  if (!breakdown.has_all_ranks())
    text += fmt::format(
        "traces of {} of {} ranks are here: those of other hosts lie in their run folders\n",
        breakdown.ranks.size(), breakdown.world_size);
  if (breakdown.is_full) text += "a trace was full: its later steps are left out\n";
  if (breakdown.has_device_clock)
    text +=
        "times are when the GPU was at that work; a wait is one in which it had nothing else to "
        "do\n";
  return text;
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
          {"data_ms", rank.data_ms},
          {"evaluation_ms", rank.evaluation_ms},
          {"host_ms", rank.host_ms},
          {"awaited_ms", rank.awaited_ms},
          {"tracing_ms", rank.tracing_ms}};
}

// How many times the work of one rank the many could do: as many as they are, but on CPUs, where one rank has all threads of a host,
// as many as their threads are worth.
double worth_of(const ProfiledRun& single, const ProfiledRun& many) {
  const int one = single.breakdown.num_threads, each = many.breakdown.num_threads;
  if (many.breakdown.has_device_clock || one == 0 || each == 0) return many.breakdown.world_size;
  return static_cast<double>(each * many.breakdown.world_size) / one;
}

}  // namespace

std::vector<std::string> findings(const Breakdown& breakdown) {
  const RankBreakdown mean = breakdown.mean();
  std::vector<std::string> found;
  const auto percent = [&mean](double ms) { return share(ms, mean.step_ms); };
  constexpr double kWorthSaying = 5;
  if (percent(mean.waiting_ms) > kWorthSaying) {
    const auto last = std::max_element(
        breakdown.ranks.begin(), breakdown.ranks.end(),
        [](const auto& left, const auto& right) { return left.awaited_ms < right.awaited_ms; });
    const bool one_rank =
        last->awaited_ms > 0.6 * mean.awaited_ms * static_cast<double>(breakdown.ranks.size());
    found.push_back(
        one_rank && breakdown.ranks.size() > 1
            ? fmt::format("rank {} on {} comes last: the others wait {} a step for it; look at its "
                          "device and host (convoy doctor --during RUN)",
                          last->rank, last->host, ms_text(last->awaited_ms))
            : fmt::format(
                  "ranks wait {} a step for each other: their micro-batches differ, or other "
                  "programs take their processors (data.balance_tokens, --threads)",
                  ms_text(mean.waiting_ms)));
  }
  if (percent(mean.exposed_ms - mean.waiting_ms) > kWorthSaying)
    found.push_back(fmt::format(
        "{:.0f} % of a step waits for bytes: more accumulation (train.grad_accum) exchanges them "
        "less often, parallel.gradient_dtype=bf16 halves those of ddp",
        percent(mean.exposed_ms - mean.waiting_ms)));
  if (percent(mean.data_ms) > kWorthSaying)
    found.push_back(
        fmt::format("{:.0f} % of a step waits for data: batches are made slower than "
                    "they are learnt; look at the disk and at data.cache_dir",
                    percent(mean.data_ms)));
  if (percent(mean.evaluation_ms) > kWorthSaying)
    found.push_back(
        fmt::format("{:.0f} % of the time evaluates and saves: train.eval_steps and "
                    "train.save_steps say how often",
                    percent(mean.evaluation_ms)));
  if (percent(mean.host_ms) > kWorthSaying)
    found.push_back(
        fmt::format("{:.0f} % of a step is the host's own work between phases: larger "
                    "micro-batches (train.batch_size) make it less",
                    percent(mean.host_ms)));
  return found;
}

std::string report_text(const ProfiledRun& run) {
  const RankBreakdown mean = run.breakdown.mean();
  std::string text = heading_of(run) + '\n' + table_text(columns_of(run.breakdown));
  if (!run.breakdown.collectives.empty())
    text += collectives_text(run.breakdown.collectives) + overlap_text(mean);
  text += '\n';
  if (run.units_per_second > 0)
    text += fmt::format("{:.0f} {}/s over these steps\n", run.units_per_second, run.unit);
  text += fmt::format("tracing took {} of a step ({:.2g} %)\n", ms_text(mean.tracing_ms),
                      share(mean.tracing_ms, mean.step_ms));
  for (const std::string& finding : findings(run.breakdown)) text += "- " + finding + '\n';
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
          {"first_step", breakdown.first_step},
          {"last_step", breakdown.last_step},
          {run.unit + "_per_second",
           run.units_per_second > 0 ? ordered_json(run.units_per_second) : ordered_json()},
          {"mean", mean},
          {"ranks", ranks},
          {"collectives", collectives},
          {"findings", findings(breakdown)}};
}

std::string comparison_text(const ProfiledRun& single, const ProfiledRun& many) {
  const std::string heading = counted(many.breakdown.world_size, "rank");
  const double worth = worth_of(single, many);
  std::string text = table_text(
      {{"1 rank", single.breakdown.mean()}, {heading + ", mean", many.breakdown.mean()}});
  if (single.units_per_second <= 0 || many.units_per_second <= 0) return text;
  const double speedup = many.units_per_second / single.units_per_second;
  text += fmt::format("{:<28}{:>20.0f}{:>20.0f}\n", single.unit + "/s", single.units_per_second,
                      many.units_per_second);
  text += fmt::format(
      "\n{} do {:.2f} times the work of one: {:.0f} % of {:.3g}{}\n", heading, speedup,
      share(speedup, worth), worth,
      worth == many.breakdown.world_size
          ? ""
          : fmt::format(", since one rank computes with {} threads and each of {} with {}",
                        single.breakdown.num_threads, many.breakdown.world_size,
                        many.breakdown.num_threads));
  // A rank's time for a token, by where it goes: the difference is what the missing share went to.
  const RankBreakdown one = single.breakdown.mean(), each = many.breakdown.mean();
  const double seconds_one = 1 / single.units_per_second;
  const double seconds_each = worth / many.units_per_second;
  const double per_ms_one = seconds_one / one.step_ms;
  const double per_ms_each = seconds_each / each.step_ms;
  const double lost = seconds_each - seconds_one;
  if (lost <= 0) return text;
  text += "of the rest went to\n";
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

ordered_json comparison_json(const ProfiledRun& single, const ProfiledRun& many) {
  const bool known = single.units_per_second > 0 && many.units_per_second > 0;
  const double speedup = known ? many.units_per_second / single.units_per_second : 0;
  return {{"schema", "convoy.profile_comparison/1"},
          {"speedup", known ? ordered_json(speedup) : ordered_json()},
          {"efficiency", known ? ordered_json(speedup / worth_of(single, many)) : ordered_json()},
          {"single", report_json(single)},
          {"many", report_json(many)}};
}

}  // namespace convoy::profile

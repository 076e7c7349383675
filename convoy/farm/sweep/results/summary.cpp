// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/text_table.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::sweep {
namespace {

// The code of the letter that begins the text, if it is one of unseen_letter(). U+200C and U+200D
// do not count, because Persian and emoji need them.
std::optional<unsigned> unseen_code(std::string_view text) {
  const auto byte = [&text](size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0U;
  };
  unsigned code = 0;
  if ((byte(0) & 0xe0U) == 0xc0U && (byte(1) & 0xc0U) == 0x80U)
    code = (byte(0) & 0x1fU) << 6 | (byte(1) & 0x3fU);
  else if ((byte(0) & 0xf0U) == 0xe0U && (byte(1) & 0xc0U) == 0x80U && (byte(2) & 0xc0U) == 0x80U)
    code = (byte(0) & 0xfU) << 12 | (byte(1) & 0x3fU) << 6 | (byte(2) & 0x3fU);
  const auto is_in = [code](unsigned first, unsigned last) {
    return code >= first && code <= last;
  };
  const bool is_unseen = is_in(0x80, 0x9f) || code == 0x61c || code == 0x200b ||
                         is_in(0x200e, 0x200f) || is_in(0x2028, 0x202e) || is_in(0x2066, 0x2069) ||
                         code == 0xfeff;
  return is_unseen ? std::optional(code) : std::nullopt;
}

// True if both cells have the same method and share one parameter text, as most neighbours among a
// million cells do. Then nothing is looked up for the cell.
bool are_alike(const Cell* last, const Cell& cell) {
  return last != nullptr && last->parameters.shares(cell.parameters) && last->method == cell.method;
}

// Adds the names of the parameters whose values differ between the cells, or that some of the cells
// lack.
void add_varying(const std::vector<Cell>& cells, std::set<std::string>& names) {
  std::map<std::string, std::set<std::string>> values;
  std::map<std::string, size_t> seen;
  for (const Cell& cell : cells)
    for (const auto& [name, value] : axes_of(cell)) {
      values[name].insert(value.dump());
      ++seen[name];
    }
  for (const auto& [name, found] : values)
    if (found.size() + (seen[name] < cells.size() ? 1 : 0) > 1) names.insert(name);
}

// Names of parameters that differ between cells of one method and seed. A parameter that differs
// only between seeds, such as data of a file, is no axis. In the cells of programs, however, every
// parameter comes from the user, so a parameter that differs between seeds is an axis too.
std::set<std::string> varying_names(const SweepResults& results) {
  // For each method, the number of each parameter text.
  std::map<std::string, std::map<std::string, size_t>> texts;
  const Cell* last = nullptr;
  for (const CellResult& cell : results.cells) {
    if (are_alike(last, cell.cell)) continue;
    last = &cell.cell;
    auto& known = texts[cell.cell.method];
    known.try_emplace(cell.cell.parameters, known.size());
  }
  std::set<std::string> names;
  const bool by_seed = !is_of_programs(results);
  for (const auto& [method, known] : texts) {
    if (known.size() == 1) continue;
    std::unordered_map<int64_t, std::set<size_t>> of_seed;
    for (const CellResult& cell : results.cells)
      if (cell.cell.method == method)
        of_seed[by_seed ? cell.cell.seed : 0].insert(known.at(cell.cell.parameters));
    std::vector<Cell> by_number(known.size());
    for (const auto& [text, number] : known) by_number[number].parameters = text;
    std::set<std::set<size_t>> distinct;
    for (const auto& [seed, numbers] : of_seed) distinct.insert(numbers);
    for (const std::set<size_t>& numbers : distinct) {
      std::vector<Cell> cells;
      for (const size_t number : numbers) cells.push_back(by_number[number]);
      add_varying(cells, names);
    }
  }
  return names;
}

std::string group_text(const std::map<std::string, nlohmann::json>& axes,
                       const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names)
    if (axes.contains(name))
      text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, parameter_text(axes.at(name)));
  return text;
}

SeedSummary::Spread spread_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return {.median = quantile_of_sorted(values, 0.5),
          .low = quantile_of_sorted(values, 0.25),
          .high = quantile_of_sorted(values, 0.75)};
}

double median_of(const std::vector<double>& values) {
  std::vector<double> finite;
  for (const double value : values)
    if (std::isfinite(value)) finite.push_back(value);
  return quantile(finite, 0.5);
}

}  // namespace

std::set<std::string> grouping_names(const SweepResults& results, const std::string& axis) {
  std::map<std::tuple<std::string, std::string, std::string>, std::set<std::string>> values;
  const std::set<std::string> varying = varying_names(results);
  std::unordered_set<std::string> seen;
  const Cell* last = nullptr;
  for (const CellResult& cell : results.cells) {
    if (are_alike(last, cell.cell)) continue;
    last = &cell.cell;
    if (!seen.insert(cell.cell.method + cell.cell.parameters.str()).second) continue;
    const auto axes = axes_of(cell.cell);
    const auto text = [&](const std::string& name) {
      return axes.contains(name) ? axes.at(name).dump() : "";
    };
    for (const std::string& name : varying)
      values[{cell.cell.method, text(axis), name}].insert(text(name));
  }
  std::set<std::string> names;
  for (const auto& [place, found] : values)
    if (found.size() > 1) names.insert(std::get<2>(place));
  names.erase(axis);
  return names;
}

std::set<std::string> shown_names(const SweepResults& results, const std::string& axis) {
  if (!is_of_programs(results)) return grouping_names(results, axis);
  std::set<std::string> names = varying_names(results);
  names.erase(axis);
  return names;
}

std::string clock_text(int64_t milliseconds, int64_t other) {
  if (milliseconds == 0) return "before";
  const auto local = [](std::time_t seconds) {
    std::tm fields{};
    ::localtime_r(&seconds, &fields);
    return fields;
  };
  const auto day = [](const std::tm& fields) { return 1000 * fields.tm_year + fields.tm_yday; };
  const std::tm fields = local(milliseconds / 1000);
  const int today = day(local(std::time(nullptr)));
  const bool both_today = day(fields) == today && day(local(other / 1000)) == today;
  char text[32] = {};
  std::strftime(text, sizeof(text), both_today ? "%H:%M" : "%Y-%m-%d %H:%M", &fields);
  return text;
}

std::string unseen_letter(std::string_view text) {
  for (; !text.empty(); text.remove_prefix(1))
    if (const auto code = unseen_code(text)) return fmt::format("U+{:04X}", *code);
  return {};
}

std::string escaped_line(std::string_view text) {
  std::string escaped;
  for (; !text.empty(); text.remove_prefix(1)) {
    const char letter = text.front();
    const auto byte = static_cast<unsigned char>(letter);
    if (const auto code = unseen_code(text)) {
      escaped += fmt::format("\\u{:04x}", *code);
      text.remove_prefix(*code < 0x800 ? 1 : 2);  // the letter's further bytes
    } else if (letter == '\n') {
      escaped += "\\n";
    } else if (letter == '\t') {
      escaped += "\\t";
    } else if (letter == '\r') {
      escaped += "\\r";
    } else if (byte < 0x20 || byte == 0x7f) {
      escaped += fmt::format("\\x{:02x}", byte);
    } else {
      escaped += letter;
    }
  }
  return escaped;
}

std::string failure_text(const jobs::Failure& failure) {
  std::string text = fmt::format("{}: {}", failure.kind, failure.message);
  std::replace(text.begin(), text.end(), '\n', ' ');
  const std::string_view errors = trimmed(failure.stderr_tail, " \t\r\n");
  const std::string_view last = errors.substr(errors.rfind('\n') + 1);
  return last.empty() ? text : fmt::format("{}; stderr ends with `{}`", text, last.substr(0, 200));
}

std::vector<SeedSummary::Spread> SeedSummary::spreads() const {
  std::vector<Spread> all = {{median, low, high}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string SeedSummary::counts_text() const {
  if (values == all()) return std::to_string(all());
  std::string text = fmt::format("{} of {}", values, all());
  if (failed > 0) text += fmt::format(", {} failed", failed);
  if (censored > 0) text += fmt::format(", {} censored", censored);
  if (partial > 0) text += fmt::format(", {} unfinished", partial);
  if (former > 0) text += fmt::format(", {} to be computed again", former);
  return text;
}

std::string axis_name(const SweepResults& results) {
  if (results.cells.empty()) return "";
  const auto axes = axes_of(results.cells.front().cell);
  const std::set<std::string> names = varying_names(results);
  for (const std::string& known : results.axes)
    if (names.contains(known)) return known;
  for (const std::string& known : results.axes)
    if (axes.contains(known)) return known;
  for (const std::string& name : names)
    if (axes.contains(name) && axes.at(name).is_number()) return name;
  return names.empty() ? "" : *names.begin();
}

std::vector<std::string> axis_of_cells(const SweepResults& results, const std::string& axis) {
  AxesOfCells known;
  std::vector<std::string> values;
  for (const CellResult& cell : results.cells) {
    const auto& axes = known.of(cell.cell);
    const auto found = axes.find(axis);
    values.push_back(found == axes.end() ? "" : parameter_text(found->second));
  }
  return values;
}

std::vector<std::string> groups_of_cells(const SweepResults& results,
                                         const std::set<std::string>& names) {
  AxesOfCells known;
  std::vector<std::string> groups;
  for (const CellResult& cell : results.cells)
    groups.push_back(group_text(known.of(cell.cell), names));
  return groups;
}

namespace {

// A row of the summary while its cells are collected.
struct CollectedCells {
  SeedSummary summary;
  std::vector<double> values, priors, curves;
  std::vector<std::vector<double>> more;  // by further metric
  int64_t guesses = 0, accepted = 0;

  void add(const CellResult& cell) {
    if (cell.state == CellState::Value) {
      values.push_back(cell.value);
      for (size_t at = 0; at < more.size(); ++at) more[at].push_back(cell.metric(at + 1));
    }
    summary.values += cell.state == CellState::Value ? 1 : 0;
    summary.failed += cell.state == CellState::Failed ? 1 : 0;
    summary.censored += cell.state == CellState::Censored ? 1 : 0;
    summary.partial += cell.state == CellState::Partial ? 1 : 0;
    summary.former += cell.state == CellState::Former ? 1 : 0;
    priors.push_back(cell.reference.prior_mean);
    curves.push_back(cell.reference.curve);
    guesses += cell.tally.guesses;
    accepted += cell.tally.accepted;
  }

  SeedSummary summarised() && {
    const SeedSummary::Spread first = spread_of(std::move(values));
    summary.median = first.median;
    summary.low = first.low;
    summary.high = first.high;
    for (std::vector<double>& of_metric : more)
      summary.more.push_back(spread_of(std::move(of_metric)));
    summary.prior_mean = median_of(priors);
    summary.theory = median_of(curves);
    summary.accepted_share =
        guesses > 0 ? static_cast<double>(accepted) / static_cast<double>(guesses) : std::nan("");
    return std::move(summary);
  }
};

// Finds the row of a cell: cells of one method, group and value of the axis share a row.
class SummaryRows {
 public:
  SummaryRows(const SweepResults& results, const std::string& axis)
      : axis_(axis),
        others_(grouping_names(results, axis)),
        shown_(shown_names(results, axis)),
        num_further_(results.metrics.size() - 1) {}

  void add(const CellResult& cell) {
    if (!are_alike(last_, cell.cell)) {
      const auto [found, added] = known_.try_emplace(cell.cell.method + cell.cell.parameters.str());
      if (added) found->second = row_of(cell.cell);
      place_ = found->second;
    }
    last_ = &cell.cell;
    rows_[place_].add(cell);
  }

  std::vector<SeedSummary> summarised() && {
    std::vector<SeedSummary> summaries;
    for (CollectedCells& row : rows_) summaries.push_back(std::move(row).summarised());
    return summaries;
  }

 private:
  // The number of the cell's row, which is added when it is new.
  size_t row_of(const Cell& cell) {
    const auto axes = axes_of(cell);
    SeedSummary key;
    key.method = cell.method;
    if (axes.contains(axis_)) key.axis = parameter_text(axes.at(axis_));
    key.group = group_text(axes, others_);
    for (const std::string& name : shown_)
      if (axes.contains(name)) key.others[name] = parameter_text(axes.at(name));
    const auto [place, added] =
        places_.try_emplace({key.method, key.group, key.axis}, rows_.size());
    if (added) {
      const double number = number_parameter(cell, axis_);
      key.position = std::isfinite(number) ? number : static_cast<double>(rows_.size());
      rows_.emplace_back();
      rows_.back().summary = key;
      rows_.back().more.resize(num_further_);
    }
    return place->second;
  }

  const std::string& axis_;
  const std::set<std::string> others_, shown_;
  const size_t num_further_;
  std::vector<CollectedCells> rows_;
  std::map<std::tuple<std::string, std::string, std::string>, size_t> places_;
  std::unordered_map<std::string, size_t> known_;  // row number by method and parameters
  const Cell* last_ = nullptr;
  size_t place_ = 0;  // row of the last cell
};

}  // namespace

std::vector<SeedSummary> summarise(const SweepResults& results, const std::string& axis) {
  SummaryRows rows(results, axis);
  for (const CellResult& cell : results.cells) rows.add(cell);
  return std::move(rows).summarised();
}

std::string counts_text(const SweepResults& results) {
  const auto counts = results.counts();
  std::string text =
      fmt::format("{}: {}", counted(static_cast<int64_t>(results.cells.size()), "cell"),
                  counted(counts.at(CellState::Value), "value"));
  if (const int64_t count = counts.at(CellState::Censored); count > 0)
    text += fmt::format(", {} censored", count);
  if (const int64_t count = counts.at(CellState::Failed); count > 0)
    text += fmt::format(", {} failed", count);
  if (const int64_t count = counts.at(CellState::Partial); count > 0)
    text += fmt::format(", {} unfinished", count);
  if (const int64_t count = counts.at(CellState::Former); count > 0)
    text += fmt::format(", {} to be computed again", count);
  return text;
}

std::string finished_text(const SweepResults& results) {
  int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
  for (const CellResult& cell : results.cells) {
    first = std::min(first, cell.finished_ms);
    last = std::max(last, cell.finished_ms);
  }
  if (results.cells.empty() || first == 0) return "";
  const std::string from = clock_text(first, last), to = clock_text(last, first);
  return from == to ? "all from " + from : fmt::format("from {} to {}", from, to);
}

}  // namespace convoy::sweep

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/wide_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "convoy/core/base/csv_cell.h"
#include "convoy/farm/sweep/results/csv_text.h"

namespace convoy::sweep {
namespace {

std::string wide_text(const CellResult* cell, size_t metric) {
  if (cell == nullptr) return "";
  if (cell->state == CellState::Censored) return "nan";
  return cell->state == CellState::Value || cell->state == CellState::Former
             ? number_text(cell->metric(metric))
             : "";
}

}  // namespace

std::string wide_csv(const SweepResults& results) {
  std::set<std::string> names;
  std::set<int64_t> seeds;
  std::unordered_map<std::string, size_t> places;  // row number by parameters
  std::vector<std::map<int64_t, const CellResult*>> rows;
  for (const CellResult& cell : results.cells) {
    const auto [place, added] = places.try_emplace(cell.cell.parameters.str(), rows.size());
    if (added) {
      rows.emplace_back();
      for (const auto& [name, value] : axes_of(cell.cell)) names.insert(name);
    }
    rows[place->second][cell.cell.seed] = &cell;
    seeds.insert(cell.cell.seed);
  }
  std::vector<std::string> heading;
  for (const std::string& name : names) heading.push_back(csv_cell(name));
  for (const std::string& metric : results.metrics)
    for (const int64_t seed : seeds)
      heading.push_back(csv_cell(fmt::format("{}_seed={}", metric, seed)));
  std::string text = fmt::format("{}\n", fmt::join(heading, ","));
  for (const auto& row : rows) {
    std::vector<std::string> fields;
    const auto axes = axes_of(row.begin()->second->cell);
    for (const std::string& name : names) {
      const auto found = axes.find(name);
      fields.push_back(found == axes.end()         ? ""
                       : found->second.is_string() ? csv_cell(found->second.get<std::string>())
                                                   : found->second.dump());
    }
    for (size_t metric = 0; metric < results.metrics.size(); ++metric)
      for (const int64_t seed : seeds) {
        const auto found = row.find(seed);
        fields.push_back(wide_text(found == row.end() ? nullptr : found->second, metric));
      }
    text += fmt::format("{}\n", fmt::join(fields, ","));
  }
  return text;
}

}  // namespace convoy::sweep

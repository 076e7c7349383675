// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/results/grid_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/farm/sweep/results/summary.h"

namespace convoy::sweep {
namespace {

// A long list shows only its first three values and its last value.
std::string values_text(const std::vector<std::string>& values) {
  constexpr size_t kMostNamed = 6, kFirst = 3;
  if (values.size() <= kMostNamed) return fmt::format("{}", fmt::join(values, ", "));
  return fmt::format("{} .. {} ({})", fmt::join(values.begin(), values.begin() + kFirst, ", "),
                     values.back(), values.size());
}

std::string seeds_text(const std::set<int64_t>& seeds) {
  const auto span = static_cast<size_t>(*seeds.rbegin() - *seeds.begin()) + 1;
  if (seeds.size() == 1) return fmt::format("seed {}", *seeds.begin());
  if (span == seeds.size()) return fmt::format("seeds {} .. {}", *seeds.begin(), *seeds.rbegin());
  std::vector<std::string> texts;
  for (const int64_t seed : seeds) texts.push_back(std::to_string(seed));
  return "seeds " + values_text(texts);
}

}  // namespace

nlohmann::ordered_json grid_json(const SweepResults& results) {
  const std::string axis = axis_name(results);
  std::set<std::string> names = shown_names(results, axis);
  if (!axis.empty()) names.insert(axis);
  nlohmann::ordered_json grid = nlohmann::ordered_json::object();
  for (const std::string& name : names) grid[name] = nlohmann::ordered_json::array();
  std::set<std::string> seen;
  AxesOfCells known;
  for (const CellResult& cell : results.cells)
    for (const auto& [name, value] : known.of(cell.cell))
      if (grid.contains(name) && seen.insert(name + '\n' + value.dump()).second)
        grid[name].push_back(nlohmann::ordered_json(value));
  return grid;
}

std::string named_values_text(const nlohmann::ordered_json& values) {
  std::vector<std::string> parts;
  for (const auto& [name, list] : values.items()) {
    std::vector<std::string> texts;
    for (const auto& value : list) texts.push_back(parameter_text(nlohmann::json(value)));
    parts.push_back(fmt::format("{} {}", name, values_text(texts)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string grid_text(const SweepResults& results) {
  std::vector<std::string> parts;
  if (const auto grid = grid_json(results); !grid.empty()) parts.push_back(named_values_text(grid));
  std::set<int64_t> seeds;
  std::vector<std::string> methods;
  for (const CellResult& cell : results.cells) {
    seeds.insert(cell.cell.seed);
    if (std::find(methods.begin(), methods.end(), cell.cell.method) == methods.end())
      methods.push_back(cell.cell.method);
  }
  if (!seeds.empty()) parts.push_back(seeds_text(seeds));
  if (!is_of_programs(results)) parts.push_back(fmt::format("{}", fmt::join(methods, ", ")));
  return escaped_line(fmt::format("{}", fmt::join(parts, "; ")));
}

std::string shell_text(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "_./:=,@%+-{}";
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += ' ';
    const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char letter) {
      return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
             (letter >= '0' && letter <= '9') || kPlain.find(letter) != std::string_view::npos;
    });
    if (plain) {
      text += word;
      continue;
    }
    text += '\'';
    for (const char letter : word)
      text += letter == '\'' ? std::string("'\\''") : std::string(1, letter);
    text += '\'';
  }
  return text;
}

}  // namespace convoy::sweep

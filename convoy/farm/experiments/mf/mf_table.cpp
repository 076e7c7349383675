// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_table.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "convoy/farm/experiments/table_parts.h"
#include "convoy/farm/sweep/results/summary.h"

namespace convoy::experiments {
namespace {

// The file's name contains these parameters. Each has one value in all cells that have it.
std::string mf_file_name(const sweep::SweepResults& results, const std::string& axis) {
  std::map<std::string, std::string> words = {{"gnc_init", "gauss"}, {"activation", "Linear"}};
  double momentum = 0, rank = 1;
  bool completion = false;
  for (const sweep::CellResult& cell : results.cells) {
    for (const auto& [name, value] : sweep::axes_of(cell.cell)) {
      if (words.contains(name) && value.is_string()) words[name] = value.get<std::string>();
      if (name == "gd_momentum" && value.is_number()) momentum = value.get<double>();
      if (name == "gt_rank" && value.is_number()) rank = value.get<double>();
      if (name == "completion" && value.is_boolean()) completion = value.get<bool>();
    }
  }
  std::string name = fmt::format("{}_results_gt_rank={}_act={}_gnc_init={}", axis, rank,
                                 words["activation"], words["gnc_init"]);
  if (momentum != 0) name += fmt::format("_gd_momentum={}", momentum);
  if (completion) name += "_completion";
  return name + ".csv";
}

}  // namespace

sweep::NamedFile mf_wide_csv(const sweep::SweepResults& results, const std::string& wanted_axis) {
  const std::string axis = wanted_axis.empty() ? sweep::axis_name(results) : wanted_axis;
  std::map<std::tuple<std::string, int64_t, int64_t>, const sweep::CellResult*> cells;
  std::vector<int64_t> places, seeds;
  std::set<std::string> methods;
  for (const sweep::CellResult& cell : results.cells) {
    const int64_t place = whole_parameter(cell, axis);
    cells[{cell.cell.method, place, cell.cell.seed}] = &cell;
    add_distinct(places, place);
    add_distinct(seeds, cell.cell.seed);
    methods.insert(cell.cell.method);
  }
  const auto find = [&](const std::string& method, int64_t place, int64_t seed) {
    const auto found = cells.find({method, place, seed});
    return found == cells.end() ? nullptr : found->second;
  };
  const auto prior_text = [&](int64_t place, int64_t seed) {
    const sweep::CellResult* const gnc = find("gnc", place, seed);
    if (gnc != nullptr && std::isfinite(gnc->reference.prior_mean))
      return sweep::number_text(gnc->reference.prior_mean);
    return value_text(find("prior", place, seed));
  };
  const bool gnc = methods.contains("gnc"), prior = gnc && axis == "width";
  std::string text = axis;
  for (const int64_t seed : seeds) {
    if (gnc) text += fmt::format(",gnc_gen_seed={}", seed);
    if (prior) text += fmt::format(",prior_gen_seed={}", seed);
    if (methods.contains("gd")) text += fmt::format(",gd_gen_seed={}", seed);
  }
  text += "\n";
  for (const int64_t place : places) {
    text += std::to_string(place);
    for (const int64_t seed : seeds) {
      if (gnc) text += "," + value_text(find("gnc", place, seed));
      if (prior) text += "," + prior_text(place, seed);
      if (methods.contains("gd")) text += "," + value_text(find("gd", place, seed));
    }
    text += "\n";
  }
  return {mf_file_name(results, axis), std::move(text)};
}

}  // namespace convoy::experiments

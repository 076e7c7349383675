// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/results/wide_csv.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "convoy/sweep/results/summary.h"

namespace convoy::sweep {
namespace {

using CellKey = std::tuple<std::string, int64_t, int64_t, int64_t>;  // method, rank, dim, seed

int64_t whole_parameter(const CellResult& cell, const std::string& name) {
  const double value = number_parameter(cell.cell, name);
  return std::isfinite(value) ? static_cast<int64_t>(value) : 0;
}

struct Axes {
  std::vector<int64_t> ranks, dims, seeds;
  bool gnc = false, gd = false;
  int64_t sequence_length = 0, num_sequences = 0;
};

void add_distinct(std::vector<int64_t>& values, int64_t value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

Axes axes_of_results(const SweepResults& results) {
  Axes axes;
  for (const CellResult& cell : results.cells) {
    add_distinct(axes.ranks, whole_parameter(cell, "teacher_rank"));
    add_distinct(axes.dims, whole_parameter(cell, "student_dim"));
    add_distinct(axes.seeds, cell.cell.seed);
    axes.gnc = axes.gnc || cell.cell.method == "gnc";
    axes.gd = axes.gd || cell.cell.method == "gd";
    axes.sequence_length = whole_parameter(cell, "sequence_length");
    axes.num_sequences = whole_parameter(cell, "num_sequences");
  }
  return axes;
}

std::string value_text(const CellResult* cell) {
  if (cell == nullptr) return "";
  if (cell->state == CellState::Censored) return "nan";
  return cell->state == CellState::Value ? number_text(cell->value) : "";
}

std::string file_name(const Axes& axes, int64_t rank, const std::string& time) {
  const char* const methods = axes.gnc && axes.gd ? "" : axes.gnc ? "gnc" : "gd";
  std::string name = fmt::format("results_{}_seq_len={}", methods, axes.sequence_length);
  if (axes.num_sequences != 1) name += fmt::format("_num_seq={}", axes.num_sequences);
  if (axes.ranks.size() > 1) name += fmt::format("_teacher_rank={}", rank);
  name += fmt::format("_seeds={}", fmt::join(axes.seeds, "-"));
  // File systems end names at 255 bytes.
  constexpr size_t kMostBytes = 180;
  if (name.size() > kMostBytes)
    name = fmt::format("{}..{}", name.substr(0, name.rfind('-', kMostBytes)), axes.seeds.back());
  return fmt::format("{}_time={}.csv", name, time);
}

}  // namespace

std::string number_text(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of("\",\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"') quoted += '"';
    quoted += letter;
  }
  return quoted + '"';
}

std::vector<NamedFile> ssm_wide_csv(const SweepResults& results, const std::string& time) {
  std::map<CellKey, const CellResult*> cells;
  for (const CellResult& cell : results.cells)
    cells[{cell.cell.method, whole_parameter(cell, "teacher_rank"),
           whole_parameter(cell, "student_dim"), cell.cell.seed}] = &cell;
  const auto find = [&](const std::string& method, int64_t rank, int64_t dim, int64_t seed) {
    const auto found = cells.find({method, rank, dim, seed});
    return found == cells.end() ? nullptr : found->second;
  };
  const Axes axes = axes_of_results(results);
  std::vector<NamedFile> files;
  for (const int64_t rank : axes.ranks) {
    std::string text = "student_dim";
    for (const int64_t seed : axes.seeds)
      if (axes.gnc)
        text += fmt::format(
            ",gnc_gen_seed={0},gnc_gen_seed={0}_theoretical,gnc_gen_seed={0}_asymptotic", seed);
    for (const int64_t seed : axes.seeds)
      if (axes.gd) text += fmt::format(",gd_gen_seed={}", seed);
    text += "\n";
    for (const int64_t dim : axes.dims) {
      text += std::to_string(dim);
      for (const int64_t seed : axes.seeds) {
        if (!axes.gnc) continue;
        const CellResult* const cell = find("gnc", rank, dim, seed);
        const Theory theory = cell == nullptr ? Theory{} : cell->theory;
        text += fmt::format(",{},{},{}", value_text(cell), number_text(theory.curve),
                            number_text(theory.asymptote));
      }
      for (const int64_t seed : axes.seeds)
        if (axes.gd) text += "," + value_text(find("gd", rank, dim, seed));
      text += "\n";
    }
    files.push_back({file_name(axes, rank, time), std::move(text)});
  }
  return files;
}

namespace {

// What of the parameters is in the name; a parameter is the same in all cells that have it.
std::string mf_file_name(const SweepResults& results, const std::string& axis) {
  std::map<std::string, std::string> words = {{"gnc_init", "gauss"}, {"activation", "Linear"}};
  double momentum = 0, rank = 1;
  bool completion = false, guessed = false, normalized = false;
  for (const CellResult& cell : results.cells) {
    guessed = guessed || cell.cell.method == "gnc";
    for (const auto& [name, value] : axes_of(cell.cell)) {
      if (name == "gnc_normalize" && value.is_boolean())
        normalized = normalized || value.get<bool>();
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
  // The prior program's widths are as they are drawn and its depths are normalised; what differs says so.
  if (guessed && axis == "width" && normalized) name += "_gnc_normalize";
  if (guessed && axis == "depth" && !normalized) name += "_no_gnc_normalize";
  return name + ".csv";
}

}  // namespace

NamedFile mf_wide_csv(const SweepResults& results, const std::string& wanted_axis) {
  const std::string axis = wanted_axis.empty() ? axis_name(results) : wanted_axis;
  std::map<std::tuple<std::string, int64_t, int64_t>, const CellResult*> cells;
  std::vector<int64_t> places, seeds;
  std::set<std::string> methods;
  for (const CellResult& cell : results.cells) {
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
    const CellResult* const gnc = find("gnc", place, seed);
    if (gnc != nullptr && std::isfinite(gnc->theory.prior_mean))
      return number_text(gnc->theory.prior_mean);
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

}  // namespace convoy::sweep

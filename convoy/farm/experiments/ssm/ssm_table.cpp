// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <tuple>

#include "convoy/farm/experiments/table_parts.h"

namespace convoy::experiments {
namespace {

using CellKey = std::tuple<std::string, int64_t, int64_t, int64_t>;  // method, rank, dim, seed

struct Axes {
  std::vector<int64_t> ranks, dims, seeds;
  bool gnc = false, gd = false;
  int64_t sequence_length = 0, num_sequences = 0;
};

Axes axes_of_results(const sweep::SweepResults& results) {
  Axes axes;
  for (const sweep::CellResult& cell : results.cells) {
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

// The seeds in a file's name, as in "3-1" or "0..99": four or more consecutive seeds are named by
// the first and the last.
std::string seeds_text(const std::vector<int64_t>& seeds) {
  constexpr size_t kLeastInRow = 4;
  bool in_a_row = seeds.size() >= kLeastInRow;
  for (size_t at = 1; at < seeds.size(); ++at)
    in_a_row = in_a_row && seeds[at] == seeds[at - 1] + 1;
  return in_a_row ? fmt::format("{}..{}", seeds.front(), seeds.back())
                  : fmt::format("{}", fmt::join(seeds, "-"));
}

std::string file_name(const Axes& axes, int64_t rank) {
  const char* const methods = axes.gnc && axes.gd ? "" : axes.gnc ? "gnc" : "gd";
  std::string name = fmt::format("results_{}_seq_len={}", methods, axes.sequence_length);
  if (axes.num_sequences != 1) name += fmt::format("_num_seq={}", axes.num_sequences);
  if (axes.ranks.size() > 1) name += fmt::format("_teacher_rank={}", rank);
  name += "_seeds=" + seeds_text(axes.seeds);
  // A longer name is shortened, because file systems limit a name to 255 bytes.
  constexpr size_t kMostBytes = 180;
  if (name.size() > kMostBytes)
    name = fmt::format("{}..{}", name.substr(0, name.rfind('-', kMostBytes)), axes.seeds.back());
  return name + ".csv";
}

}  // namespace

std::vector<sweep::NamedFile> ssm_wide_csv(const sweep::SweepResults& results) {
  std::map<CellKey, const sweep::CellResult*> cells;
  for (const sweep::CellResult& cell : results.cells)
    cells[{cell.cell.method, whole_parameter(cell, "teacher_rank"),
           whole_parameter(cell, "student_dim"), cell.cell.seed}] = &cell;
  const auto find = [&](const std::string& method, int64_t rank, int64_t dim, int64_t seed) {
    const auto found = cells.find({method, rank, dim, seed});
    return found == cells.end() ? nullptr : found->second;
  };
  const Axes axes = axes_of_results(results);
  std::vector<sweep::NamedFile> files;
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
        const sweep::CellResult* const cell = find("gnc", rank, dim, seed);
        const auto reference = cell == nullptr ? sweep::ReferenceCurve{} : cell->reference;
        text += fmt::format(",{},{},{}", value_text(cell), sweep::number_text(reference.curve),
                            sweep::number_text(reference.asymptote));
      }
      for (const int64_t seed : axes.seeds)
        if (axes.gd) text += "," + value_text(find("gd", rank, dim, seed));
      text += "\n";
    }
    files.push_back({file_name(axes, rank), std::move(text)});
  }
  return files;
}

}  // namespace convoy::experiments

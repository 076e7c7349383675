// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/length_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/core/charts/plot.h"

namespace convoy::data {
namespace {

// The smallest number of the form 1, 2 or 5 times a power of ten that is at least `width`.
int64_t round_width(int64_t width) {
  for (int64_t power = 1;; power *= 10)
    for (const int64_t factor : {1, 2, 5})
      if (factor * power >= width) return factor * power;
}

}  // namespace

void LengthFigures::add(int64_t length, int64_t times) {
  counts_[length] += times;
  count_ += times;
  total_ += length * times;
}

double LengthFigures::mean() const {
  return count_ == 0 ? 0 : static_cast<double>(total_) / static_cast<double>(count_);
}

int64_t LengthFigures::smallest() const { return counts_.empty() ? 0 : counts_.begin()->first; }

int64_t LengthFigures::largest() const { return counts_.empty() ? 0 : counts_.rbegin()->first; }

int64_t LengthFigures::percentile(double percent) const {
  const auto rank = std::max<int64_t>(
      1, static_cast<int64_t>(std::ceil(percent / 100 * static_cast<double>(count_) - 1e-9)));
  int64_t seen = 0;
  for (const auto& [length, times] : counts_) {
    seen += times;
    if (seen >= rank) return length;
  }
  return 0;
}

int64_t LengthFigures::count_above(int64_t length) const {
  int64_t above = 0;
  for (auto at = counts_.upper_bound(length); at != counts_.end(); ++at) above += at->second;
  return above;
}

std::vector<LengthFigures::Bin> LengthFigures::histogram(int64_t most_bins) const {
  std::vector<Bin> bins;
  if (counts_.empty()) return bins;
  const int64_t width = round_width((largest() - smallest()) / most_bins + 1);
  const int64_t first = smallest() / width;
  for (int64_t bin = first; bin <= largest() / width; ++bin)
    bins.push_back({bin * width, bin * width + width - 1, 0});
  for (const auto& [length, times] : counts_)
    bins[static_cast<size_t>(length / width - first)].count += times;
  return bins;
}

std::string histogram_text(const LengthFigures& figures, int64_t columns) {
  const auto bins = figures.histogram(16);
  int64_t most = 1;
  for (const auto& bin : bins) most = std::max(most, bin.count);
  const int64_t room = std::max<int64_t>(10, columns - 32);
  std::string text;
  for (const auto& bin : bins) {
    const auto filled = static_cast<size_t>((bin.count * room + most - 1) / most);
    std::string bar;
    for (size_t at = 0; at < filled; ++at) bar += "█";
    text += fmt::format("{:>9}-{:<9} {:>9} {}\n", bin.low, bin.high, bin.count, bar);
  }
  return text;
}

std::string histogram_svg(const LengthFigures& figures, const std::string& title,
                          const std::string& x_label, int64_t mark) {
  std::vector<charts::PlotSeries> series(1);
  double most = 0;
  for (const auto& bin : figures.histogram(40)) {
    const auto rows = static_cast<double>(bin.count);
    series[0].bars.push_back({.low = bin.low, .high = bin.high + 1, .height = rows});
    most = std::max(most, rows);
  }
  const auto& bars = series[0].bars;
  if (!bars.empty() && mark > bars.front().low && mark < bars.back().high)
    series.push_back(
        {.label = fmt::format("length {}", mark),
         .points = {{static_cast<double>(mark), 0.0}, {static_cast<double>(mark), most}},
         .color = 1,
         .dash = charts::Dash::Dashed});
  return charts::plot_svg(series, {.title = title,
                                   .x_label = x_label,
                                   .y_label = "rows",
                                   .width = 900,
                                   .height = 480,
                                   .smoothing = 0});
}

}  // namespace convoy::data

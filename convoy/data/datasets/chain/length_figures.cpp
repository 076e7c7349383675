// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/chain/length_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/core/charts/chart_canvas.h"

namespace convoy::data {
namespace {

using charts::ChartColor;

constexpr ChartColor kInk{40, 40, 40};
constexpr ChartColor kFaint{210, 210, 210};
constexpr ChartColor kBar{66, 133, 190};
constexpr ChartColor kMark{200, 60, 40};
constexpr int64_t kWidth = 900;
constexpr int64_t kHeight = 480;
constexpr double kLeft = 80, kRight = 20, kTop = 50, kBottom = 60;

// 1, 2 or 5 times a power of ten, at least `width`.
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
  const auto bins = figures.histogram(40);
  charts::SvgCanvas canvas(kWidth, kHeight);
  canvas.rectangle({0, 0}, {kWidth, kHeight}, {255, 255, 255}, 1);
  canvas.text({kLeft, 28}, title, {.color = kInk, .size = 16, .bold = true});
  if (bins.empty()) return canvas.finish();
  const double width = kWidth - kLeft - kRight;
  const double height = kHeight - kTop - kBottom;
  const double low = static_cast<double>(bins.front().low);
  const double span = static_cast<double>(bins.back().high + 1) - low;
  int64_t most = 1;
  for (const auto& bin : bins) most = std::max(most, bin.count);
  const auto x_of = [&](double length) { return kLeft + (length - low) / span * width; };
  const auto y_of = [&](double count) {
    return kTop + height - count / static_cast<double>(most) * height;
  };
  for (int tick = 0; tick <= 4; ++tick) {
    const double count = static_cast<double>(most) * tick / 4;
    canvas.polyline({{kLeft, y_of(count)}, {kLeft + width, y_of(count)}}, {.color = kFaint});
    canvas.text({kLeft - 8, y_of(count) + 4}, fmt::format("{:.0f}", count),
                {.color = kInk, .size = 12, .anchor = charts::TextAnchor::End});
  }
  const size_t every = std::max<size_t>(1, bins.size() / 8);
  for (size_t at = 0; at < bins.size(); ++at) {
    const auto& bin = bins[at];
    const double left = x_of(static_cast<double>(bin.low));
    const double right = x_of(static_cast<double>(bin.high + 1));
    const double top = y_of(static_cast<double>(bin.count));
    canvas.rectangle({left + 0.5, top}, {std::max(0.5, right - left - 1), kTop + height - top},
                     kBar, 1);
    if (at % every == 0)
      canvas.text({left, kTop + height + 18}, fmt::format("{}", bin.low),
                  {.color = kInk, .size = 12, .anchor = charts::TextAnchor::Middle});
  }
  if (mark > bins.front().low && mark <= bins.back().high) {
    const double x = x_of(static_cast<double>(mark));
    canvas.polyline({{x, kTop}, {x, kTop + height}}, {.color = kMark, .width = 2, .dashed = true});
    canvas.text({x + 4, kTop + 12}, fmt::format("{}", mark), {.color = kMark, .size = 12});
  }
  canvas.text({kLeft + width / 2, kHeight - 16}, x_label,
              {.color = kInk, .size = 13, .anchor = charts::TextAnchor::Middle});
  return canvas.finish();
}

}  // namespace convoy::data

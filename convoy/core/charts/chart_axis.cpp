// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/charts/chart_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "convoy/core/base/text_as.h"
#include "convoy/core/charts/chart_words.h"

namespace convoy::charts {
namespace {

constexpr double kDecadesOfLinear = 2;  // a larger range gets a logarithmic axis
constexpr double kPad = 0.04;  // share of the axis left empty beyond the outermost swept values

bool spans_decades(const AxisRange& range) {
  return !range.empty() && range.low > 0 && std::log10(range.high / range.low) > kDecadesOfLinear;
}

// True when each value is about the same multiple of the value before, as in 128, 256, 512.
bool grows_by_factors(const std::vector<double>& values) {
  constexpr size_t kFewest = 3;
  constexpr double kLeastSpan = 8, kMostUneven = 1.5;
  if (values.size() < kFewest || values.front() <= 0) return false;
  AxisRange factors;
  for (size_t at = 1; at < values.size(); ++at) factors.include(values[at] / values[at - 1]);
  return values.back() >= kLeastSpan * values.front() && factors.high < kMostUneven * factors.low;
}

std::string minus_signs(std::string text) {
  for (size_t at = text.find('-'); at != text.npos; at = text.find('-', at))
    text.replace(at, 1, "\u2212");
  return text;
}

std::string power_label(int exponent) { return minus_signs(fmt::format("10^{{{}}}", exponent)); }

// The label of a tick on a logarithmic axis. Unlike number_label() it writes 1, 10 and 100 as
// powers of ten too.
std::string decade_label(double value) {
  const double exponent = std::round(std::log10(value));
  const bool is_power = std::fabs(value / std::pow(10, exponent) - 1) < 1e-9;
  return is_power ? power_label(static_cast<int>(exponent)) : number_label(value);
}

// Ticks at powers of ten. Fewer than two ticks would not show the scale: the ticks are then at 1, 2
// and 5 times powers of ten and, if even these are fewer than two, in even steps. `most`: number of
// labels that fit.
std::vector<AxisTick> log_ticks(const AxisRange& range, int most) {
  constexpr double kSlack = 1e-9;
  std::vector<AxisTick> ticks;
  const int first = static_cast<int>(std::ceil(std::log10(range.low) - kSlack));
  const int last = static_cast<int>(std::floor(std::log10(range.high) + kSlack));
  const int count = last - first + 1;
  if (count >= 2) {
    const int apart = std::max(1, (count + most - 1) / most);
    for (int exponent = first - 1; exponent <= last; ++exponent) {
      const double power = std::pow(10, exponent);
      if (exponent >= first)
        ticks.push_back({power, exponent % apart == 0 ? power_label(exponent) : ""});
      for (int factor = 2; 2 * count <= most && factor < 10; ++factor)
        if (factor * power >= range.low && factor * power <= range.high)
          ticks.push_back({factor * power, ""});
    }
    return ticks;
  }
  for (int exponent = first - 1; exponent <= last; ++exponent)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double value = factor * std::pow(10, exponent);
      if (value >= range.low && value <= range.high) ticks.push_back({value, number_label(value)});
    }
  if (ticks.size() >= 2) return ticks;
  ticks.clear();
  constexpr int kWanted = 5;
  for (const double value : nice_ticks(range.low, range.high, kWanted))
    if (value >= range.low && value <= range.high) ticks.push_back({value, number_label(value)});
  return ticks;
}

void widen_log(AxisRange& range, double share) {
  constexpr double kLeastFactor = 1.02;
  if (range.high / range.low < kLeastFactor) range = {range.low / 1.1, range.high * 1.1};
  const double factor = std::pow(range.high / range.low, share);
  range = {range.low / factor, range.high * factor};
}

AxisRange points_range(const std::vector<PlotSeries>& series, bool positive_only) {
  AxisRange range;
  for (const PlotSeries& one : series)
    for (const PlotPoint& point : one.points)
      if (std::isfinite(point.value) && (!positive_only || point.value > 0))
        range.include(point.value);
  return range;
}

AxisRange values_of(const std::vector<PlotSeries>& series, bool positive_only) {
  const AxisRange points = points_range(series, positive_only);
  AxisRange range = points;
  const auto include = [&](double value) {
    if (std::isfinite(value) && (!positive_only || value > 0)) range.include(value);
  };
  for (const PlotSeries& one : series) {
    // On a logarithmic axis the low end of a whisker may be arbitrarily far away, so it is included
    // only down to a tenth of the lowest point.
    const double least = positive_only && one.whiskers ? points.low / 10 : -INFINITY;
    for (const BandPoint& point : one.band) {
      include(std::max(point.low, least));
      include(point.high);
    }
    for (const PlotBar& bar : one.bars) {
      include(0);
      include(bar.height);
    }
  }
  return range;
}

AxisRange places_of_data(const std::vector<PlotSeries>& series, const PlotOptions& options) {
  AxisRange range;
  for (const double value : options.x_values) range.include(value);
  for (const PlotSeries& one : series) {
    for (const PlotPoint& point : one.points) range.include(point.x);
    for (const BandPoint& point : one.band) range.include(point.x);
    for (const PlotBar& bar : one.bars) {
      range.include(static_cast<double>(bar.low));
      range.include(static_cast<double>(bar.high));
    }
  }
  return range;
}

// Keeps only every second, third, ... name of evenly spaced ticks, so that no names touch.
void thin_evenly(ChartAxis& axis, double pixels, double font_size) {
  double widest = 0;
  for (const AxisTick& tick : axis.ticks)
    widest = std::max(widest, text_width(tick.text, font_size));
  const double step = (axis.share(axis.ticks[1].at) - axis.share(axis.ticks[0].at)) * pixels;
  const auto apart =
      std::max<size_t>(1, static_cast<size_t>(std::ceil((widest + 0.6 * font_size) / step)));
  for (size_t at = 0; at < axis.ticks.size(); ++at)
    if (at % apart != 0) axis.ticks[at].text.clear();
}

bool evenly_spaced(const std::vector<double>& values) {
  if (values.size() < 3) return false;
  const double step = values[1] - values[0];
  for (size_t at = 2; at < values.size(); ++at)
    if (std::fabs(values[at] - values[at - 1] - step) > 1e-6 * step) return false;
  return true;
}

// Removes names that would touch the name before them.
void thin_names(ChartAxis& axis, double pixels, double font_size) {
  const double gap = 0.6 * font_size;
  double free_from = -INFINITY;
  for (AxisTick& tick : axis.ticks) {
    if (tick.text.empty()) continue;
    const double half = text_width(tick.text, font_size) / 2;
    const double center = axis.share(tick.at) * pixels;
    if (center - half < free_from)
      tick.text.clear();
    else
      free_from = center + half + gap;
  }
}

void set_names(ChartAxis& axis, const PlotOptions& options, double pixels) {
  const double count = static_cast<double>(options.x_names.size());
  const double font_size = options.font_size;
  axis.range = {-0.5, count - 0.5};
  double widest = 0;
  for (const std::string& name : options.x_names)
    widest = std::max(widest, text_width(name, font_size));
  axis.upright = widest + 0.6 * font_size > pixels / count;
  const auto apart = static_cast<size_t>(std::ceil(1.3 * font_size * count / pixels));
  for (size_t place = 0; place < options.x_names.size(); ++place) {
    const std::string& name = options.x_names[place];
    const bool named = !axis.upright || place % apart == 0;
    axis.ticks.push_back(
        {static_cast<double>(place),
         named ? (axis.upright ? fitted(name, kMostUpright * font_size, font_size) : name) : ""});
  }
}

}  // namespace

void AxisRange::include(double value) {
  low = std::min(low, value);
  high = std::max(high, value);
}

AxisScale automatic_scale(const std::vector<double>& values) {
  AxisRange range;
  for (const double value : values)
    if (std::isfinite(value)) range.include(value);
  return spans_decades(range) ? AxisScale::Log : AxisScale::Linear;
}

bool ChartAxis::shows(double value) const {
  return std::isfinite(value) && (!logarithmic || value > 0);
}

double ChartAxis::share(double value) const {
  if (logarithmic) return std::log(value / range.low) / std::log(range.high / range.low);
  return (value - range.low) / (range.high - range.low);
}

ChartAxis y_axis(const std::vector<PlotSeries>& series, const PlotOptions& options, double pixels) {
  ChartAxis axis;
  axis.logarithmic =
      options.y_scale == AxisScale::Log ||
      (options.y_scale == AxisScale::Auto && spans_decades(points_range(series, false)));
  axis.range = values_of(series, axis.logarithmic);
  if (axis.range.empty()) return {.range = {0, 1}};
  const int most = std::clamp(static_cast<int>(pixels / (2.4 * options.font_size)), 2, 12);
  if (axis.logarithmic) {
    widen_log(axis.range, 0.05);
    axis.ticks = log_ticks(axis.range, most);
    return axis;
  }
  AxisRange& range = axis.range;
  const double largest = std::max(std::fabs(range.low), std::fabs(range.high));
  if (range.high - range.low <= 1e-9 * largest) {
    const double margin = largest == 0 ? 1 : 0.1 * largest;
    range = {range.low - margin, range.high + margin};
  }
  for (const double value : nice_ticks(range.low, range.high, std::min(most - 1, 7)))
    axis.ticks.push_back({value, number_label(value)});
  range = {std::min(range.low, axis.ticks.front().at), std::max(range.high, axis.ticks.back().at)};
  return axis;
}

ChartAxis x_axis(const std::vector<PlotSeries>& series, const PlotOptions& options, double pixels) {
  ChartAxis axis;
  if (!options.x_names.empty()) {
    set_names(axis, options, pixels);
    return axis;
  }
  AxisRange& range = axis.range;
  range = places_of_data(series, options);
  if (range.empty()) return {.range = {0, 1}};
  const bool decades = spans_decades(range);
  const bool factors = decades || grows_by_factors(options.x_values);
  axis.logarithmic =
      range.low > 0 && range.low < range.high &&
      (options.x_scale == AxisScale::Log || (options.x_scale == AxisScale::Auto && factors));
  if (range.low == range.high) {
    const double margin = range.low == 0 ? 1 : 0.5 * std::fabs(range.low);
    range = {range.low - margin, range.high + margin};
  }
  const int most = std::clamp(static_cast<int>(pixels / (4 * options.font_size)), 2, 9);
  if (options.x_values.empty()) {
    // Steps are numbered from 1, but an axis that begins at 0 has rounder ticks.
    if (!axis.logarithmic && range.low > 0 && range.low < 0.05 * range.high) range.low = 0;
  } else if (axis.logarithmic) {
    widen_log(range, kPad);
  } else {
    range = {range.low - kPad * (range.high - range.low),
             range.high + kPad * (range.high - range.low)};
  }
  if (options.x_values.empty() || options.round_ticks) {
    if (axis.logarithmic) axis.ticks = log_ticks(range, most);
    for (const double value : nice_ticks(range.low, range.high, most))
      if (!axis.logarithmic && value >= range.low && value <= range.high)
        axis.ticks.push_back({value, number_label(value)});
  } else {
    for (const double value : options.x_values)
      axis.ticks.push_back(
          {value, decades && axis.logarithmic ? decade_label(value) : number_label(value)});
    if (!axis.logarithmic && evenly_spaced(options.x_values)) {
      thin_evenly(axis, pixels, options.font_size);
      return axis;
    }
  }
  thin_names(axis, pixels, options.font_size);
  return axis;
}

std::string number_label(double value) {
  constexpr double kLeast = 1e-3, kMost = 1e6;  // limits of values written without a power of ten
  if (value == 0) return "0";
  // Labels are round numbers. Six digits hide the rounding errors of binary numbers.
  const double magnitude = std::fabs(value);
  if (magnitude >= kLeast && magnitude < kMost) return minus_signs(fmt::format("{:.6g}", value));
  const std::string text = fmt::format("{:.5e}", value);
  const size_t e = text.find('e');
  const int exponent = std::stoi(text.substr(e + 1));
  const std::string digits =
      fmt::format("{:.6g}", text_as<double>(std::string_view(text).substr(0, e)).value());
  if (digits == "1") return power_label(exponent);
  return minus_signs(digits) + "\u00d7" + power_label(exponent);
}

std::vector<double> nice_ticks(double low, double high, int wanted) {
  const double rough = (high - low) / std::max(1, wanted);
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = 10 * power;
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  std::vector<double> ticks;
  const double first = std::floor(low / step + 1e-9);
  const double last = std::ceil(high / step - 1e-9);
  for (double position = first; position <= last; ++position)
    ticks.push_back(position * step + 0.0);
  return ticks;
}

}  // namespace convoy::charts

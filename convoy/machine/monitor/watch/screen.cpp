// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/screen.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "convoy/core/telemetry/progress.h"

namespace convoy::monitor {
namespace {

constexpr size_t kMostScreenRows = 1024;
constexpr int kTallestCurve = 8;
constexpr const char* kRed = "\x1b[31m";
constexpr const char* kGreen = "\x1b[32m";
constexpr const char* kYellow = "\x1b[33m";
constexpr const char* kBold = "\x1b[1m";
constexpr const char* kPlain = "\x1b[0m";

constexpr std::array<const char*, 9> kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

std::string number(const std::optional<double>& value, const char* unit, int decimals = 0) {
  return value ? fmt::format("{:.{}f}{}", *value, decimals, unit) : "-";
}

// The text is ASCII: bytes are columns.
std::string cut(const std::string& text, int columns) {
  return text.substr(0, static_cast<size_t>(std::max(0, columns)));
}

std::string gpu_figures(const DeviceReading& device) {
  const MetricValues& values = device.values;
  if (!device.problem.empty()) return device.problem;
  std::string text =
      fmt::format("busy {:>4}  sm {:>4}  mem {:>6}/{} MiB  {:>5} {:>4}",
                  number(values[Metric::GpuUtil], "%"), number(values[Metric::SmActive], "%"),
                  number(values[Metric::MemUsed], ""), number(values[Metric::MemTotal], ""),
                  number(values[Metric::Power], "W"), number(values[Metric::Temperature], "C"));
  if (device.throttle_reasons) {
    const std::string words = throttle_text(*device.throttle_reasons);
    if (words != "none") text += "  " + words;
  }
  return text;
}

}  // namespace

std::vector<std::string> bar_chart(const std::deque<double>& percents, int width, int height) {
  std::vector<std::string> lines(static_cast<size_t>(std::max(height, 0)));
  const auto shown = std::min(static_cast<int>(percents.size()), width);
  for (int line = 0; line < height; ++line) {
    std::string& text = lines[static_cast<size_t>(line)];
    text.append(static_cast<size_t>(std::max(width - shown, 0)), ' ');
    const int below = height - 1 - line;  // whole lines under this one
    for (int at = 0; at < shown; ++at) {
      const double percent = percents[percents.size() - static_cast<size_t>(shown - at)];
      const double eighths = std::clamp(percent, 0.0, 100.0) / 100 * 8 * height;
      const auto here = static_cast<int>(std::lround(eighths)) - 8 * below;
      text += kBlocks[static_cast<size_t>(std::clamp(here, 0, 8))];
    }
  }
  return lines;
}

void Screen::put(const std::string& label, const std::string& figures,
                 std::optional<double> percent, bool lost) {
  if (!curves_.contains(label)) order_.push_back(label);
  Curve& curve = curves_[label];
  curve.label = label;
  curve.figures = figures;
  curve.lost = lost;
  curve.percents.push_back(percent.value_or(0));
  if (curve.percents.size() > kMostScreenRows) curve.percents.pop_front();
}

void Screen::add(const MachineReading& reading) {
  elapsed_s_ = reading.elapsed_s;
  for (const DeviceReading& device : reading.devices) {
    const MetricValues& values = device.values;
    std::optional<double> load = values[Metric::GpuUtil];
    // A MIG instance always reports its memory, and may report nothing else.
    if (!load) load = values[Metric::SmActive];
    if (!load && values[Metric::MemUsed] && values[Metric::MemTotal].value_or(0) > 0)
      load = 100 * *values[Metric::MemUsed] / *values[Metric::MemTotal];
    put(device.label(), gpu_figures(device), load, !device.problem.empty());
  }
  const HostValues& host = reading.host;
  put("cpu",
      fmt::format("busy {:>4}  load {}", number(host[HostMetric::CpuBusy], "%"),
                  number(host[HostMetric::Load], "", 2)),
      host[HostMetric::CpuBusy], false);
  std::optional<double> share;
  if (host[HostMetric::MemUsed] && host[HostMetric::MemTotal].value_or(0) > 0)
    share = 100 * *host[HostMetric::MemUsed] / *host[HostMetric::MemTotal];
  put("memory",
      fmt::format(
          "used {:>4}  {}/{} MiB  disk r {} w {}  net rx {} tx {} MiB/s", number(share, "%"),
          number(host[HostMetric::MemUsed], ""), number(host[HostMetric::MemTotal], ""),
          number(host[HostMetric::DiskRead], "", 1), number(host[HostMetric::DiskWrite], "", 1),
          number(host[HostMetric::NetReceived], "", 1), number(host[HostMetric::NetSent], "", 1)),
      share, false);
}

std::vector<std::string> Screen::lines(const ScreenSize& size, bool color, bool paused) const {
  const auto colored = [&](const char* code, const std::string& text) {
    return color ? code + text + kPlain : text;
  };
  std::vector<std::string> lines;
  const std::string title =
      cut(fmt::format("{}  {}{}   q quits, p pauses", title_, telemetry::duration_text(elapsed_s_),
                      paused ? "  PAUSED" : ""),
          size.columns);
  lines.push_back(colored(paused ? kYellow : kBold, title));
  const int curves = static_cast<int>(order_.size());
  // Each device has a heading and a curve. When there is no room, the last devices are left out.
  const int room = size.rows - 1;
  const int height = std::clamp(curves == 0 ? 1 : room / curves - 1, 0, kTallestCurve);
  for (const std::string& label : order_) {
    const Curve& curve = curves_.at(label);
    if (static_cast<int>(lines.size()) + 1 + height > size.rows) {
      if (static_cast<int>(lines.size()) < size.rows && height > 0) continue;
      break;
    }
    const std::string text =
        cut(fmt::format("{:<11} {}", curve.label, curve.figures), size.columns);
    lines.push_back(curve.lost ? colored(kRed, text) : text);
    for (const std::string& line : bar_chart(curve.percents, size.columns, height))
      lines.push_back(colored(curve.lost ? kRed : kGreen, line));
  }
  return lines;
}

std::string dmon_heading() {
  return "# device        pwr  gtemp  mtemp   util  smact    mem      fb  throttle\n"
         "# Idx             W      C      C      %      %      %     MiB\n";
}

std::string dmon_rows(const MachineReading& reading) {
  std::string text;
  for (const DeviceReading& device : reading.devices) {
    const MetricValues& values = device.values;
    if (!device.problem.empty()) {
      text += fmt::format("  {:<12} {}\n", device.label(), device.problem);
      continue;
    }
    text += fmt::format("  {:<12} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}  {}\n", device.label(),
                        number(values[Metric::Power], ""), number(values[Metric::Temperature], ""),
                        number(values[Metric::MemTemperature], ""),
                        number(values[Metric::GpuUtil], ""), number(values[Metric::SmActive], ""),
                        number(values[Metric::MemBusy], ""), number(values[Metric::MemUsed], ""),
                        device.throttle_reasons ? throttle_text(*device.throttle_reasons) : "-");
  }
  if (!reading.devices.empty()) return text;
  return fmt::format("  {:<12} {:>5} {:>6} {:>6} {:>6} {:>6} {:>6} {:>7}\n", "host", "-", "-", "-",
                     number(reading.host[HostMetric::CpuBusy], ""), "-", "-",
                     number(reading.host[HostMetric::MemUsed], ""));
}

}  // namespace convoy::monitor

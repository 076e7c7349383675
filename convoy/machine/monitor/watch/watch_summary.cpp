// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/watch_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/text_table.h"
#include "convoy/core/telemetry/progress.h"

namespace convoy::monitor {
namespace {

constexpr size_t kMostSummaryRows = 8192;
// Differences between GPUs that get a sentence: load in percentage points, memory as a share.
constexpr double kUnequalLoad = 15;
constexpr double kUnequalMemory = 0.15;

std::string four(const RunningFigure& figure, int decimals) {
  if (figure.empty()) return "";
  return fmt::format("{:.{}f} / {:.{}f} / {:.{}f} / {:.{}f}", figure.least(), decimals,
                     figure.mean(), decimals, figure.p95(), decimals, figure.most(), decimals);
}

nlohmann::ordered_json figures_json(const RunningFigure& figure) {
  if (figure.empty()) return nullptr;
  return {{"min", figure.least()},
          {"mean", figure.mean()},
          {"p95", figure.p95()},
          {"max", figure.most()}};
}

}  // namespace

void RunningFigure::add(double value) {
  least_ = count_ == 0 ? value : std::min(least_, value);
  most_ = count_ == 0 ? value : std::max(most_, value);
  sum_ += value;
  if (count_ % stride_ == 0) kept_.push_back(static_cast<float>(value));
  ++count_;
  if (kept_.size() < kMostSummaryRows) return;
  for (size_t at = 0; at < kept_.size() / 2; ++at) kept_[at] = kept_[2 * at];
  kept_.resize(kept_.size() / 2);
  stride_ *= 2;
}

double RunningFigure::p95() const {
  if (kept_.empty()) return 0;
  std::vector<float> sorted = kept_;
  std::sort(sorted.begin(), sorted.end());
  const auto rank = static_cast<size_t>(std::ceil(0.95 * static_cast<double>(sorted.size())));
  return static_cast<double>(sorted[std::max<size_t>(rank, 1) - 1]);
}

void Summary::add(const MachineReading& reading) {
  const double seconds = begun_ ? reading.elapsed_s - last_elapsed_s_ : 0;
  begun_ = true;
  last_elapsed_s_ = reading.elapsed_s;
  for (const DeviceReading& device : reading.devices) {
    const std::string label = device.label();
    if (!devices_.contains(label)) order_.push_back(label);
    DeviceSums& sums = devices_[label];
    sums.name = device.name;
    sums.uuid = device.uuid;
    sums.mig = device.mig;
    sums.xids.insert(sums.xids.end(), device.xids.begin(), device.xids.end());
    if (!device.problem.empty()) {
      sums.problem = device.problem;
      sums.silent_s += seconds;
      sums.last_power.reset();
      continue;
    }
    const auto add_to = [&](RunningFigure& figure, Metric metric) {
      if (const auto& value = device.values[metric]) figure.add(*value);
    };
    add_to(sums.util, Metric::GpuUtil);
    add_to(sums.sm_active, Metric::SmActive);
    add_to(sums.memory, Metric::MemUsed);
    add_to(sums.power, Metric::Power);
    add_to(sums.temperature, Metric::Temperature);
    sums.memory_total_mib = device.values[Metric::MemTotal].value_or(sums.memory_total_mib);
    if (const auto& energy = device.values[Metric::Energy]) {
      if (!sums.energy_begin) sums.energy_begin = *energy;
      sums.energy_end = *energy;
    }
    if (const auto& power = device.values[Metric::Power]) {
      if (sums.last_power) sums.power_integral_j += (*power + *sums.last_power) / 2 * seconds;
      sums.last_power = *power;
    }
    for (const ThrottleKind& kind : throttle_kinds()) {
      const auto counter = kind.counter ? device.values[*kind.counter] : std::nullopt;
      if (counter) {
        const auto before = sums.counters.find(*kind.counter);
        if (before != sums.counters.end() && *counter > before->second)
          sums.throttled_s[kind.word] += (*counter - before->second) * 1e-9;
        sums.counters[*kind.counter] = *counter;
      } else if (device.throttle_reasons && (*device.throttle_reasons & kind.bit) != 0) {
        sums.throttled_s[kind.word] += seconds;
      }
    }
  }
  for (const HostMetricFacts& facts : host_metric_table()) {
    const auto& value = reading.host[facts.metric];
    if (value && facts.metric != HostMetric::CpuEnergy) host_[facts.metric].add(*value);
  }
  if (const auto& energy = reading.host[HostMetric::CpuEnergy]) {
    if (!cpu_energy_begin_) cpu_energy_begin_ = *energy;
    cpu_energy_end_ = *energy;
  }
}

double Summary::joules(const DeviceSums& sums) const {
  if (sums.energy_begin) return *sums.energy_end - *sums.energy_begin;
  return sums.power_integral_j;
}

// A kernel that spins (a collective that waits, a hung engine) keeps the GPU "busy" and its
// multiprocessors idle.
std::string Summary::contradiction(const DeviceSums& sums) {
  constexpr double kBusy = 90, kIdle = 20;
  if (sums.util.empty() || sums.sm_active.empty()) return "";
  if (sums.util.mean() < kBusy || sums.sm_active.mean() > kIdle) return "";
  return fmt::format(
      "busy {:.0f} % of the time with {:.0f} % of its multiprocessors at work: it waits, or hangs",
      sums.util.mean(), sums.sm_active.mean());
}

std::string Summary::balance() const {
  const DeviceSums *idlest = nullptr, *busiest = nullptr, *emptiest = nullptr, *fullest = nullptr;
  std::string idlest_label, busiest_label, emptiest_label, fullest_label;
  int told = 0;
  const auto load = [](const DeviceSums& sums) {
    return sums.sm_active.empty() ? sums.util.mean() : sums.sm_active.mean();
  };
  for (const std::string& label : order_) {
    const DeviceSums& sums = devices_.at(label);
    if (!sums.problem.empty()) return fmt::format("broken: {} stopped answering", label);
    if (sums.mig || (sums.util.empty() && sums.sm_active.empty())) continue;
    ++told;
    if (idlest == nullptr || load(sums) < load(*idlest)) idlest = &sums, idlest_label = label;
    if (busiest == nullptr || load(sums) > load(*busiest)) busiest = &sums, busiest_label = label;
    if (sums.memory.empty()) continue;
    if (emptiest == nullptr || sums.memory.most() < emptiest->memory.most())
      emptiest = &sums, emptiest_label = label;
    if (fullest == nullptr || sums.memory.most() > fullest->memory.most())
      fullest = &sums, fullest_label = label;
  }
  if (told < 2) return "";
  const double gap = load(*busiest) - load(*idlest);
  if (gap > kUnequalLoad)
    return fmt::format("unequal: {} was busy {:.0f} % of the time, {} {:.0f} %", idlest_label,
                       load(*idlest), busiest_label, load(*busiest));
  if (fullest != nullptr &&
      fullest->memory.most() - emptiest->memory.most() > kUnequalMemory * fullest->memory.most())
    return fmt::format("unequal memory: {} held {:.0f} MiB at most, {} {:.0f} MiB", emptiest_label,
                       emptiest->memory.most(), fullest_label, fullest->memory.most());
  return fmt::format("equal: the loads differ by {:.0f} points", gap);
}

std::string Summary::text(const SamplerCost& cost) const {
  std::string text = fmt::format("watched {} in {} readings\n",
                                 telemetry::duration_text(cost.seconds), cost.ticks);
  if (!order_.empty()) {
    text += "min / mean / p95 / max\n";
    std::vector<std::vector<std::string>> rows = {{"DEVICE", "BUSY %", "SM ACTIVE %", "POWER W",
                                                   "TEMP C", "PEAK MEMORY", "ENERGY", "THROTTLED"}};
    for (const std::string& label : order_) {
      const DeviceSums& sums = devices_.at(label);
      std::string throttled;
      for (const auto& [word, seconds] : sums.throttled_s)
        if (seconds > 0)
          throttled += fmt::format("{}{} {:.1f} s", throttled.empty() ? "" : ", ", word, seconds);
      const bool knows_energy = sums.energy_begin || !sums.power.empty();
      rows.push_back({label, four(sums.util, 0), four(sums.sm_active, 0), four(sums.power, 0),
                      four(sums.temperature, 0),
                      sums.memory.empty() ? ""
                                          : fmt::format("{:.0f} of {:.0f} MiB", sums.memory.most(),
                                                        sums.memory_total_mib),
                      // Without a counter the energy is a sum over single readings.
                      knows_energy ? fmt::format("{}{:.1f} kJ", sums.energy_begin ? "" : "~",
                                                 joules(sums) / 1000)
                                   : "",
                      throttled.empty() ? "-" : throttled});
    }
    text += text_table(rows);
    for (const std::string& label : order_) {
      const DeviceSums& sums = devices_.at(label);
      if (const std::string words = contradiction(sums); !words.empty())
        text += fmt::format("{}: {}\n", label, words);
      if (!sums.xids.empty())
        text += fmt::format("{}: the driver reported Xid {}\n", label, fmt::join(sums.xids, ", "));
      if (!sums.problem.empty())
        text += fmt::format("{}: no answer for {}: {}\n", label,
                            telemetry::duration_text(sums.silent_s), sums.problem);
    }
    const std::string verdict = balance();
    if (!verdict.empty()) text += fmt::format("balance: {}\n", verdict);
  }
  const auto cpu = host_.find(HostMetric::CpuBusy);
  const auto memory = host_.find(HostMetric::MemUsed);
  if (cpu != host_.end()) text += fmt::format("host: CPUs busy {} %", four(cpu->second, 0));
  if (memory != host_.end())
    text +=
        fmt::format("{}memory at most {:.0f} of {:.0f} MiB",
                    cpu != host_.end() ? ", " : "host: ", memory->second.most(),
                    host_.count(HostMetric::MemTotal) ? host_.at(HostMetric::MemTotal).most() : 0);
  if (cpu != host_.end() || memory != host_.end()) text += '\n';
  text +=
      fmt::format("watching took {:.2f} % of one core, {:.1f} ms a reading (longest {:.1f} ms)\n",
                  cost.seconds > 0 ? 100 * cost.cpu_seconds / cost.seconds : 0, cost.mean_tick_ms,
                  cost.longest_tick_ms);
  return text;
}

nlohmann::ordered_json Summary::json(const SamplerCost& cost) const {
  using nlohmann::ordered_json;
  ordered_json devices = ordered_json::object();
  for (const std::string& label : order_) {
    const DeviceSums& sums = devices_.at(label);
    ordered_json throttled = ordered_json::object();
    for (const auto& [word, seconds] : sums.throttled_s)
      if (seconds > 0) throttled[word] = seconds;
    const bool knows_energy = sums.energy_begin || !sums.power.empty();
    devices[label] = {
        {"name", sums.name},
        {"uuid", sums.uuid},
        {"gpu_util_pct", figures_json(sums.util)},
        {"sm_active_pct", figures_json(sums.sm_active)},
        {"mem_used_mib", figures_json(sums.memory)},
        {"mem_total_mib",
         sums.memory_total_mib > 0 ? ordered_json(sums.memory_total_mib) : ordered_json()},
        {"power_w", figures_json(sums.power)},
        {"temp_c", figures_json(sums.temperature)},
        {"throttled_s", throttled},
        {"energy_j", knows_energy ? ordered_json(joules(sums)) : ordered_json()},
        {"energy_is_estimate", knows_energy && !sums.energy_begin},
        {"contradiction",
         contradiction(sums).empty() ? ordered_json() : ordered_json(contradiction(sums))},
        {"xids", sums.xids},
        {"problem", sums.problem.empty() ? ordered_json() : ordered_json(sums.problem)},
        {"silent_s", sums.silent_s}};
  }
  ordered_json host = ordered_json::object();
  for (const auto& [metric, figure] : host_)
    host[host_metric_table()[static_cast<size_t>(metric)].name] = figures_json(figure);
  host["cpu_energy_j"] =
      cpu_energy_begin_ ? ordered_json(*cpu_energy_end_ - *cpu_energy_begin_) : ordered_json();
  return {{"schema", "convoy.monitor_summary.v1"},
          {"seconds", cost.seconds},
          {"looks", cost.ticks},
          {"devices", devices},
          {"host", host},
          {"balance", balance().empty() ? ordered_json() : ordered_json(balance())},
          {"own_cost",
           {{"cpu_seconds", cost.cpu_seconds},
            {"core_percent", cost.seconds > 0 ? 100 * cost.cpu_seconds / cost.seconds : 0},
            {"mean_look_ms", cost.mean_tick_ms},
            {"longest_look_ms", cost.longest_tick_ms}}}};
}

}  // namespace convoy::monitor

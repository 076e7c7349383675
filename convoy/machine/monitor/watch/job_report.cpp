// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/watch/job_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "convoy/core/base/json_member.h"
#include "convoy/core/base/text_table.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/machine/monitor/gpus/json_or_null.h"

namespace convoy::monitor {
namespace {

using nlohmann::ordered_json;

// The member `key`; null if it is absent.
const ordered_json& at(const ordered_json& object, const char* key) {
  static const ordered_json nothing;
  if (!object.is_object()) return nothing;
  const auto found = object.find(key);
  return found == object.end() ? nothing : *found;
}

std::optional<double> number(const ordered_json& value) {
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

ordered_json known(const std::optional<double>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

// The energy of the devices that the job computes on, or why it is not known.
struct Energy {
  std::optional<double> joules = {};
  bool is_estimate = false;
  std::string of = {};
  std::string reason = {};
};

Energy energy_of_gpus(const ordered_json& gpus) {
  Energy energy{.joules = 0, .of = "gpus"};
  for (const ordered_json& gpu : gpus) {
    const std::optional<double> joules = number(at(gpu, "energy_j"));
    if (!joules) {
      energy.joules.reset();
      energy.reason =
          fmt::format("the driver reports no energy of {}", at(gpu, "device").get<std::string>());
      return energy;
    }
    *energy.joules += *joules;
    energy.is_estimate = energy.is_estimate || member_or(gpu, "energy_is_estimate", false);
  }
  return energy;
}

Energy energy_of(const ordered_json& gpus, const ordered_json& summary, const JobWork& work) {
  if (!gpus.empty()) return energy_of_gpus(gpus);
  Energy energy{.joules = number(at(at(summary, "host"), "cpu_energy_j")), .of = "cpus"};
  if (!energy.joules) energy.reason = work.why_no_cpu_energy;
  return energy;
}

ordered_json per_token(const Energy& energy, int64_t tokens, const JobWork& work) {
  if (!energy.joules || tokens <= 0 || work.ranks_here < work.ranks) return nullptr;
  return *energy.joules / static_cast<double>(tokens);
}

// Mean of the means and highest of the peaks over the GPUs.
struct Figure {
  double mean = 0, peak = 0;
  int told = 0;
};

Figure over_gpus(const ordered_json& gpus, const char* metric) {
  Figure figure;
  for (const ordered_json& gpu : gpus) {
    const std::optional<double> mean = number(at(at(gpu, metric), "mean"));
    const std::optional<double> peak = number(at(at(gpu, metric), "max"));
    if (!mean || !peak) continue;
    figure.mean += *mean;
    figure.peak = std::max(figure.peak, *peak);
    ++figure.told;
  }
  if (figure.told > 0) figure.mean /= figure.told;
  return figure;
}

std::string share_text(const ordered_json& gpus, const char* metric) {
  const Figure figure = over_gpus(gpus, metric);
  return figure.told == 0 ? "unknown"
                          : fmt::format("{:.0f} % (peak {:.0f} %)", figure.mean, figure.peak);
}

constexpr double kMibOfGib = 1024;

std::string gpus_line(const ordered_json& gpus) {
  std::string line =
      fmt::format("devices: {}: busy {}, SMs active {}",
                  gpus.size() == 1 ? "1 GPU" : fmt::format("{} GPUs", gpus.size()),
                  share_text(gpus, "gpu_util_pct"), share_text(gpus, "sm_active_pct"));
  const Figure memory = over_gpus(gpus, "mem_used_mib");
  if (memory.told > 0) {
    line += fmt::format(", at most {:.1f} GiB held", memory.peak / kMibOfGib);
    if (const auto total = number(at(gpus.front(), "mem_total_mib")))
      line += fmt::format(" of {:.1f}", *total / kMibOfGib);
  }
  const Figure power = over_gpus(gpus, "power_w");
  if (power.told > 0) line += fmt::format(", {:.0f} W (peak {:.0f} W)", power.mean, power.peak);
  return line + (gpus.size() > 1 ? " each" : "");
}

std::string cpus_line(const ordered_json& report, bool is_first) {
  const ordered_json& cpu = at(report, "cpu");
  std::string line = is_first ? "devices: CPUs: " : "host: ";
  const std::optional<double> cores = number(at(at(cpu, "job_cpu_cores"), "mean"));
  const double usable = number(at(cpu, "usable_cpus")).value_or(0);
  if (cores && usable > 0)
    line += fmt::format("the job used {:.1f} of {:.0f} cores ({:.0f} %)", *cores, usable,
                        100 * *cores / usable);
  else
    line += "the job's use of them is unknown";
  const std::optional<double> most = number(at(at(cpu, "host_mem_used_mib"), "max"));
  const std::optional<double> total = number(at(cpu, "host_mem_total_mib"));
  if (most && total)
    line += fmt::format("; memory of the host: at most {:.1f} of {:.1f} GiB", *most / kMibOfGib,
                        *total / kMibOfGib);
  return line;
}

std::string joules_text(double joules) {
  if (joules < 0.01) return fmt::format("{:.2g} mJ", joules * 1000);
  if (joules < 1000) return fmt::format("{:.3g} J", joules);
  return joules < 1e6 ? fmt::format("{:.1f} kJ", joules / 1000)
                      : fmt::format("{:.2f} MJ", joules / 1e6);
}

std::string slowed_text(const ordered_json& gpus) {
  std::string text;
  for (const ordered_json& gpu : gpus) {
    const ordered_json& throttled = at(gpu, "throttled_s");
    if (!throttled.is_object()) continue;
    for (const auto& [reason, value] : throttled.items())
      if (const auto seconds = number(value); seconds && *seconds >= 0.05)
        text += fmt::format("{}{} {:.1f} s by {}", text.empty() ? "" : ", ",
                            member_or(gpu, "device", std::string("GPU")), *seconds, reason);
  }
  return text;
}

std::string energy_line(const ordered_json& report) {
  const std::optional<double> joules = number(at(report, "energy_j"));
  if (!joules)
    return fmt::format("energy: unknown: {}",
                       member_or(report, "energy_reason", std::string("it was not measured")));
  std::string line = fmt::format(
      "energy: {}{} in {} of training",
      member_or(report, "energy_is_estimate", false) ? "about " : "", joules_text(*joules),
      telemetry::duration_text(number(at(report, "seconds")).value_or(0)));
  if (const auto one = number(at(report, "joules_per_token")))
    line += fmt::format(", {} a token", joules_text(*one));
  if (const auto one = number(at(report, "joules_per_supervised_token")))
    line += fmt::format(", {} a supervised one", joules_text(*one));
  const int64_t here = member_or(report, "ranks_here", int64_t{1});
  const int64_t ranks = member_or(report, "ranks", int64_t{1});
  if (here < ranks)
    line += fmt::format(", for {} of {} ranks: the others are elsewhere", here, ranks);
  return line;
}

const ordered_json& gpus_of(const ordered_json& report) {
  static const ordered_json none = ordered_json::array();
  const ordered_json& gpus = at(report, "gpus");
  return gpus.is_array() ? gpus : none;
}

}  // namespace

ordered_json job_report(const ordered_json& summary, const JobWork& work) {
  ordered_json gpus = ordered_json::array();
  for (const auto& [label, told] : summary["devices"].items()) {
    if (!work.uuids.contains(told["uuid"].get<std::string>())) continue;
    ordered_json gpu = {{"device", label}};
    gpu.update(told);
    gpus.push_back(std::move(gpu));
  }
  const ordered_json& host = summary["host"];
  const Energy energy = energy_of(gpus, summary, work);
  return {{"schema", "convoy.job_devices.v1"},
          {"host", work.host},
          {"ranks_here", work.ranks_here},
          {"ranks", work.ranks},
          {"seconds", summary["seconds"]},
          {"looks", summary["looks"]},
          {"gpus", gpus},
          {"cpu",
           {{"usable_cpus", work.usable_cpus},
            {"job_cpu_cores", at(host, "job_cpu_cores")},
            {"job_mem_mib", at(host, "job_mem_mib")},
            {"host_mem_used_mib", at(host, "host_mem_used_mib")},
            {"host_mem_total_mib", known(number(at(at(host, "host_mem_total_mib"), "max")))},
            {"host_mem_read_mib_s", at(host, "host_mem_read_mib_s")},
            {"host_mem_write_mib_s", at(host, "host_mem_write_mib_s")},
            {"host_mem_traffic_reason", text_or_null(work.why_no_memory_traffic)}}},
          {"energy_of", energy.of},
          {"energy_j", known(energy.joules)},
          {"energy_is_estimate", energy.is_estimate},
          {"energy_reason", text_or_null(energy.reason)},
          {"tokens", work.tokens > 0 ? ordered_json(work.tokens) : ordered_json()},
          {"supervised_tokens",
           work.supervised_tokens > 0 ? ordered_json(work.supervised_tokens) : ordered_json()},
          {"joules_per_token", per_token(energy, work.tokens, work)},
          {"joules_per_supervised_token", per_token(energy, work.supervised_tokens, work)},
          {"balance", gpus.empty() ? ordered_json() : summary["balance"]}};
}

std::vector<std::string> job_report_lines(const ordered_json& report) {
  const ordered_json& gpus = gpus_of(report);
  std::vector<std::string> lines;
  if (!gpus.empty()) lines.push_back(gpus_line(gpus));
  lines.push_back(cpus_line(report, gpus.empty()));
  // On CPUs the energy is mostly unknown; metrics.json has the reason.
  if (!gpus.empty() || number(at(report, "energy_j"))) lines.push_back(energy_line(report));
  if (const std::string slowed = slowed_text(gpus); !slowed.empty())
    lines.back() += "; slowed: " + slowed;
  return lines;
}

std::string job_report_table(const ordered_json& report) {
  const ordered_json& gpus = gpus_of(report);
  if (gpus.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"DEVICE", "BUSY %", "SM ACTIVE %", "POWER W", "PEAK MEMORY", "ENERGY"}};
  const auto mean_and_peak = [](const ordered_json& gpu, const char* metric) {
    const std::optional<double> mean = number(at(at(gpu, metric), "mean"));
    const std::optional<double> peak = number(at(at(gpu, metric), "max"));
    return mean && peak ? fmt::format("{:.0f} / {:.0f}", *mean, *peak) : std::string();
  };
  for (const ordered_json& gpu : gpus) {
    const std::optional<double> memory = number(at(at(gpu, "mem_used_mib"), "max"));
    const std::optional<double> joules = number(at(gpu, "energy_j"));
    rows.push_back({member_or(gpu, "device", std::string()), mean_and_peak(gpu, "gpu_util_pct"),
                    mean_and_peak(gpu, "sm_active_pct"), mean_and_peak(gpu, "power_w"),
                    memory ? fmt::format("{:.0f} MiB", *memory) : "",
                    joules ? joules_text(*joules) : ""});
  }
  return "mean / peak\n" + text_table(rows);
}

}  // namespace convoy::monitor

// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/monitor/doctor/memory_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/text_table.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kTight = 0.05;   // share of a device that is left at the peak
constexpr double kUnequal = 1.2;  // ratio of the largest and the smallest peak of the ranks
// The part of events.jsonl that is read, at its end: rows of many ranks are long.
constexpr int64_t kTailBytes = 1 << 20;

// The newest row of `word` in the last part of the file.
json last_row(const fs::path& path, const std::string& word) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return nullptr;
  const auto size = static_cast<int64_t>(file.tellg());
  const int64_t begin = std::max<int64_t>(0, size - kTailBytes);
  file.seekg(begin);
  std::string text(static_cast<size_t>(size - begin), '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  size_t end = text.rfind('\n');
  while (end != std::string::npos && end > 0) {
    const size_t before = text.rfind('\n', end - 1);
    const size_t from = before == std::string::npos ? 0 : before + 1;
    json row = json::parse(text.substr(from, end - from), nullptr, /*allow_exceptions=*/false);
    if (row.is_object() && row.value("event", json()) == word) return row;
    end = before;
  }
  return nullptr;
}

int64_t item(const json& row, const char* key, size_t rank) {
  const auto found = row.find(key);
  if (found == row.end() || !found->is_array() || rank >= found->size()) return -1;
  const json& value = (*found)[rank];
  return value.is_number() ? value.get<int64_t>() : -1;
}

void add_placements(const fs::path& run, std::vector<RankMemoryFigures>& ranks) {
  // A run that was continued elsewhere has older files too, so newer files are read last.
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(run / "logs", absent))
    if (entry.path().filename().string().starts_with("placement-"))
      files.emplace_back(entry.last_write_time(absent), entry.path());
  std::sort(files.begin(), files.end());
  for (const auto& [time, path] : files) {
    const json rows = json::parse(read_file(path), nullptr, /*allow_exceptions=*/false);
    if (!rows.is_array()) continue;
    for (const json& row : rows) {
      if (!row.is_object() || !row.value("rank", json()).is_number_integer()) continue;
      const auto rank = row["rank"].get<int64_t>();
      if (rank < 0 || rank >= static_cast<int64_t>(ranks.size())) continue;
      RankMemoryFigures& figures = ranks[static_cast<size_t>(rank)];
      const auto text = [&](const char* key) {
        const json value = row.value(key, json());
        return value.is_string() ? value.get<std::string>() : std::string();
      };
      figures.host = text("host");
      figures.device = text("device");
      figures.device_uuid = text("device_uuid");
    }
  }
}

std::string mib_text(int64_t bytes) { return bytes < 0 ? "" : fmt::format("{}", bytes >> 20); }

std::string number(const std::optional<int64_t>& value) {
  return value ? std::to_string(*value) : "";
}

// The largest device memory of a rank in MiB, as far as the rank has reported it.
int64_t most_mib(const RankMemoryFigures& rank) {
  return std::max(rank.peak_bytes, rank.reserved_bytes) >> 20;
}

bool is_on(const RankMemoryFigures& rank, const DeviceReading& device, const std::string& host) {
  return !rank.device_uuid.empty() && rank.device_uuid == device.uuid &&
         (rank.host.empty() || rank.host == host);
}

MemoryReport::Pool pool_of(const DeviceReading& device, const MemoryInputs& inputs) {
  const auto whole = [](const std::optional<double>& value) -> std::optional<int64_t> {
    if (!value) return std::nullopt;
    return static_cast<int64_t>(*value);
  };
  MemoryReport::Pool pool{.label = device.label(),
                          .total_mib = whole(device.values[Metric::MemTotal]),
                          .used_mib = whole(device.values[Metric::MemUsed]),
                          .kept_mib = whole(device.values[Metric::MemReserved]),
                          .processes = whole(device.values[Metric::Processes])};
  int64_t reserved = 0, most = 0;
  if (inputs.run)
    for (const RankMemoryFigures& rank : inputs.run->ranks) {
      if (!is_on(rank, device, inputs.host)) continue;
      pool.ranks.push_back(rank.rank);
      reserved += std::max<int64_t>(0, rank.reserved_bytes) >> 20;
      most += most_mib(rank);
    }
  if (!pool.total_mib || !pool.used_mib) return pool;
  const bool runs_here = inputs.run && inputs.run->running && !pool.ranks.empty();
  // others_mib includes the driver's context of each rank, some hundreds of MiB.
  pool.others_mib = std::max<int64_t>(0, *pool.used_mib - (runs_here ? reserved : 0));
  pool.headroom_mib = *pool.total_mib - pool.kept_mib.value_or(0) - *pool.others_mib - most;
  return pool;
}

MemoryReport::Pool pool_of_host(const MemoryInputs& inputs) {
  const HostFacts& facts = inputs.facts;
  MemoryReport::Pool pool{.label = "host memory",
                          .total_mib = facts.memory_mib,
                          .used_mib = facts.memory_mib - facts.available_mib,
                          .kept_mib = std::nullopt};
  int64_t held = 0, most = 0;
  if (inputs.run)
    for (const RankMemoryFigures& rank : inputs.run->ranks) {
      if (!rank.device_uuid.empty() || (!rank.host.empty() && rank.host != inputs.host)) continue;
      pool.ranks.push_back(rank.rank);
      held += std::max<int64_t>(0, rank.held_bytes) >> 20;
      most += most_mib(rank);
    }
  const bool runs_here = inputs.run && inputs.run->running && !pool.ranks.empty();
  const int64_t free = facts.usable_mib > 0 ? facts.usable_mib : facts.available_mib;
  pool.others_mib = std::max<int64_t>(0, *pool.used_mib - (runs_here ? held : 0));
  pool.headroom_mib = free + (runs_here ? held : 0) - most;
  return pool;
}

void judge(MemoryReport& report) {
  const MemoryReport::Pool* tightest = nullptr;
  double least = 2;
  for (const MemoryReport::Pool& pool : report.pools) {
    if (!pool.headroom_mib || pool.total_mib.value_or(0) <= 0) continue;
    if (report.run && pool.ranks.empty()) continue;
    const double share =
        static_cast<double>(*pool.headroom_mib) / static_cast<double>(*pool.total_mib);
    if (share < least) least = share, tightest = &pool;
  }
  if (tightest == nullptr) {
    report.words = report.run ? "unknown: none of the run's ranks computes on this host"
                              : "unknown: no device reports its memory";
    return;
  }
  const std::string pool = fmt::format("{} has {} MiB of {} left", tightest->label,
                                       *tightest->headroom_mib, *tightest->total_mib);
  const char* const when = report.run ? " at the peak" : "";
  if (least < 0) {
    report.fit = MemoryFit::TooMuch;
    report.words =
        fmt::format("does not fit beside the memory of other programs: {}{}", pool, when);
  } else if (least < kTight) {
    report.fit = MemoryFit::Tight;
    report.words =
        fmt::format("tight: {}{}; a longer row or a fragmented allocator may run out", pool, when);
  } else {
    report.fit = MemoryFit::Fits;
    report.words = fmt::format("{}: {}{}", report.run ? "fits" : "free", pool, when);
  }
}

std::string imbalance_of(const RunMemory& run) {
  const RankMemoryFigures *fullest = nullptr, *emptiest = nullptr;
  for (const RankMemoryFigures& rank : run.ranks) {
    if (rank.peak_bytes < 0) continue;
    if (fullest == nullptr || rank.peak_bytes > fullest->peak_bytes) fullest = &rank;
    if (emptiest == nullptr || rank.peak_bytes < emptiest->peak_bytes) emptiest = &rank;
  }
  if (run.ranks.size() < 2 || fullest == nullptr) return "";
  const double ratio = static_cast<double>(fullest->peak_bytes) /
                       std::max(1.0, static_cast<double>(emptiest->peak_bytes));
  if (ratio < kUnequal) return "equal: the ranks' peaks are alike";
  return fmt::format("unequal: rank {}'s peak is {:.1f} times rank {}'s", fullest->rank, ratio,
                     emptiest->rank);
}

const char* fit_word(MemoryFit fit) {
  switch (fit) {
    case MemoryFit::Fits:
      return "fits";
    case MemoryFit::Tight:
      return "tight";
    case MemoryFit::TooMuch:
      return "too_much";
    default:
      return "unknown";
  }
}

}  // namespace

RunMemory read_run_memory(const fs::path& run) {
  RunMemory memory{.name = run.filename().string()};
  memory.running = telemetry::run_folder_is_held(run);
  const json end = last_row(run / "events.jsonl", "end");
  memory.state = memory.running ? "running" : end.is_object() ? "ended" : "not running";
  const json step = last_row(run / "events.jsonl", "step");
  if (!step.is_object())
    throw DataError("the run has not reported a step yet",
                    {.file = (run / "events.jsonl").string(),
                     .hint = "`convoy train CONFIG --dry-run` estimates the memory of a step"});
  memory.step = item({{"step", {step.value("step", json())}}}, "step", 0);
  const auto peaks = step.find("rank_memory_bytes");
  if (peaks == step.end() || !peaks->is_array())
    throw DataError("the run's steps do not report its ranks' memory",
                    {.file = (run / "events.jsonl").string(),
                     .hint = "runs of `convoy train` do; another program wrote this one"});
  for (size_t rank = 0; rank < peaks->size(); ++rank)
    memory.ranks.push_back({.rank = static_cast<int>(rank),
                            .held_bytes = item(step, "rank_held_bytes", rank),
                            .peak_bytes = item(step, "rank_memory_bytes", rank),
                            .reserved_bytes = item(step, "rank_reserved_bytes", rank)});
  add_placements(run, memory.ranks);
  return memory;
}

MemoryReport check_memory(const MemoryInputs& inputs) {
  MemoryReport report{.run = inputs.run};
  for (const DeviceReading& device : inputs.devices)
    report.pools.push_back(pool_of(device, inputs));
  const bool all_on_gpus =
      inputs.run && std::all_of(inputs.run->ranks.begin(), inputs.run->ranks.end(),
                                [](const auto& rank) { return !rank.device_uuid.empty(); });
  // Ranks on CPUs use the host's memory. It is left out when all ranks of the run are on GPUs.
  if (!all_on_gpus) report.pools.push_back(pool_of_host(inputs));
  judge(report);
  if (inputs.run) report.imbalance = imbalance_of(*inputs.run);
  return report;
}

std::string memory_report_text(const MemoryReport& report) {
  std::string text;
  if (report.run) {
    text +=
        fmt::format("{}: step {}, {}\n\n", report.run->name, report.run->step, report.run->state);
    std::vector<std::vector<std::string>> rows = {
        {"RANK", "HOST", "DEVICE", "HELD MiB", "PEAK MiB", "RESERVED MiB"}};
    for (const RankMemoryFigures& rank : report.run->ranks)
      rows.push_back({std::to_string(rank.rank), rank.host, rank.device, mib_text(rank.held_bytes),
                      mib_text(rank.peak_bytes),
                      rank.reserved_bytes < 0 ? "-" : mib_text(rank.reserved_bytes)});
    text += text_table(rows) + "\n";
  }
  std::vector<std::vector<std::string>> rows = {{"PLACE", "TOTAL MiB", "USED MiB", "BY OTHERS MiB",
                                                 report.run ? "LEFT AT PEAK MiB" : "FREE MiB",
                                                 "PROCESSES", "RANKS"}};
  for (const MemoryReport::Pool& pool : report.pools)
    rows.push_back({pool.label, number(pool.total_mib), number(pool.used_mib),
                    report.run ? number(pool.others_mib) : "", number(pool.headroom_mib),
                    number(pool.processes), fmt::format("{}", fmt::join(pool.ranks, ","))});
  text += text_table(rows) + fmt::format("\nverdict: {}\n", report.words);
  if (!report.imbalance.empty()) text += fmt::format("balance: {}\n", report.imbalance);
  return text;
}

std::string memory_report_json(const MemoryReport& report) {
  using nlohmann::ordered_json;
  const auto known = [](int64_t value) { return value < 0 ? ordered_json() : ordered_json(value); };
  const auto optional = [](const std::optional<int64_t>& value) {
    return value ? ordered_json(*value) : ordered_json();
  };
  ordered_json run;
  if (report.run) {
    ordered_json ranks = ordered_json::array();
    for (const RankMemoryFigures& rank : report.run->ranks)
      ranks.push_back({{"rank", rank.rank},
                       {"host", rank.host},
                       {"device", rank.device},
                       {"device_uuid", rank.device_uuid},
                       {"held_bytes", known(rank.held_bytes)},
                       {"peak_bytes", known(rank.peak_bytes)},
                       {"reserved_bytes", known(rank.reserved_bytes)}});
    run = {{"name", report.run->name},
           {"state", report.run->state},
           {"step", report.run->step},
           {"ranks", ranks}};
  }
  ordered_json pools = ordered_json::array();
  for (const MemoryReport::Pool& pool : report.pools)
    pools.push_back({{"place", pool.label},
                     {"total_mib", optional(pool.total_mib)},
                     {"used_mib", optional(pool.used_mib)},
                     {"kept_by_driver_mib", optional(pool.kept_mib)},
                     {"others_mib", optional(pool.others_mib)},
                     {"headroom_mib", optional(pool.headroom_mib)},
                     {"processes", optional(pool.processes)},
                     {"ranks", pool.ranks}});
  const ordered_json whole = {
      {"schema", "convoy.memory_check.v1"},
      {"run", run},
      {"places", pools},
      {"verdict", fit_word(report.fit)},
      {"words", report.words},
      {"balance", report.imbalance.empty() ? ordered_json() : ordered_json(report.imbalance)}};
  return whole.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace convoy::monitor

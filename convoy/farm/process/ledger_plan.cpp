// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger_plan.h"

#include <fmt/format.h>

#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/farm/process/changed_settings.h"
#include "convoy/farm/process/ledger_record.h"
#include "convoy/farm/process/segment.h"

namespace convoy::process {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kWorkload = "process";
constexpr size_t kRowsPerAdd = 100'000;
constexpr std::chrono::milliseconds kLookEvery{500};
constexpr std::chrono::seconds kSayPlanWaitingEvery{30};

// The plan of a run is complete once the store has this one task in a group of its own.
struct PlanFacts {
  json configuration;
  std::string data_hash;
  int64_t rows = 0;

  std::string parameters() const {
    return json{{"configuration", configuration}, {"data", data_hash}, {"rows", rows}}.dump();
  }
  static PlanFacts parse(const std::string& parameters) {
    const json facts = json::parse(parameters);
    return {facts.at("configuration"), facts.at("data"), facts.at("rows")};
  }
};

std::string plan_name(const RunIdentity& run) { return run.name + "/plan"; }

fs::path folder_of(const RunIdentity& run) { return run.folder / run.version().substr(0, 16); }

// The facts of every completely planned version of the run, by version.
std::map<std::string, PlanFacts> known_plans(jobs::JobStore& store, const RunIdentity& run) {
  std::map<std::string, PlanFacts> plans;
  for (const jobs::Group& group : store.groups()) {
    if (group.name != plan_name(run) || !group.problem.empty()) continue;
    store.for_each_task(group.number, [&](const jobs::TaskRecord& task) {
      plans[group.version] = PlanFacts::parse(task.parameters);
    });
  }
  return plans;
}

void refuse_others(const RunIdentity& run, const std::map<std::string, PlanFacts>& plans) {
  if (plans.empty()) return;
  const PlanFacts& other = plans.begin()->second;
  std::string what = changed_settings(run.configuration, other.configuration);
  if (run.data_hash != other.data_hash)
    what += fmt::format("{}the data set has changed", what.empty() ? "" : "; ");
  throw ConfigError(fmt::format("'{}' was begun with other settings ({})", run.name, what),
                    {.file = run.folder.string(),
                     .hint = "to continue, restore the settings; to start anew, name another "
                             "--output or --run-dir; to keep both runs, use --keep-apart"});
}

// Shows itself once a plan has so many rows that it takes a while.
class PlanProgress {
 public:
  // `total`: 0 = unknown.
  PlanProgress(telemetry::ProgressOptions options, std::string label, int64_t total)
      : progress_(named(std::move(options), std::move(label), total)) {}
  void add() {
    if (++done_ % kShowEvery == 0) show();
  }
  void finish() {
    if (done_ >= kShowEvery) show();
    progress_.finish();
  }

 private:
  static constexpr int64_t kShowEvery = 10'000;

  static telemetry::ProgressOptions named(telemetry::ProgressOptions options, std::string label,
                                          int64_t total) {
    options.label = std::move(label);
    options.unit = "row";
    options.total = total;
    return options;
  }
  void show() { progress_.update({.done = done_}); }

  telemetry::Progress progress_;
  int64_t done_ = 0;
};

// The rows as records, at once under the file's name when all are there. Returns how many there
// are.
int64_t write_input(const fs::path& path, const PlanRequest& request) {
  AtomicFile file(path);
  PlanProgress progress(request.progress, "read the data set", 0);
  std::string buffer;
  constexpr size_t kBufferBytes = 1 << 20;
  int64_t index = 0;
  while (std::optional<SourceRow> source = request.rows()) {
    progress.add();
    InputRow row{.index = index++, .source_index = source->source_index};
    row.value = std::move(source->value);
    row.unreadable = std::move(source->unreadable);
    try {
      row.hash = row_hash(row.value);
      buffer += record_bytes(RecordKind::Input, encode_input(row));
    } catch (const json::exception& error) {
      throw DataError(fmt::format("row {} of the data set cannot be stored as text: {}",
                                  row.source_index, error.what()));
    }
    if (buffer.size() < kBufferBytes) continue;
    file.write(buffer);
    buffer.clear();
  }
  file.write(buffer);
  file.commit();
  progress.finish();
  return index;
}

// One task per record of the input segment, in its order. Returns how many there are. `rows`: 0 =
// unknown.
int64_t add_tasks(jobs::JobStore& store, int64_t group, const fs::path& input,
                  const PlanRequest& request, int64_t rows) {
  PlanProgress progress(request.progress, "put into the ledger", rows);
  std::vector<jobs::NewTask> tasks;
  int64_t count = 0;
  const auto add = [&] {
    store.add(group, tasks);
    count += static_cast<int64_t>(tasks.size());
    tasks.clear();
  };
  const int64_t sound_bytes =
      for_each_record(input, [&](int64_t offset, RecordKind, std::string& bytes) {
        const InputRow row = decode_input(bytes);
        const PlannedRow planned{.index = row.index,
                                 .source_index = row.source_index,
                                 .hash = row.hash,
                                 .offset = offset,
                                 .length = static_cast<int64_t>(bytes.size())};
        tasks.push_back({.parameters = planned.parameters(),
                         .priority = request.expected_cost ? request.expected_cost(row) : 0});
        progress.add();
        if (tasks.size() == kRowsPerAdd) add();
      });
  add();
  progress.finish();
  if (sound_bytes != static_cast<int64_t>(fs::file_size(input)))
    throw DataError(fmt::format("the rows of the run are damaged at byte {}", sound_bytes),
                    {.file = input.string(), .hint = "remove this file and run again"});
  return count;
}

}  // namespace

std::string RunIdentity::version() const {
  return sha256_hex(json{{"configuration", configuration}, {"data", data_hash}}.dump());
}

PlannedRow PlannedRow::parse(const std::string& parameters) {
  try {
    const json facts = json::parse(parameters);
    return {.index = facts.at("index"),
            .source_index = facts.at("source_index"),
            .hash = facts.at("hash"),
            .offset = facts.at("at"),
            .length = facts.at("length")};
  } catch (const json::exception& error) {
    throw DataError(fmt::format("a task in the store is not a row: {}", error.what()));
  }
}

// Canonical: keys sorted, no blanks.
std::string PlannedRow::parameters() const {
  return fmt::format(R"({{"at":{},"hash":"{}","index":{},"length":{},"source_index":{}}})", offset,
                     hash, index, length, source_index);
}

RowRun plan_rows(jobs::JobStore& store, const PlanRequest& request) {
  const RunIdentity& run = request.run;
  const std::string version = run.version();
  const std::map<std::string, PlanFacts> plans = known_plans(store, run);
  const auto known = plans.find(version);
  if (known == plans.end() && !request.keep_apart) refuse_others(run, plans);
  RowRun planned{.group = store.register_group(run.name, kWorkload, version).group.number,
                 .folder = folder_of(run)};
  const fs::path input = planned.folder / kInputSegment;
  int64_t rows = 0;
  if (!fs::exists(input)) rows = write_input(input, request);
  if (known != plans.end()) planned.rows = known->second.rows;
  // A store that was recovered may lack tasks.
  if (known == plans.end() || store.counts(planned.group).all() != planned.rows)
    planned.rows = add_tasks(store, planned.group, input, request, rows);
  if (known == plans.end()) {
    planned.is_new = true;
    const int64_t plan = store.register_group(plan_name(run), kWorkload, version).group.number;
    const jobs::NewTask facts{
        .parameters = PlanFacts{run.configuration, run.data_hash, planned.rows}.parameters()};
    store.add(plan, {&facts, 1});
  }
  return planned;
}

RowRun wait_for_plan(jobs::JobStore& store, const RunIdentity& run, std::chrono::milliseconds limit,
                     const std::function<bool()>& keep_waiting, const Log& log) {
  const std::string version = run.version();
  const auto deadline = Clock::now() + limit;
  auto say = Clock::now();
  for (;;) {
    const std::map<std::string, PlanFacts> plans = known_plans(store, run);
    const auto known = plans.find(version);
    if (known != plans.end())
      return {.group = store.register_group(run.name, kWorkload, version).group.number,
              .folder = folder_of(run),
              .rows = known->second.rows};
    if (Clock::now() >= deadline) {
      refuse_others(run, plans);
      throw ConfigError(
          fmt::format("the first node did not plan '{}' within {} s", run.name,
                      std::chrono::duration_cast<std::chrono::seconds>(limit).count()),
          {.file = store.name(), .hint = "start node 0 with the same configuration"});
    }
    if (Clock::now() >= say) {
      say = Clock::now() + kSayPlanWaitingEvery;
      log.info(fmt::format("waiting for the first node to plan '{}'", run.name));
    }
    if (!keep_waiting()) throw StopRequest("asked to stop while waiting for the first node's plan");
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace convoy::process

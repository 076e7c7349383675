// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/ledger_plan.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/farm/process/ledger/changed_settings.h"
#include "convoy/farm/process/ledger/ledger_record.h"
#include "convoy/farm/process/ledger/segment.h"

namespace convoy::process {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr const char* kWorkload = "process";
constexpr size_t kRowsPerAdd = 100'000;
constexpr size_t kBytesPerAdd = 64 << 20;
constexpr std::chrono::milliseconds kLookEvery{500};
constexpr std::chrono::seconds kSayPlanWaitingEvery{30};

// The facts of a complete plan. A plan is complete once the store has these facts as one task in a
// group of its own.
struct PlanFacts {
  json configuration;
  std::string data_hash;
  int64_t rows = 0;
  bool texts_in_store = false;

  std::string parameters() const {
    json facts = {{"configuration", configuration}, {"data", data_hash}, {"rows", rows}};
    if (texts_in_store) facts["texts_in_store"] = true;
    return facts.dump();
  }
  static PlanFacts parse(const std::string& parameters) {
    const json facts = json::parse(parameters);
    return {facts.at("configuration"), facts.at("data"), facts.at("rows"),
            facts.value("texts_in_store", false)};
  }
};

constexpr std::string_view kPlanSuffix = "/plan";

std::string plan_name(const RunIdentity& run) { return run.name + std::string(kPlanSuffix); }

fs::path folder_of(const RunIdentity& run, const std::string& version) {
  return run.folder / version.substr(0, 16);
}

// The facts of each version of the run that is planned completely, by version.
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
  if (run.texts_in_store != other.texts_in_store)
    what += fmt::format("{}its texts are in {}", what.empty() ? "" : "; ",
                        other.texts_in_store ? "the store: --texts-in-store" : "its run folder");
  throw ConfigError(fmt::format("'{}' was begun with other settings ({})", run.name, what),
                    {.file = run.folder.string(),
                     .hint = "to continue, restore the settings; to start anew, name another "
                             "--output or --run-dir; to keep both runs, use --keep-apart"});
}

// Shows progress once planning takes a while because of many rows.
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

InputRow input_row(int64_t index, SourceRow source) {
  InputRow row{.index = index, .source_index = source.source_index};
  row.value = std::move(source.value);
  row.unreadable = std::move(source.unreadable);
  return row;
}

// The row as an input record. Also sets the row's hash.
std::string input_record(InputRow& row) {
  try {
    row.hash = row_hash(row.value);
    return encode_input(row);
  } catch (const json::exception& error) {
    throw DataError(
        fmt::format("row {} of the data set cannot be stored as text: {}", row.source_index,
                    error.what()),
        {.hint =
             "the row is not UTF-8: save the file as UTF-8, or read it with --bad-rows replace"});
  }
}

// Writes the rows as records. The file appears under its name only when all rows are written.
// Returns the number of rows.
int64_t write_input(const fs::path& path, const PlanRequest& request) {
  AtomicFile file(path);
  PlanProgress progress(request.progress, "read the data set", 0);
  std::string buffer;
  constexpr size_t kBufferBytes = 1 << 20;
  int64_t index = 0;
  while (std::optional<SourceRow> source = request.rows()) {
    progress.add();
    InputRow row = input_row(index++, std::move(*source));
    buffer += record_bytes(RecordKind::Input, input_record(row));
    if (buffer.size() < kBufferBytes) continue;
    file.write(buffer);
    buffer.clear();
  }
  file.write(buffer);
  file.commit();
  progress.finish();
  return index;
}

// Adds rows to the store, many at a time. `total`: 0 = unknown.
class TaskAdder {
 public:
  TaskAdder(jobs::JobStore& store, int64_t group, const PlanRequest& request, int64_t total)
      : store_(store),
        group_(group),
        request_(request),
        progress_(request.progress, "put into the ledger", total) {}

  void add(const InputRow& row, RecordPlace record) {
    const PlannedRow planned{.index = row.index,
                             .source_index = row.source_index,
                             .hash = row.hash,
                             .record = std::move(record)};
    tasks_.push_back({.parameters = planned.parameters(),
                      .priority = request_.expected_cost ? request_.expected_cost(row) : 0});
    bytes_ += tasks_.back().parameters.size();
    progress_.add();
    if (tasks_.size() == kRowsPerAdd || bytes_ >= kBytesPerAdd) flush();
  }
  // Returns the number of rows.
  int64_t finish() {
    flush();
    progress_.finish();
    return count_;
  }

 private:
  void flush() {
    store_.add(group_, tasks_);
    count_ += static_cast<int64_t>(tasks_.size());
    tasks_.clear();
    bytes_ = 0;
  }

  jobs::JobStore& store_;
  int64_t group_;
  const PlanRequest& request_;
  PlanProgress progress_;
  std::vector<jobs::NewTask> tasks_;
  size_t bytes_ = 0;
  int64_t count_ = 0;
};

// Adds one task per record of the input segment, in the order of the records. Returns the number of
// tasks. `rows`: 0 = unknown.
int64_t add_tasks(jobs::JobStore& store, int64_t group, const fs::path& input,
                  const PlanRequest& request, int64_t rows) {
  TaskAdder adder(store, group, request, rows);
  const int64_t sound_bytes =
      for_each_record(input, [&](int64_t offset, RecordKind, std::string& bytes) {
        adder.add(decode_input(bytes),
                  SegmentOffset{kInputSegment, offset, static_cast<int64_t>(bytes.size())});
      });
  const int64_t count = adder.finish();
  if (sound_bytes != static_cast<int64_t>(fs::file_size(input)))
    throw DataError(fmt::format("the rows of the run are damaged at byte {}", sound_bytes),
                    {.file = input.string(), .hint = "remove this file and run again"});
  return count;
}

int64_t add_whole_rows(jobs::JobStore& store, int64_t group, const PlanRequest& request) {
  TaskAdder adder(store, group, request, 0);
  int64_t index = 0;
  while (std::optional<SourceRow> source = request.rows()) {
    InputRow row = input_row(index++, std::move(*source));
    std::string record = input_record(row);
    adder.add(row, std::move(record));
  }
  return adder.finish();
}

// The configuration with only the data settings that `mine` has, for a node that has not seen the
// data set.
json as_seen_without_data(json configuration, const json& mine) {
  if (!configuration.contains("data")) return configuration;
  const json known = mine.value("data", json::object());
  const json whole = std::exchange(configuration["data"], json::object());
  for (const auto& [key, value] : whole.items())
    if (known.contains(key)) configuration["data"][key] = value;
  return configuration;
}

// Advice if the run's name on this node differs from its name on node 0.
std::string other_names(jobs::JobStore& store, const RunIdentity& run) {
  std::string names;
  for (const jobs::Group& group : store.groups())
    if (group.workload == kWorkload && group.name.ends_with(kPlanSuffix) &&
        group.name != plan_name(run))
      names += fmt::format("{}'{}'", names.empty() ? "" : ", ",
                           group.name.substr(0, group.name.size() - kPlanSuffix.size()));
  if (names.empty()) return names;
  return fmt::format("; the store has {}: all nodes need the same --run-name or --output", names);
}

// The version of the run's plan, if there is one.
std::optional<std::string> planned_version(jobs::JobStore& store, const RunIdentity& run,
                                           const std::map<std::string, PlanFacts>& plans) {
  if (!run.data_hash.empty())
    return plans.contains(run.version()) ? std::optional(run.version()) : std::nullopt;
  std::optional<std::string> version;
  int64_t last_run_ms = -1;
  for (const jobs::Group& group : store.groups()) {
    const auto plan = plans.find(group.version);
    if (group.name != run.name || plan == plans.end() || group.last_run_ms <= last_run_ms ||
        as_seen_without_data(plan->second.configuration, run.configuration) != run.configuration)
      continue;
    last_run_ms = group.last_run_ms;
    version = group.version;
  }
  return version;
}

}  // namespace

std::string RunIdentity::version() const {
  json facts = {{"configuration", configuration}, {"data", data_hash}};
  if (texts_in_store) facts["texts_in_store"] = true;
  return sha256_hex(facts.dump());
}

PlannedRow PlannedRow::parse(const std::string& parameters) {
  try {
    const json facts = json::parse(parameters);
    PlannedRow row{.index = facts.at("index"),
                   .source_index = facts.at("source_index"),
                   .hash = facts.at("hash")};
    if (facts.contains("row"))
      row.record = facts.at("row").get<std::string>();
    else
      row.record = SegmentOffset{kInputSegment, facts.at("at"), facts.at("length")};
    return row;
  } catch (const json::exception& error) {
    throw DataError(fmt::format("a task in the store is not a row: {}", error.what()),
                    {.hint = "the store of this run is damaged: start anew with another --run-dir, "
                             "or restore a copy"});
  }
}

// Canonical JSON: keys sorted, no blanks.
std::string PlannedRow::parameters() const {
  if (const auto* const row = std::get_if<std::string>(&record))
    return fmt::format(R"({{"hash":"{}","index":{},"row":{},"source_index":{}}})", hash, index,
                       json(*row).dump(), source_index);
  const auto& segment = std::get<SegmentOffset>(record);
  return fmt::format(R"({{"at":{},"hash":"{}","index":{},"length":{},"source_index":{}}})",
                     segment.offset, hash, index, segment.length, source_index);
}

RowRun plan_rows(jobs::JobStore& store, const PlanRequest& request) {
  const RunIdentity& run = request.run;
  const std::string version = run.version();
  const std::map<std::string, PlanFacts> plans = known_plans(store, run);
  const auto known = plans.find(version);
  if (known == plans.end() && !request.keep_apart) refuse_others(run, plans);
  RowRun planned{.group = store.register_group(run.name, kWorkload, version).group.number,
                 .folder = folder_of(run, version),
                 .texts_in_store = run.texts_in_store};
  const fs::path input = planned.folder / kInputSegment;
  int64_t rows = 0;
  if (!run.texts_in_store && !fs::exists(input)) rows = write_input(input, request);
  if (known != plans.end()) planned.rows = known->second.rows;
  // A store that was recovered may lack tasks.
  if (known == plans.end() || store.counts(planned.group).all() != planned.rows)
    planned.rows = run.texts_in_store ? add_whole_rows(store, planned.group, request)
                                      : add_tasks(store, planned.group, input, request, rows);
  if (known == plans.end()) {
    planned.is_new = true;
    const int64_t plan = store.register_group(plan_name(run), kWorkload, version).group.number;
    const jobs::NewTask facts{
        .parameters = PlanFacts{run.configuration, run.data_hash, planned.rows, run.texts_in_store}
                          .parameters()};
    store.add(plan, {&facts, 1});
  }
  return planned;
}

RowRun wait_for_plan(jobs::JobStore& store, const RunIdentity& run, std::chrono::milliseconds limit,
                     const std::function<bool()>& keep_waiting, const Log& log) {
  const auto deadline = Clock::now() + limit;
  auto say = Clock::now();
  for (;;) {
    const std::map<std::string, PlanFacts> plans = known_plans(store, run);
    if (const auto version = planned_version(store, run, plans))
      return {.group = store.register_group(run.name, kWorkload, *version).group.number,
              .folder = folder_of(run, *version),
              .rows = plans.at(*version).rows,
              .texts_in_store = plans.at(*version).texts_in_store};
    if (Clock::now() >= deadline) {
      refuse_others(run, plans);
      throw ConfigError(
          fmt::format("the first node did not plan '{}' within {} s", run.name,
                      std::chrono::duration_cast<std::chrono::seconds>(limit).count()),
          {.file = store.name(), .hint = "start node 0 with the same configuration"});
    }
    if (Clock::now() >= say) {
      say = Clock::now() + kSayPlanWaitingEvery;
      log.info(fmt::format("waiting for the first node to plan '{}'{}", run.name,
                           other_names(store, run)));
    }
    if (!keep_waiting()) throw StopRequest("asked to stop while waiting for the first node's plan");
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace convoy::process

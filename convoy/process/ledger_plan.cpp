// SPDX-License-Identifier: Apache-2.0
#include "convoy/process/ledger_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <thread>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/hash.h"
#include "convoy/data/utf8.h"
#include "convoy/process/ledger_record.h"
#include "convoy/process/segment.h"

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

// Of every version of the run that was planned to its end, by version.
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

std::string shortened(const json& value) {
  std::string text = value.dump(-1, ' ', false, json::error_handler_t::replace);
  constexpr size_t kMostCharacters = 60;
  if (data::cut_to_characters(text, kMostCharacters)) text += "...";
  return text;
}

// "temperature: 0.5 here, 0.6 there; ..."
std::string difference(const json& here, const json& there) {
  const json mine = here.flatten(), theirs = there.flatten();
  std::set<std::string> keys;
  for (const json* const side : {&mine, &theirs})
    for (const auto& [key, value] : side->items()) keys.insert(key);
  std::string text;
  for (const std::string& key : keys) {
    const json left = mine.value(key, json("absent")), right = theirs.value(key, json("absent"));
    if (left == right) continue;
    std::string name = key.substr(key.starts_with('/') ? 1 : 0);
    std::replace(name.begin(), name.end(), '/', '.');
    text += fmt::format("{}{}: {} now, {} then", text.empty() ? "" : "; ", name, shortened(left),
                        shortened(right));
  }
  return text;
}

void refuse_others(const RunIdentity& run, const std::map<std::string, PlanFacts>& plans) {
  if (plans.empty()) return;
  const PlanFacts& other = plans.begin()->second;
  std::string what = difference(run.configuration, other.configuration);
  if (run.data_hash != other.data_hash)
    what += fmt::format("{}the data set is another", what.empty() ? "" : "; ");
  throw ConfigError(fmt::format("'{}' was begun with another configuration ({})", run.name, what),
                    {.file = run.folder.string(),
                     .hint = "set it back to go on, name another --output or --run-dir, or keep "
                             "both with --keep-apart"});
}

// The rows as records, at once under the file's name when all are there.
void write_input(const fs::path& path, const RowStream& rows) {
  AtomicFile file(path);
  std::string buffer;
  constexpr size_t kBufferBytes = 1 << 20;
  int64_t index = 0;
  while (std::optional<SourceRow> source = rows()) {
    InputRow row{.index = index++, .source_index = source->source_index};
    row.value = std::move(source->value);
    row.unreadable = std::move(source->unreadable);
    try {
      row.hash = row_hash(row.value);
      buffer += record_bytes(RecordKind::Input, encode_input(row));
    } catch (const json::exception& error) {
      throw DataError(fmt::format("row {} of the data set is no text that can be kept: {}",
                                  row.source_index, error.what()));
    }
    if (buffer.size() < kBufferBytes) continue;
    file.write(buffer);
    buffer.clear();
  }
  file.write(buffer);
  file.commit();
}

// One task per record of the input segment, in its order. Returns how many there are.
int64_t add_tasks(jobs::JobStore& store, int64_t group, const fs::path& input,
                  const PlanRequest& request) {
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
        if (tasks.size() == kRowsPerAdd) add();
      });
  add();
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
    throw DataError(fmt::format("a task of the store is no row: {}", error.what()));
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
  if (!fs::exists(input)) write_input(input, request.rows);
  if (known != plans.end()) planned.rows = known->second.rows;
  // A store that was recovered may lack tasks.
  if (known == plans.end() || store.counts(planned.group).all() != planned.rows)
    planned.rows = add_tasks(store, planned.group, input, request);
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
    if (!keep_waiting()) throw StopRequest("told to stop while waiting for the first node's plan");
    std::this_thread::sleep_for(kLookEvery);
  }
}

}  // namespace convoy::process

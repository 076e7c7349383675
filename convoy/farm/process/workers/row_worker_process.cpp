// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/workers/row_worker_process.h"

#include <cstdlib>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/farm/workers/worker.h"

namespace convoy::process {
namespace {

using nlohmann::json;

constexpr const char* kStoreVariable = "CONVOY_PROCESS_STORE";
constexpr const char* kTaskVariable = "CONVOY_PROCESS_TASK";
constexpr const char* kSign = "figures ";
constexpr const char* kNoteSign = "note ";

std::string taken(const char* variable) {
  const auto value = environment_variable(variable);
  if (!value)
    throw ConfigError(fmt::format("a worker of `convoy process` needs {} from it", variable),
                      {.hint = "run `convoy process`, which starts its workers"});
  ::unsetenv(variable);
  return *value;
}

// One list of the fields, used for writing and for reading.
template <class Sign, class Visit>
void visit_figures(Sign& status, Visit&& visit) {
  visit("rows", status.worker.rows);
  visit("texts", status.worker.texts);
  visit("prompt_tokens", status.worker.prompt_tokens);
  visit("new_tokens", status.worker.new_tokens);
  visit("texts_read_back", status.worker.texts_read_back);
  visit("texts_lost", status.worker.texts_lost);
  visit("rows_given_up", status.worker.rows_given_up);
  visit("rows_held", status.worker.rows_held);
  visit("seconds_by_stage", status.worker.seconds_by_stage);
  visit("not_begun", status.worker.not_begun);
  visit("running", status.engine.running);
  visit("waiting", status.engine.waiting);
  visit("kv_use", status.engine.kv_use);
  visit("prefill_tokens", status.engine.prefill_tokens);
  visit("cached_prompt_tokens", status.engine.cached_prompt_tokens);
  visit("decode_tokens", status.engine.decode_tokens);
  visit("preemptions", status.engine.preemptions);
  visit("prefill_seconds", status.engine.prefill_seconds);
  visit("decode_seconds", status.engine.decode_seconds);
}

}  // namespace

std::map<std::string, std::string> WorkerAssignment::environment() const {
  const json task = {{"group", run.group},         {"folder", run.folder.string()},
                     {"rows", run.rows},           {"rows_in_flight", rows_in_flight},
                     {"num_workers", num_workers}, {"lease_ms", lease_ms},
                     {"max_tries", max_tries},     {"texts_in_store", run.texts_in_store}};
  return {{kStoreVariable, store}, {kTaskVariable, task.dump()}};
}

WorkerAssignment WorkerAssignment::take_from_environment() {
  WorkerAssignment task{.store = taken(kStoreVariable)};
  const std::string text = taken(kTaskVariable);
  try {
    const json told = json::parse(text);
    task.run = {.group = told.at("group"),
                .folder = told.at("folder").get<std::string>(),
                .rows = told.at("rows"),
                .texts_in_store = told.at("texts_in_store")};
    task.rows_in_flight = told.at("rows_in_flight");
    task.num_workers = told.at("num_workers");
    task.lease_ms = told.at("lease_ms");
    task.max_tries = told.at("max_tries");
  } catch (const json::exception& error) {
    throw ConfigError(fmt::format("{} cannot be read: {}", kTaskVariable, error.what()),
                      {.hint = "run `convoy process`, which starts its workers"});
  }
  return task;
}

RowWorkerFigures run_row_worker_process(const WorkerAssignment& task,
                                        const std::function<WorkerEquipment()>& make) {
  workers::WorkerProcess process;
  const auto store = process.open_store(task.store);
  const WorkerEquipment equipment = make();
  RowWorkerOptions options;
  options.name = process.name();
  options.rows_in_flight = task.rows_in_flight;
  options.num_workers = task.num_workers;
  options.lease = std::chrono::milliseconds(task.lease_ms);
  options.max_tries = static_cast<int>(task.max_tries);
  options.keep_within = equipment.keep_within;
  options.stop_wanted = process.stop_wanted();
  options.tell = [](const RowWorkerFigures& worker, const EngineFigures& engine) {
    workers::send_to_supervisor(WorkerStatus{worker, engine}.line());
  };
  return run_row_worker(options, task.run, *equipment.program, *equipment.engine, *store);
}

void send_note(const std::string& text) { workers::send_to_supervisor(note_line(text)); }

std::string note_line(const std::string& text) { return kNoteSign + text + "\n"; }

std::optional<std::string> parse_note(const std::string& line) {
  if (!line.starts_with(kNoteSign)) return std::nullopt;
  return line.substr(std::string_view(kNoteSign).size());
}

std::string WorkerStatus::line() const {
  json figures;
  visit_figures(*this, [&](const char* name, const auto& value) { figures[name] = value; });
  return kSign + figures.dump() + "\n";
}

std::optional<WorkerStatus> WorkerStatus::parse(const std::string& line) {
  if (!line.starts_with(kSign)) return std::nullopt;
  const json figures = json::parse(line.substr(std::string_view(kSign).size()), nullptr, false);
  if (!figures.is_object()) return std::nullopt;
  WorkerStatus status;
  try {
    visit_figures(status, [&](const char* name, auto& value) { figures.at(name).get_to(value); });
  } catch (const json::exception&) {
    return std::nullopt;
  }
  return status;
}

}  // namespace convoy::process

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/apps/front/build_facts.h"
#include "convoy/apps/front/process_memory.h"
#include "convoy/apps/front/process_nodes.h"
#include "convoy/apps/front/process_preview.h"
#include "convoy/apps/front/process_progress.h"
#include "convoy/apps/front/process_rows_check.h"
#include "convoy/apps/front/process_rows_source.h"
#include "convoy/apps/front/process_sampling.h"
#include "convoy/apps/front/process_workers.h"
#include "convoy/apps/front/worker_program.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/telemetry/event_log.h"
#include "convoy/core/telemetry/run_folder.h"
#include "convoy/core/telemetry/run_history.h"
#include "convoy/farm/process/memory_fit.h"
#include "convoy/farm/process/publish_rows.h"
#include "convoy/farm/process/request_check.h"
#include "convoy/farm/process/row_pipeline.h"
#include "convoy/farm/process/row_supervisor.h"
#include "convoy/farm/process/rows_in_flight.h"
#include "convoy/farm/process/run_files.h"
#include "convoy/farm/process/run_usage.h"
#include "convoy/farm/process/wanted_columns.h"
#include "convoy/farm/remote/servers.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// In flight, unless the user says more: servers take fewer at once where they cannot have as many.
constexpr int64_t kRowsOfAServer = 512;

// Every start with the same output resumes the last one. Nodes without a common folder may work in
// folders of different names.
std::string run_name(const settings::ProcessSettings& settings) {
  if (!settings.run_name.empty()) return settings.run_name;
  const fs::path named = settings.output.path;
  const fs::path output =
      (settings.workers.texts_in_store ? named : fs::absolute(named)).lexically_normal();
  return fmt::format("{}-{}", output.stem().string(), sha256_hex(output.string()).substr(0, 8));
}

fs::path run_dir(const settings::ProcessSettings& settings,
                 const settings::ProcessCommandFlags& flags) {
  if (flags.resume == "last") return telemetry::resolve_run("last", "runs");
  if (flags.resume != "auto" && flags.resume != "never") {
    if (!fs::is_directory(flags.resume))
      throw ConfigError(fmt::format("--resume: there is no run folder {}", flags.resume),
                        {.key = "--resume", .hint = "auto, never, last, or a run folder"});
    return flags.resume;
  }
  if (!settings.run_dir.empty()) return settings.run_dir;
  if (flags.resume == "never") return {};  // a name of its own, by the time
  return fs::path("runs") / run_name(settings);
}

telemetry::RunFolder open_folder(const ProcessConfig& config) {
  const fs::path folder = run_dir(config.settings, config.flags);
  const std::string name = run_name(config.settings);
  if (config.flags.resume == "never" && !folder.empty() && fs::exists(folder / "config.yaml"))
    throw ConfigError(fmt::format("--resume never, but {} holds a run", folder.string()),
                      {.key = "--run-dir", .hint = "name another folder"});
  if (config.settings.workers.node_rank > 0) return telemetry::RunFolder::take_part(folder, name);
  return telemetry::RunFolder::create(folder, name);
}

// Result of the last start that finished rows, for later starts that have nothing to do.
fs::path last_start_file(const process::RowRun& run) { return run.folder / "last_start.json"; }

// Null when none is known.
Json last_start(const process::RowRun& run) {
  if (!fs::exists(last_start_file(run))) return nullptr;
  const Json start = Json::parse(read_file(last_start_file(run)), nullptr, false);
  return start.is_object() ? start : Json(nullptr);
}

// The run that this process manages.
class Processing {
 public:
  Processing(Context& context, ProcessConfig& config)
      : context_(context),
        config_(config),
        log_(context.log()),
        model_named_(config.settings.model.name),
        servers_(named_servers(config.settings)),
        facts_(servers_ ? process::facts_of_served_model(servers_->model, model_named_)
                        : process::read_model_facts(config.settings.model)),
        dataset_(read_dataset(config)),
        workers_(servers_ ? http_workers(config.settings.workers)
                          : find_process_workers(context, config.settings.workers)),
        memory_(settle(config, facts_, workers_, log_)),
        plan_(config.settings, process::read_prompt_texts(config.settings.prompts, prompt_texts())),
        pipeline_(plan_) {
    if (!config.flags.no_warnings) say_notices();
    for (const std::string& note : workers_.notes) warn(note);
    const std::string doubt = process::request_warnings(settings(), facts_);
    if (!doubt.empty()) warn(doubt);
    for (const std::string& warning : process::prompt_warnings(plan_)) warn(warning);
  }

  int preview() {
    first_prompt_ = check_rows(*dataset_, plan_, facts_);
    look_at_servers();
    const int64_t rows = count_rows(selected_rows(*dataset_, settings().data));
    const ProcessPreview preview = preview_of(*dataset_, rows);
    if (context_.common.json)
      fmt::print("{}\n", preview_json(plan_, preview).dump(2));
    else
      fmt::print("{}", preview_text(plan_, preview));
    return 0;
  }

  // Null: another node publishes.
  Json run() {
    if (dataset_) {
      first_prompt_ = check_rows(*dataset_, plan_, facts_);
      process::require_outputs(settings());
    }
    const telemetry::RunFolder folder = open_folder(config_);
    log_.info(fmt::format("run folder {}", folder.path().string()));
    const auto nodes = process_nodes(settings().workers, folder.path(), run_name(settings()), log_);
    if (!find_store(*nodes)) return nullptr;
    const auto store = open_store(*nodes);
    nodes->enter(*store);
    const process::RowRun run = planned(*nodes, folder, *store);
    if (!nodes->publishes()) {
      take_part(folder, *store, run);
      return nullptr;
    }
    const Json report = work_and_publish(folder, *store, run);
    nodes->finish(plan_.content(facts_.identity));
    return report;
  }

  // Throws where no row has a text.
  void require_texts() const {
    if (published_.all_failed()) refuse_all_failed(published_);
  }

 private:
  // Empty: the workers load the model. Settles its name and the rows in flight.
  static std::optional<remote::Servers> named_servers(settings::ProcessSettings& settings) {
    if (!settings.remote.is_used()) return std::nullopt;
    remote::Servers servers = remote::read_servers(settings.remote, settings.model.name);
    settings.model.name = servers.model;
    if (settings.workers.batch_size.is_auto())
      settings.workers.batch_size = kRowsOfAServer * std::ssize(servers.addresses);
    return servers;
  }

  void look_at_servers() const {
    if (!servers_) return;
    const http::CurlLibrary curl;
    http::Client client(curl, servers_->limits());
    remote::look_at_servers(*servers_, client, log_);
  }

  static void settle_dtype(settings::ProcessSettings& settings, const process::ModelFacts& facts,
                           const ProcessWorkers& workers, const Log& log) {
    if (settings.model.dtype != "auto" || workers.devices == "http") return;
    sizing::DtypeQuestion question = workers.dtype_question();
    question.fp32_bytes = facts.parameters * static_cast<int64_t>(sizeof(float));
    question.saves_memory = settings.engine.low_memory;
    const sizing::DtypeChoice choice = sizing::choose_dtype(question);
    settings.model.dtype = choice.dtype;
    log.info(fmt::format("computing in {}", choice.text("--dtype ")));
  }

  // Sets the values that depend on model and machine. Returns the planned memory as text.
  static std::string settle(ProcessConfig& config, const process::ModelFacts& facts,
                            const ProcessWorkers& workers, const Log& log) {
    process::settle_prompts(config.settings, facts);
    log.info(settle_process_sampling(config, facts.sampling));
    settle_dtype(config.settings, facts, workers, log);
    std::string memory = process::fit_memory(config.settings, facts);
    process::require_possible_requests(config.settings, facts);
    const bool computes_here = workers.devices != "http";
    return memory.empty() && computes_here ? worker_memory(config.settings, facts, workers)
                                           : memory;
  }

  // For the node that plans and publishes, and for every dry run.
  static std::optional<data::Dataset> read_dataset(const ProcessConfig& config) {
    if (config.settings.workers.node_rank > 0 && !config.flags.dry_run) return std::nullopt;
    data::Dataset dataset = named_dataset(config.settings.data);
    process::check_outputs(config.settings, dataset);
    return dataset;
  }

  const settings::ProcessSettings& settings() const { return plan_.settings; }

  void warn(const std::string& text) const {
    if (!config_.flags.no_warnings) log_.warning(text);
  }

  void say_notices() const {
    for (const std::string& notice : config_.resolved.notices()) log_.info(notice);
    const bool is_local = dataset_ && dataset_->hub_id.empty();
    for (const std::string& notice : config_.flags.notices(is_local)) log_.info(notice);
  }

  // Returns false when the run has ended.
  bool find_store(const ProcessNodes& nodes) {
    if (!nodes.publishes()) shared_ = nodes.wait_for_share(plan_.content(facts_.identity));
    if (!nodes.publishes() && !shared_) return false;
    store_ = shared_ ? shared_->store : nodes.store();
    return true;
  }

  std::unique_ptr<jobs::JobStore> open_store(const ProcessNodes& nodes) const {
    try {
      return jobs::open_store(store_);
    } catch (const IoError& error) {
      if (nodes.publishes()) throw;
      throw IoError(fmt::format("the store of node 0 cannot be reached: {}", error.what()),
                    {.hint = "its server ends with node 0: check that node 0 runs, and restart it "
                             "with the same command"});
    }
  }

  process::RunIdentity identity(const telemetry::RunFolder& folder, const std::string& data_hash,
                                const nlohmann::json& selection) const {
    process::RunIdentity identity{.name = run_name(settings()),
                                  .folder = folder.path() / "rows",
                                  .configuration = plan_.content(facts_.identity),
                                  .data_hash = data_hash,
                                  .texts_in_store = settings().workers.texts_in_store};
    // Other rows of the same files are another run.
    if (selection.is_object()) identity.configuration["data"].update(selection);
    return identity;
  }

  process::RowRun planned(const ProcessNodes& nodes, const telemetry::RunFolder& folder,
                          jobs::JobStore& store) {
    if (shared_) {
      if (settings().workers.texts_in_store) write_settings(folder);
      return process::wait_for_plan(
          store, identity(folder, shared_->data_hash, shared_->selection), std::chrono::minutes(10),
          [] { return true; }, log_);
    }
    const data::Dataset& dataset = *dataset_;
    const std::string data_hash = data::dataset_hash(dataset);
    const nlohmann::json selection = selection_of(dataset, settings().data);
    const process::RowRun run = process::plan_rows(
        store, {.run = identity(folder, data_hash, selection),
                .rows = selected_rows(dataset, settings().data),
                .expected_cost =
                    [&](const process::InputRow& row) { return pipeline_.expected_cost(row); },
                .keep_apart = config_.flags.keep_apart,
                .progress = plan_progress()});
    const int64_t again = run.is_new ? 0 : process::reopen_engine_errors(store, run);
    if (again > 0)
      log_.info(fmt::format("{} in state engine_error: computed again", counted(again, "row")));
    write_run_files(folder, dataset, data_hash);
    nodes.share({store_, plan_.content(facts_.identity), data_hash, selection});
    const ProcessPreview preview = preview_of(dataset, run.rows);
    estimate_ = preview.estimate;
    if (!memory_.empty()) log_.info("memory: " + memory_);
    if (preview.first_prompt) log_.info("first prompt:\n" + *preview.first_prompt);
    return run;
  }

  telemetry::ProgressOptions plan_progress() const {
    telemetry::ProgressOptions options{.color = telemetry::color_choice(context_.common.color)};
    if (log_.level() == LogLevel::Quiet) options.style = telemetry::ProgressStyle::None;
    return options;
  }

  std::map<std::string, std::string> origins() const {
    std::map<std::string, std::string> origins;
    for (const config::ResolvedValue& value : config_.resolved.values())
      origins[value.path] = value.origin;
    return origins;
  }

  // For the workers of this node.
  void write_settings(const telemetry::RunFolder& folder) const {
    process::write_prompts(folder.path(), plan_);
    folder.write_config(config_.resolved.yaml(), config_.resolved.json(), origins());
  }

  void write_run_files(const telemetry::RunFolder& folder, const data::Dataset& dataset,
                       const std::string& data_hash) {
    write_settings(folder);
    telemetry::RunIdentity record{.name = run_name(settings()), .task = "process"};
    record.config_yaml = config_.resolved.yaml();
    record.config_json = config_.resolved.json().dump();
    record.origins = origins();
    record.hosts = {telemetry::host_name()};
    record.devices.assign(static_cast<size_t>(workers_.count), workers_.devices);
    record.world_size = workers_.count;
    record.threads = settings().workers.threads;
    record.data_hashes = {{dataset.name, data_hash}};
    folder.write_identity(record);
  }

  ProcessPreview preview_of(const data::Dataset& dataset, int64_t rows) const {
    return {.dataset = dataset_text(dataset),
            .rows = rows,
            .workers = workers_.text(),
            .memory = memory_,
            .estimate = estimate_run(plan_, rows),
            .first_prompt = first_prompt_};
  }

  process::RowSupervisorReport work(const telemetry::RunFolder& folder, jobs::JobStore& store,
                                    const process::RowRun& run) {
    const settings::WorkerSettings& wanted = settings().workers;
    if (store.count_open(run.group, 1) > 0) look_at_servers();
    process::RunUsage usage(folder.path() / usage_file(), wanted.telemetry_interval_s);
    std::optional<telemetry::EventLog> events;
    if (wanted.node_rank == 0) events.emplace(folder.events_path(), log_);
    if (events)
      events->append(telemetry::EventKind::Start,
                     {{"task", "process"}, {"total_steps", run.rows}, {"workers", workers_.count}});
    std::optional<ProcessProgress> progress;
    if (events) progress.emplace(*events, store, run);
    const process::RowSupervisorOptions options{
        .worker_command = worker_command(folder),
        .workers = workers_.count,
        .environment = workers_.environment,
        .log_folder = folder.logs_folder().string(),
        .max_crashes = static_cast<int>(wanted.max_tries),
        .label = "process",
        .asks_servers = servers_.has_value(),
        .color = telemetry::color_choice(context_.common.color),
        .log = log_,
        .tell = [&](const std::map<size_t, process::WorkerStatus>& statuses) {
          usage.add(statuses);
          if (progress) progress->add(statuses);
        }};
    const process::WorkerAssignment task{
        .store = store_,
        .run = run,
        .rows_in_flight = process::rows_in_flight(wanted, workers_.hardware()),
        .num_workers = workers_.count * wanted.num_nodes,
        .lease_ms = 1000 * wanted.lease_s,
        .max_tries = wanted.max_tries};
    try {
      process::RowSupervisorReport report = process::run_rows(options, task);
      if (progress)
        progress->finish(static_cast<double>(report.work.new_tokens) /
                         std::max(1e-3, report.seconds));
      if (events && report.stop_signal != 0)
        events->append(telemetry::EventKind::End, {{"status", "stopped"}});
      return report;
    } catch (const std::exception& error) {
      const auto* const own = dynamic_cast<const Error*>(&error);
      if (events)
        events->append(telemetry::EventKind::Failure,
                       {{"message", own != nullptr ? own->sentence() : error.what()}});
      throw;
    }
  }

  std::string usage_file() const {
    const int64_t node = settings().workers.node_rank;
    return node == 0 ? "devices.csv" : fmt::format("devices-{}.csv", node);
  }

  std::vector<std::string> worker_command(const telemetry::RunFolder& folder) const {
    if (servers_)
      return {context_.program.string(), "process-worker", "--run-folder", folder.path().string()};
    std::vector<std::string> words = {worker_program(context_).string(),
                                      "process",
                                      "--run-folder",
                                      folder.path().string(),
                                      "--devices",
                                      workers_.devices,
                                      "--workers-on-host",
                                      std::to_string(workers_.count)};
    if (!context_.common.verbose) words.emplace_back("--quiet");
    if (!context_.common.quiet) words.emplace_back("--tell-busy-cores");
    return words;
  }

  void refuse_stopped(const process::RowSupervisorReport& report, jobs::JobStore& store,
                      const process::RowRun& run) const {
    if (report.stop_signal == 0) return;
    const int64_t open = store.counts(run.group).open;
    throw StopRequest(fmt::format("stopped by {}: {} of {} done, all finished texts are kept",
                                  processes::signal_name(report.stop_signal), run.rows - open,
                                  counted(run.rows, "row")),
                      {.hint = "the same command goes on"});
  }

  void take_part(const telemetry::RunFolder& folder, jobs::JobStore& store,
                 const process::RowRun& run) {
    const process::RowSupervisorReport report = work(folder, store, run);
    refuse_stopped(report, store, run);
    log_.info(fmt::format("no row is open; this node finished {}; node 0 publishes",
                          counted(report.work.rows, "row")));
  }

  Json work_and_publish(const telemetry::RunFolder& folder, jobs::JobStore& store,
                        const process::RowRun& run) {
    process::StartFigures start{.workers = workers_.count};
    for (;;) {
      const process::RowSupervisorReport report = work(folder, store, run);
      refuse_stopped(report, store, run);
      start.seconds += report.seconds;
      start.rows += report.work.rows;
      start.new_tokens += report.work.new_tokens;
      start.prompt_tokens += report.work.prompt_tokens;
      start.workers_lost += report.deaths;
      for (const auto& [stage, spent] : report.work.seconds_by_stage)
        start.seconds_by_stage[stage] += spent;
      const process::Publication done = process::publish_rows(store, run, plan_);
      if (done.reopened == 0) return conclude(folder, run, done, start);
      warn(fmt::format("{} of the ledger cannot be read; they are computed again",
                       counted(done.reopened, "row")));
    }
  }

  Json conclude(const telemetry::RunFolder& folder, const process::RowRun& run,
                const process::Publication& done, const process::StartFigures& start) {
    Json report = done.report.json(start, estimate_);
    if (!done.training_rows.is_null()) report["training_rows"] = done.training_rows;
    // A start without work has no speed of its own.
    if (report["last_start"].is_null())
      report["last_start"] = last_start(run);
    else
      write_file_atomic(last_start_file(run), report["last_start"].dump());
    data::Manifest manifest{.outputs = done.files,
                            .rows_by_state = done.report.rows_by_state(),
                            .configuration = plan_.content(facts_.identity),
                            .cost = done.report.cost()};
    manifest.configuration["filter"] = {{"keep", settings().filter.keep.names}};
    settings::ProcessSettings listed = settings();
    const nlohmann::json sections = config::dump_json(config::list_fields(listed));
    for (const auto& [section, counts] : done.training_rows.items())
      manifest.configuration[section] = sections.at(section);
    for (const fs::path& file : dataset_->files)
      manifest.inputs.push_back(data::record_of_file(file));
    const fs::path manifest_file = data::publish_manifest(settings().output.path, manifest);
    folder.write_metrics({{"process", report}});
    telemetry::EventLog(folder.events_path(), log_)
        .append(telemetry::EventKind::End, {{"status", "finished"}});
    for (const data::FileRecord& file : done.files)
      log_.info(fmt::format("wrote {} ({})", file.path, counted(file.rows, "row")));
    log_.info(fmt::format("wrote {}", manifest_file.string()));
    published_ = done.report;
    return report;
  }

  [[noreturn]] void refuse_all_failed(const process::RunReport& report) const {
    const Json failures = report.failures();
    const std::string reason = failures.at("most_common");
    const std::string message =
        fmt::format("none of {} has a text; most often: {}",
                    counted(failures.at("rows").get<int64_t>(), "row"), reason);
    if (!report.rows_by_state().contains("engine_error"))
      throw DataError(message, {.file = dataset_->files.front().string(),
                                .hint = "--problem-field names the column of the problem"});
    throw ProgressError(message, {.hint = "the same command computes these rows again"});
  }

  Context& context_;
  ProcessConfig& config_;
  Log log_;
  std::string model_named_;                 // by the settings, whatever servers call theirs
  std::optional<remote::Servers> servers_;  // in place of a model that workers load
  process::ModelFacts facts_;
  std::optional<data::Dataset> dataset_;  // not of a node that joins
  ProcessWorkers workers_;
  std::string memory_;  // the rung of the ladder, in words; empty = there is no budget
  process::PipelinePlan plan_;
  process::RowPipeline pipeline_;
  process::RunEstimate estimate_;
  process::RunReport published_;
  std::optional<std::string> first_prompt_;
  std::string store_;
  std::optional<SharedRun> shared_;
};

void print_rows_report(const Context& context, const Json& report) {
  if (context.common.json)
    fmt::print("{}\n", report.dump(2));
  else
    for (const std::string& line : process::report_lines(report)) fmt::print("{}\n", line);
}

// Errors of the settings are placed where their sources give them.
void prepare(std::optional<Processing>& processing, Context& context, ProcessConfig& config) {
  try {
    processing.emplace(context, config);
  } catch (const ConfigError& error) {
    throw config::placed(error, config.resolved);
  }
}

}  // namespace

int run_processing(Context& context, ProcessConfig& config) {
  std::optional<Processing> processing;
  prepare(processing, context, config);
  if (config.flags.dry_run) return processing->preview();
  if (const Json report = processing->run(); !report.is_null()) print_rows_report(context, report);
  processing->require_texts();
  return 0;
}

nlohmann::ordered_json process_as_part(Context& context, ProcessConfig& config) {
  std::optional<Processing> processing;
  prepare(processing, context, config);
  Json report = processing->run();
  processing->require_texts();
  return report;
}

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/rejection/rejection_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "convoy/apps/front/process/process_rows_source.h"
#include "convoy/apps/front/process/process_run.h"
#include "convoy/apps/front/rejection/rejection_phases.h"
#include "convoy/apps/front/rejection/rejection_rounds.h"
#include "convoy/apps/front/train/train_inputs.h"
#include "convoy/apps/front/train/train_job.h"
#include "convoy/apps/front/worker/worker_ranks.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/data/datasets/formats/row_writer.h"
#include "convoy/data/datasets/sources/dataset.h"
#include "convoy/farm/process/pipeline/row_pipeline.h"
#include "convoy/farm/process/run_files.h"
#include "convoy/machine/processes/scratch_folder.h"
#include "convoy/machine/processes/signals.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using telemetry::EventKind;

// Keys that may change between the starts of a run, because they do not alter a round.
constexpr std::array kFreeKeys = {"rejection.rounds",
                                  "rejection.min_gain",
                                  "rejection.batch_size",
                                  "run_name",
                                  "train.output_dir",
                                  "train.resume_from_checkpoint",
                                  "train.logging_steps",
                                  "train.save_total_limit",
                                  "logging.log_interval",
                                  "logging.backend",
                                  "logging.profile_steps",
                                  "parallel.timeout_s",
                                  "parallel.check_weights_every"};

void refuse_what_cannot_be(const TrainInvocation& found, const launch::JobSetup& setup) {
  if (setup.adopted())
    throw ConfigError("task rejection starts its ranks itself, and was started as one of them",
                      {.key = "task", .hint = "convoy train CONFIG --ranks N, without a launcher"});
  if (setup.several_nodes())
    throw ConfigError(
        fmt::format("task rejection runs on one host, found {}", counted(setup.nodes.most, "node")),
        {.key = "task",
         .hint = "leave out the flags of nodes; `convoy process` and `convoy train` "
                 "are its phases, and each runs on several"});
  if (found.flags.tensorboard || found.flags.tensorboard_stays)
    throw ConfigError(
        "task rejection is several trainings, and starts no TensorBoard",
        {.key = "--tensorboard",
         .hint = "`convoy runs serve` shows the rounds; tensorboard --logdir RUN shows "
                 "their trainings"});
}

RoundWorkers workers_of(const RejectionRequest& request) {
  return {.count = request.setup.num_local_ranks,
          .devices = devices_of(request.setup),
          .threads = request.found.flags.threads};
}

// Returns nothing for a row without a problem. data.bad_rows decides about such a row when `convoy
// process` reads it.
std::optional<process::RowFields> problem_in(const process::ProblemFields& fields,
                                             const Json& row) {
  try {
    return fields.read(row);
  } catch (const DataError&) {
    return std::nullopt;
  }
}

// Requires a problem with a reference answer. Reads rows only up to the first such problem.
void require_answers(const RejectionRequest& request, const char* key, const std::string& name) {
  settings::ProcessDataSettings columns;
  columns.dataset = name;
  columns.problem_field = request.train.rejection.problem_field;
  columns.solution_field = request.train.rejection.solution_field;
  columns.answer_field = request.train.rejection.answer_field;
  const process::ProblemFields fields = process::problem_fields(columns);
  const auto rows = data::open_dataset(data::find_dataset({.name = name}));
  while (const auto row = rows->next())
    if (const auto found = problem_in(fields, row->value);
        found && !process::golds_of(*found).empty())
      return;
  throw DataError(
      fmt::format("{}: no row has a problem with a reference answer", key),
      {.file = name,
       .key = key,
       .hint = "rejection.problem_field, answer_field and solution_field name the columns"});
}

// The training of a round: the run's configuration, in the file `config`, with the changes of this
// round.
TrainInvocation training_of(Context& context, const RejectionRequest& request,
                            const RejectionPhases& phases, int64_t round, const fs::path& config,
                            const fs::path& rows) {
  std::vector<std::string> words = {config.string()};
  for (std::string& word : phases.train_words(round, rows)) words.push_back(std::move(word));
  for (std::string& word : rank_words(request.found)) words.push_back(std::move(word));
  TrainInvocation training = read_train_line(context, words);
  training.flags.device_interval = request.found.flags.device_interval;
  training.flags.force_stamp = request.found.flags.force_stamp;
  training.flags.dry_run = request.found.flags.dry_run;
  return training;
}

class Rejection {
 public:
  Rejection(const Context& context, const RejectionRequest& request, telemetry::RunFolder folder)
      : context_(context),
        request_(request),
        log_(context.log()),
        folder_(std::move(folder)),
        phases_(request.train, folder_.path(), workers_of(request)),
        to_go_on_(command_to_go_on(request.found, request.train, folder_.path())) {
    prints_json_ = std::exchange(context_.common.json, false);  // not printed by the phases
  }

  int run() {
    // A signal between two phases is seen by the next phase and does not end the program.
    signals_.emplace(processes::default_stop_signals());
    const std::map<std::string, std::string> hashes = file_hashes();
    require_same_run(hashes);
    if (hashes.at("data.train_path") == hashes.at("data.val_path"))
      log_.warning(
          "data.val_path holds the same rows as data.train_path: rounds are measured on problems "
          "whose solutions they learn");
    rounds_ = read_rounds(rounds_file());
    const int64_t done = std::ssize(rounds_) - 1;
    write_identity(done, hashes);
    events_.emplace(folder_.events_path(), log_, done);
    events_->append(EventKind::Start, {{"task", request_.train.task},
                                       {"resume_step", done},
                                       {"total_steps", request_.train.rejection.rounds},
                                       {"world_size", request_.setup.num_local_ranks}});
    if (done >= 0) log_.info(fmt::format("going on after round {}", done));
    return or_record([&] {
      while (rounds_.empty() || ended().empty())
        if (const int code = next_round(); code != 0) return code;
      conclude();
      return 0;
    });
  }

 private:
  const settings::RejectionSettings& settings() const { return request_.train.rejection; }
  fs::path rounds_file() const { return folder_.path() / "rounds.jsonl"; }
  std::string ended() const { return why_ended(rounds_, settings()); }

  // Hashes, by key, of the files that determine the rounds.
  std::map<std::string, std::string> file_hashes() const {
    const settings::DataSettings& data = request_.train.data;
    std::map<std::string, std::string> hashes = {
        {"data.train_path", data::dataset_hash(data::find_dataset({.name = data.train_path}))},
        {"data.val_path", data::dataset_hash(data::find_dataset({.name = data.val_path}))}};
    const std::array<std::pair<const char*, fs::path>, 2> texts = {
        {{"rejection.prompt", settings().prompt}, {"data.template_path", data.template_path}}};
    std::error_code ignored;
    for (const auto& [key, file] : texts)
      if (fs::is_regular_file(file, ignored)) hashes[key] = sha256_hex_of_file(file);
    return hashes;
  }

  void refuse_change(const std::string& key, const std::string& what) const {
    throw ConfigError(
        fmt::format("{}: {}, but {} holds rounds", key, what, folder_.path().string()),
        {.key = key, .hint = "give back what it was, or name another --run-dir"});
  }

  // Refuses changed settings and files. A phase refuses them itself for unfinished work, but
  // finished rounds are not read again.
  void require_same_run(const std::map<std::string, std::string>& files) const {
    if (!fs::exists(rounds_file())) return;
    if (request_.train.train.resume_from_checkpoint == "never")
      refuse_change("train.resume_from_checkpoint", "never");
    const nlohmann::json record = telemetry::read_run_record(folder_.identity_path());
    if (!record.is_object()) return;
    const nlohmann::json hashes = record.value("data_hashes", nlohmann::json::object());
    const nlohmann::json config = record.value("config", nlohmann::json::object());
    for (const auto& [key, hash] : files)
      if (hashes.value(key, hash) != hash) refuse_change(key, "the file has changed");
    const nlohmann::json now = request_.resolved.json();
    for (const config::ResolvedValue& setting : request_.resolved.values()) {
      const std::string& key = setting.path;
      if (std::find(kFreeKeys.begin(), kFreeKeys.end(), key) != kFreeKeys.end()) continue;
      std::string place = "/" + key;
      std::replace(place.begin(), place.end(), '.', '/');
      const nlohmann::json::json_pointer pointer(place);
      const nlohmann::json& value = now.at(pointer);
      const nlohmann::json then = config.value(pointer, value);
      if (then != value)
        refuse_change(key, fmt::format("{} now, {} then", value.dump(), then.dump()));
    }
  }

  void write_identity(int64_t done, const std::map<std::string, std::string>& files) const {
    telemetry::RunIdentity identity{.name = request_.train.run_name, .task = request_.train.task};
    identity.config_yaml = request_.resolved.yaml();
    identity.config_json = request_.resolved.json().dump();
    for (const config::ResolvedValue& value : request_.resolved.values())
      identity.origins[value.path] = value.origin;
    identity.hosts = {telemetry::host_name()};
    identity.devices.assign(static_cast<size_t>(request_.setup.num_local_ranks),
                            devices_of(request_.setup));
    identity.world_size = request_.setup.num_local_ranks;
    identity.threads = request_.found.flags.threads;
    identity.data_hashes = files;
    identity.resume_step = done;
    folder_.write_identity(identity);
  }

  // Calls `work` and records a stop or a failure in the run's events.
  template <class Work>
  int or_record(const Work& work) {
    try {
      const int code = work();
      if (code == static_cast<int>(ExitCode::Stopped))
        events_->append(EventKind::End, {{"status", "stopped"}});
      else if (code != 0)
        events_->append(
            EventKind::Failure,
            {{"message", fmt::format("the training of round {} failed", rounds_.size())}});
      return code;
    } catch (const StopRequest& stop) {
      events_->append(EventKind::End, {{"status", "stopped"}});
      throw StopRequest(stop.what(), {.hint = "resume with: " + to_go_on_});
    } catch (const Error& error) {
      events_->append(EventKind::Failure, {{"message", error.sentence()}});
      throw;
    }
  }

  void say_phase(int64_t round, const std::string& text) const {
    log_.info(fmt::format("round {} of {}: {}", round, settings().rounds, text));
  }

  void stop_if_asked() {
    if (signals_->asked_to_stop())
      throw StopRequest("stopped between two phases; what they made is kept");
  }

  // Runs and records one round. Returns an exit code; 0 = success.
  int next_round() {
    stop_if_asked();
    RoundRecord round{.round = std::ssize(rounds_)};
    if (round.round > 0) generate(round);
    stop_if_asked();
    const bool learns = round.kept.kept > 0;
    if (const int code = learns ? train(round) : 0; code != 0) return code;
    if (learns || round.round == 0) evaluate(round);
    record(round);
    return 0;
  }

  void generate(RoundRecord& round) {
    say_phase(round.round,
              fmt::format("generate {} of each problem", counted(settings().samples, "sample")));
    ProcessConfig config;
    phases_.settle_generate(round.round, config);
    process_as_part(context_, config);
    const process::PipelinePlan plan =
        process::read_pipeline_plan(phases_.generate_folder(round.round));
    const auto rows = data::create_rows(phases_.rows_file(round.round));
    process::for_each_output_row(phases_.samples_file(round.round), [&](const Json& row) {
      process::count_answers(row, round.generated);
      const process::KeptCounts kept = process::keep_solutions(
          plan, row, settings().keep, [&](const Json& learnt) { rows->write(learnt); });
      round.kept.distinct += kept.distinct;
      round.kept.kept += kept.kept;
    });
    rows->finish();
    round.seconds["generate"] =
        worked_seconds(phases_.generate_folder(round.round) / "events.jsonl");
  }

  int train(RoundRecord& round) {
    say_phase(round.round, fmt::format("train on {} of {}", counted(round.kept.kept, "row"),
                                       phases_.rows_file(round.round).string()));
    const int code =
        run_train_job(context_,
                      training_of(context_, request_, phases_, round.round, folder_.config_path(),
                                  phases_.rows_file(round.round)),
                      to_go_on_);
    if (code == 0)
      round.seconds["train"] = worked_seconds(phases_.train_folder(round.round) / "events.jsonl");
    return code;
  }

  void evaluate(RoundRecord& round) {
    say_phase(round.round, fmt::format("evaluate {}",
                                       round.round == 0 ? "the model as it starts" : "the result"));
    ProcessConfig config;
    phases_.settle_evaluate(round.round, config);
    process_as_part(context_, config);
    process::AnswerCounts counts;
    process::for_each_output_row(phases_.answers_file(round.round),
                                 [&](const Json& row) { process::count_answers(row, counts); });
    round.evaluated = counts;
    round.seconds["evaluate"] =
        worked_seconds(phases_.evaluate_folder(round.round) / "events.jsonl");
  }

  // Writes the events before rounds.jsonl: a start drops the events of rounds that rounds.jsonl
  // does not have.
  void record(const RoundRecord& round) {
    Json figures = rounds_json({round}).front();
    figures.erase("round");
    figures.erase("seconds");
    Json event = {{"step", round.round}};
    event.update(figures);
    if (round.round > 0) events_->append(EventKind::Step, event);
    if (round.evaluated)
      events_->append(
          EventKind::Eval,
          {{"step", round.round}, {"split", "eval"}, {"accuracy", round.evaluated->accuracy()}});
    rounds_.push_back(round);
    write_rounds(rounds_file(), rounds_);
    folder_.write_metrics({{"rounds", rounds_json(rounds_)}});
    log_.info(round_line(round));
  }

  void conclude() {
    const std::string reason = ended();
    const RoundRecord* const best = best_round(rounds_);
    const process::AnswerCounts& start = *rounds_.front().evaluated;
    log_.info(fmt::format("the run ends: {}", reason));
    Json figures = {
        {"rounds", rounds_json(rounds_)}, {"ended", reason}, {"start_accuracy", start.accuracy()}};
    if (best != nullptr)
      figures.update(
          Json{{"best_round", best->round}, {"best_accuracy", best->evaluated->accuracy()}});
    folder_.write_metrics(figures);
    if (best == nullptr && rounds_.size() > 1)
      throw DataError(reason,
                      {.file = phases_.samples_file(1).string(),
                       .hint = "look at the samples there; raise rejection.samples, give easier "
                               "problems, or teach a few solutions by task sft first, and name "
                               "another --run-dir"});
    if (best == nullptr) log_.warning("no round was needed: the result is the model as it was");
    if (best != nullptr) publish(*best, start);
    events_->append(EventKind::End, {{"status", "finished"}});
    if (prints_json_) print_result(folder_);
  }

  // Links the best round's result as the run's result. The link is relative, so the run may be
  // moved.
  void publish(const RoundRecord& best, const process::AnswerCounts& start) const {
    if (best.evaluated->solved <= start.solved)
      log_.warning(
          fmt::format("round {}, the best, has no more right answers than the model had "
                      "as it started",
                      best.round));
    const fs::path link = phases_.trains_all() ? folder_.model_folder() : folder_.adapter_folder();
    const fs::path fresh = link.string() + ".new";
    std::error_code failure;
    fs::remove(fresh, failure);
    fs::create_directory_symlink(phases_.result_of(best.round), fresh, failure);
    if (!failure) fs::rename(fresh, link, failure);
    if (failure)
      throw IoError(
          fmt::format("the link to round {} cannot be made: {}", best.round, failure.message()),
          {.file = link.string(),
           .hint = fmt::format("the result is {}",
                               (folder_.path() / phases_.result_of(best.round)).string())});
    log_.info(fmt::format("the result is round {}'s: {} -> {}", best.round, link.string(),
                          phases_.result_of(best.round).string()));
  }

  std::optional<processes::SignalStream> signals_;  // set during run()
  Context context_;
  bool prints_json_ = false;
  const RejectionRequest& request_;
  Log log_;
  telemetry::RunFolder folder_;
  RejectionPhases phases_;
  std::string to_go_on_;
  std::vector<RoundRecord> rounds_;
  std::optional<telemetry::EventLog> events_;
};

// Writes the reference solutions as training rows: a dry run generates no solutions of the model.
void write_reference_rows(const settings::ProcessDataSettings& data, const fs::path& file) {
  const process::ProblemFields fields = process::problem_fields(data);
  const auto writer = data::create_rows(file);
  const auto rows = data::open_dataset(data::find_dataset({.name = data.dataset}));
  while (const auto row = rows->next()) {
    const auto found = problem_in(fields, row->value);
    if (!found || (!found->solution && found->answers.empty())) continue;
    writer->write({{"prompt", found->problem},
                   {"completion", found->solution ? *found->solution : found->answers.front()}});
  }
  writer->finish();
}

// Prints the memory and the work of each phase. Leaves no files.
int print_plan(Context& context, const RejectionRequest& request) {
  const Log log = context.log();
  const settings::RejectionSettings& rejection = request.train.rejection;
  const std::string& output = request.train.train.output_dir;
  const RejectionPhases phases(
      request.train, output.empty() ? fs::path("runs") / request.train.run_name : fs::path(output),
      workers_of(request));
  log.info(fmt::format("plan: at most {} of generate, keep, train, evaluate",
                       counted(rejection.rounds, "round")));
  log.info("generate:");
  ProcessConfig generate;
  generate.flags.dry_run = true;
  phases.settle_generate(1, generate);
  run_processing(context, generate);
  log.info(
      fmt::format("train: at most {} of each problem; the reference's solutions stand in for "
                  "them here",
                  counted(rejection.keep, "row")));
  processes::ScratchFolder scratch;
  scratch.make();
  const fs::path config = scratch.path() / "config.yaml";
  const fs::path rows = scratch.path() / "rows.jsonl";
  write_file_atomic(config, request.resolved.yaml());
  write_reference_rows(generate.settings.data, rows);
  const int code =
      run_train_job(context, training_of(context, request, phases, 1, config, rows), {});
  if (code != 0) return code;
  log.info("evaluate:");
  ProcessConfig evaluate;
  evaluate.flags.dry_run = true;
  phases.settle_evaluate(0, evaluate);
  return run_processing(context, evaluate);
}

}  // namespace

int run_rejection(Context& context, const RejectionRequest& request) {
  refuse_what_cannot_be(request.found, request.setup);
  require_train_inputs(request.train);
  require_answers(request, "data.train_path", request.train.data.train_path);
  require_answers(request, "data.val_path", request.train.data.val_path);
  say_notes(context, request.setup);
  if (request.found.flags.dry_run) return print_plan(context, request);
  telemetry::RunFolder folder =
      telemetry::RunFolder::create(request.train.train.output_dir, request.train.run_name);
  context.log().info(fmt::format("run folder {}", folder.path().string()));
  return Rejection(context, request, std::move(folder)).run();
}

}  // namespace convoy::apps

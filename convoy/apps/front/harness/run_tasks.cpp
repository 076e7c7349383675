// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/harness/run_tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>

#include <algorithm>
#include <vector>

#include "convoy/apps/front/harness/harness_table.h"
#include "convoy/apps/front/standard_streams.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/foreign_checkpoint.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kPythonKey = "eval.harness_python";

constexpr const char* kRecordName = "tasks.json";

// Figures of other settings say nothing of these.
Json settings_json(const settings::HarnessSettings& wanted) {
  return {{"tasks", wanted.tasks.names},
          {"tasks_folder", wanted.tasks_folder},
          {"limit", wanted.limit},
          {"num_fewshot", wanted.num_fewshot},
          {"chat", wanted.chat}};
}

// The record of a run if it was made with these settings, else a new one.
Json record_with(const fs::path& run, const Json& settings) {
  Json record = read_run_tasks(run);
  if (!record.is_null() && record.value("settings", Json()) == settings) return record;
  return {{"settings", settings}};
}

// How the model computes while it is measured: as in training.
Words compute_words(const settings::TrainSettings& train) {
  Words words;
  if (const std::string dtype = train.wished_dtype(); dtype != "auto")
    words.insert(words.end(), {"--dtype", dtype});
  const settings::QuantizationSettings& quantization = train.tuning.quantization;
  if (const std::string format = quantization.format(train.tuning.mode == "qlora");
      format != "none") {
    words.insert(words.end(), {"--quantization", format});
    if (quantization.double_quant && format != "int8") words.emplace_back("--double-quant");
  }
  if (!train.data.template_path.empty())
    words.insert(words.end(), {"--template-path", train.data.template_path});
  return words;
}

MeasuredModel model_of(const settings::TrainSettings& train, const std::string& model,
                       const std::string& adapter) {
  MeasuredModel measured{.server_words = {"--model", model}, .adapter = adapter};
  const Words words = compute_words(train);
  measured.server_words.insert(measured.server_words.end(), words.begin(), words.end());
  return measured;
}

// The model whose weights stay as they are under an adapter.
std::string base_of(const settings::TrainSettings& train) {
  return io::base_of_adapter_folder(train.model.name).value_or(train.model.name);
}

MeasuredModel model_before(const settings::TrainSettings& train) {
  const std::string base = base_of(train);
  const std::string adapter = !train.tuning.lora.adapter.empty() ? train.tuning.lora.adapter
                              : base != train.model.name         ? train.model.name
                                                                 : "";
  MeasuredModel model = model_of(train, base, adapter);
  if (train.model.revision != settings::ModelSettings().revision)
    model.server_words.insert(model.server_words.end(), {"--revision", train.model.revision});
  return model;
}

MeasuredModel model_after(const settings::TrainSettings& train,
                          const telemetry::RunFolder& folder) {
  if (train.tuning.mode == "full") return model_of(train, folder.model_folder().string(), "");
  MeasuredModel model = model_before(train);
  model.adapter = folder.adapter_folder().string();
  return model;
}

// One hash of all weights in the folder. A training that goes on writes other ones.
std::string hash_of_weights(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    if (entry.path().extension() == ".safetensors") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  Sha256 hash;
  for (const fs::path& file : files) hash.update(sha256_hex_of_file(file));
  return hash.hex();
}

}  // namespace

RunTasks::RunTasks(const Context& context, const settings::TrainSettings& train,
                   const telemetry::RunFolder& folder, bool on_gpus,
                   const std::vector<int>& stop_signals)
    : context_(context),
      train_(train),
      folder_(folder),
      on_gpus_(on_gpus),
      record_(train.eval.tasks.names.empty()
                  ? Json()
                  : record_with(folder.path(), settings_json(train.eval))) {
  if (train.eval.tasks.names.empty()) return;
  std::vector<int> waiting = stop_signals;
  waiting.push_back(SIGUSR1);
  signals_.emplace(waiting);
}

void RunTasks::measure_before() {
  if (train_.eval.tasks.names.empty()) return;
  const MeasuredModel model = model_before(train_);
  measure("before", model, {{"words", model.server_words}, {"adapter", model.adapter}});
  if (signals_->asked_to_stop()) throw StopRequest("stopped on request");
}

void RunTasks::measure_after() {
  if (train_.eval.tasks.names.empty()) return;
  const fs::path result =
      train_.tuning.mode == "full" ? folder_.model_folder() : folder_.adapter_folder();
  measure("after", model_after(train_, folder_),
          {{"words", compute_words(train_)}, {"weights", hash_of_weights(result)}});
  write_to_stderr(run_tasks_table(record_));
}

void RunTasks::measure(const std::string& when, const MeasuredModel& model, Json of) {
  if (record_.contains(when) && record_.value(when + "_of", Json()) == of) return;
  // A signal that comes before measure_tasks() reads signals waits for it.
  const processes::SignalStream signals({SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1});
  MeasuredModel placed = model;
  placed.server_words.insert(placed.server_words.end(), {"--devices", on_gpus_ ? "cuda" : "cpu"});
  context_.log().info(
      fmt::format("measuring {} {} the training", fmt::join(train_.eval.tasks.names, ", "), when));
  record_[when] = measure_tasks(context_, train_.eval, find_harness(train_.eval, kPythonKey),
                                placed, {.path = folder_.path() / "tasks" / when});
  record_[when + "_of"] = std::move(of);
  write_file_atomic(folder_.path() / kRecordName, record_.dump(2) + "\n");
}

Json read_run_tasks(const fs::path& run) {
  const fs::path path = run / kRecordName;
  if (!fs::exists(path)) return nullptr;
  const Json record = Json::parse(read_file(path), nullptr, false);
  if (!record.is_object())
    throw DataError("this is no JSON object", {.file = path.string(), .hint = "remove the file"});
  return record;
}

std::string run_tasks_table(const Json& record) {
  if (!record.contains("before")) return {};
  if (!record.contains("after")) return harness_table(record.at("before"));
  return harness_comparison(record.at("before"), record.at("after"));
}

void require_harness(const settings::TrainSettings& train) {
  if (!train.eval.tasks.names.empty()) find_harness(train.eval, kPythonKey);
}

}  // namespace convoy::apps

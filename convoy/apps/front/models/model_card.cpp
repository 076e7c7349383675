// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/models/model_card.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/trimmed.h"
#include "convoy/core/io/hub_cache.h"
#include "convoy/core/telemetry/logs/trainer_state.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

using Rows = std::vector<std::pair<std::string, std::string>>;

// A text as a YAML scalar: as it is where that cannot be misread, else as a JSON text.
std::string yaml_text(const std::string& text) {
  const bool is_plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) &&
                        std::all_of(text.begin(), text.end(), [](unsigned char letter) {
                          return std::isalnum(letter) || letter == '-' || letter == '_' ||
                                 letter == '.' || letter == '/';
                        });
  return is_plain ? text : json(text).dump();
}

std::string value_text(const json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

const json* find(const json& tree, const std::string& pointer) {
  const json::json_pointer path(pointer);
  return tree.contains(path) ? &tree.at(path) : nullptr;
}

std::string text_at(const json& tree, const std::string& pointer) {
  const json* found = find(tree, pointer);
  return found != nullptr && found->is_string() ? found->get<std::string>() : "";
}

// The id in a path of the hub cache: "org/name" of ".../models--org--name/snapshots/COMMIT".
std::optional<std::string> id_in_cache(const fs::path& path) {
  for (const fs::path& part : path) {
    const std::string name = part.string();
    constexpr std::string_view kPrefix = "models--";
    if (!name.starts_with(kPrefix)) continue;
    const size_t slash = name.find("--", kPrefix.size());
    if (slash == std::string::npos) continue;
    return name.substr(kPrefix.size(), slash - kPrefix.size()) + "/" + name.substr(slash + 2);
  }
  return std::nullopt;
}

struct BaseModel {
  std::string id = {};     // at the hub; empty: a local folder
  std::string shown = {};  // the id, or the folder's name
  fs::path folder = {};    // empty: not on this machine
};

BaseModel base_of(const json& record) {
  const std::string name = text_at(record, "/config/model/name");
  const std::string revision = text_at(record, "/config/model/revision");
  std::error_code ignored;
  if (fs::exists(name, ignored)) {
    const auto id = id_in_cache(fs::absolute(name));
    return {.id = id.value_or(""),
            .shown = id.value_or(fs::path(name + "/").parent_path().filename().string()),
            .folder = name};
  }
  if (name.find('/') == std::string::npos || !io::looks_like_hub_id(name))
    return {.shown = fs::path(name).filename().string()};
  const auto snapshot =
      io::find_in_hub_cache(name, revision.empty() ? "main" : revision, io::hub_cache_folder());
  return {.id = name, .shown = name, .folder = snapshot ? snapshot->folder : fs::path()};
}

// The lines `license: ...`, `license_name: ...` and `license_link: ...` of a model card.
std::string license_lines(const fs::path& model) {
  std::error_code ignored;
  const fs::path card = model / "README.md";
  if (model.empty() || !fs::is_regular_file(card, ignored)) return {};
  std::istringstream lines(read_file(card, int64_t{16} << 20));
  std::string line;
  std::string found;
  if (!std::getline(lines, line) || trimmed(line, " \r") != "---") return {};
  while (std::getline(lines, line) && trimmed(line, " \r") != "---")
    for (const char* key : {"license: ", "license_name: ", "license_link: "})
      if (line.starts_with(key)) found += std::string(trimmed(line, " \r")) + "\n";
  return found;
}

// Paths of the rows that trained: data.train_path, or the data sets of a mixture.
std::vector<std::string> training_paths(const json& record) {
  std::vector<std::string> paths;
  if (std::string path = text_at(record, "/config/data/train_path"); !path.empty())
    paths.push_back(std::move(path));
  if (const json* sets = find(record, "/config/datasets"); sets != nullptr && sets->is_array())
    for (const json& one : *sets)
      if (std::string path = text_at(one, "/path"); !path.empty()) paths.push_back(std::move(path));
  return paths;
}

bool is_hub_data(const std::string& path) {
  std::error_code ignored;
  return path.find('/') != std::string::npos && io::looks_like_hub_id(path) &&
         io::find_in_hub_cache(path, "main", io::hub_cache_folder(), io::HubRepository::Dataset) &&
         !fs::exists(path, ignored);
}

// A path as the card shows it: an id of the hub, or the name of a file.
std::string shown_path(const std::string& path) {
  return is_hub_data(path) ? path : fs::path(path).filename().string();
}

std::string front_matter(const json& record, const BaseModel& base, bool is_adapter) {
  std::string text = "---\n";
  if (!base.id.empty())
    text += fmt::format("base_model: {}\nbase_model_relation: {}\n", yaml_text(base.id),
                        is_adapter ? "adapter" : "finetune");
  const std::string task = text_at(record, "/task");
  const bool is_language_model = task != "classify";
  if (is_language_model)
    text += fmt::format("library_name: {}\n", is_adapter ? "peft" : "transformers");
  text += license_lines(base.folder);
  std::vector<std::string> ids = training_paths(record);
  std::erase_if(ids, [](const std::string& path) { return !is_hub_data(path); });
  if (!ids.empty()) text += "datasets:\n";
  for (const std::string& id : ids) text += fmt::format("- {}\n", yaml_text(id));
  if (is_language_model) text += "pipeline_tag: text-generation\n";
  text += "tags:\n- convoy\n";
  if (!task.empty()) text += fmt::format("- {}\n", yaml_text(task));
  if (is_adapter) text += "- lora\n";
  return text + "---\n";
}

// The text as a cell of a table: a bar would end it.
std::string table_cell(const std::string& text) {
  std::string escaped;
  for (const char letter : text) escaped += letter == '|' ? "\\|" : std::string(1, letter);
  return escaped;
}

// The text as code. It may hold a backtick.
std::string as_code(const std::string& text) {
  return text.find('`') == std::string::npos ? fmt::format("`{}`", text)
                                             : fmt::format("`` {} ``", text);
}

std::string table(const std::string& title, const Rows& rows) {
  if (rows.empty()) return {};
  std::string text = fmt::format("\n## {}\n\n| | |\n|---|---|\n", title);
  for (const auto& [name, value] : rows)
    text += fmt::format("| {} | {} |\n", table_cell(name), table_cell(value));
  return text;
}

Rows data_rows(const json& record) {
  Rows rows;
  const std::vector<std::string> trained = training_paths(record);
  for (const std::string& path : trained) rows.emplace_back("train", shown_path(path));
  if (const std::string path = text_at(record, "/config/data/val_path"); !path.empty())
    rows.emplace_back("val", shown_path(path));
  for (auto& [split, shown] : rows) {
    // The hash of a mixture is that of all its sets.
    const bool is_one = split != "train" || trained.size() == 1;
    const std::string hash = is_one ? text_at(record, "/data_hashes/" + split) : "";
    shown = fmt::format("{}{}", as_code(shown), hash.empty() ? "" : ", SHA-256 " + hash);
  }
  return rows;
}

Rows setting_rows(const json& record, bool is_adapter) {
  std::vector<std::pair<const char*, const char*>> wanted = {
      {"task", "/task"},
      {"what trains", "/config/tuning/mode"},
      {"learning rate", "/config/train/learning_rate"},
      {"schedule", "/config/train/lr_scheduler_type"},
      {"optimizer", "/config/train/optim"},
      {"weight decay", "/config/train/weight_decay"},
      {"rows of a step", "/stamp/global_batch"},
      {"longest row in tokens", "/stamp/max_seq_len"},
      {"type of products", "/stamp/dtype"},
      {"strategy", "/stamp/parallel.strategy"},
      {"ranks", "/world_size"},
      {"seed", "/config/seed"}};
  if (is_adapter)
    wanted.insert(wanted.begin() + 2, {{"LoRA rank", "/config/tuning/lora/r"},
                                       {"LoRA alpha", "/config/tuning/lora/alpha"},
                                       {"LoRA dropout", "/config/tuning/lora/dropout"}});
  Rows rows;
  for (const auto& [name, pointer] : wanted)
    if (const json* value = find(record, pointer)) rows.emplace_back(name, value_text(*value));
  return rows;
}

Rows figure_rows(const json& figures) {
  Rows rows;
  for (const auto& [name, key] : {std::pair{"steps", "global_step"},
                                  {"epochs", "epoch"},
                                  {"tokens", "tokens_seen"},
                                  {"supervised tokens", "supervised_tokens_seen"},
                                  {"loss in training", "train_loss"}})
    if (const json* value = find(figures, std::string("/") + key))
      rows.emplace_back(name, value_text(*value));
  if (const json* seconds = find(figures, "/train_runtime"); seconds && seconds->is_number())
    rows.emplace_back("time", telemetry::duration_text(seconds->get<double>()));
  for (const auto& [key, value] : figures.items()) {
    const bool is_of_evaluation = key.starts_with("eval_") || key.starts_with("test_");
    const bool is_of_its_run = key.find("_runtime") != key.npos ||
                               key.find("_per_second") != key.npos ||
                               key.starts_with("eval_gen_") || key == "eval_num_beams";
    if (is_of_evaluation && !is_of_its_run && value.is_number())
      rows.emplace_back(fmt::format("`{}`", key), value_text(value));
  }
  return rows;
}

// The figures of a checkpoint, which differ from those at the run's end: its steps, and what an
// evaluation at that step has found.
json figures_of_checkpoint(const fs::path& state_file) {
  const telemetry::TrainerState state = telemetry::parse_trainer_state(read_file(state_file));
  json figures = {{"global_step", state.global_step}, {"epoch", state.epoch}};
  for (const json& logged : state.log_history)
    if (logged.is_object() && logged.value("step", json()) == state.global_step)
      for (const auto& [key, value] : logged.items())
        if (key.starts_with("eval_")) figures[key] = value;
  return figures;
}

json figures_of(const fs::path& run, const fs::path& model) {
  if (model.parent_path().filename() == "checkpoints") {
    const fs::path state_file = model / "trainer_state.json";
    return fs::exists(state_file) ? figures_of_checkpoint(state_file) : json::object();
  }
  json figures = telemetry::read_run_record(run / "metrics.json");
  return figures.is_object() ? figures : json::object();
}

}  // namespace

std::string model_card(const fs::path& run, const fs::path& model, const std::string& name) {
  const json record = telemetry::read_run_record(run / "run.json");
  if (!record.is_object())
    throw DataError(fmt::format("{} holds no record of a run", run.string()),
                    {.file = (run / "run.json").string(), .hint = "write a README.md by hand"});
  const bool is_adapter = fs::exists(model / "adapter_config.json");
  const BaseModel base = base_of(record);
  std::string text = front_matter(record, base, is_adapter);
  const std::string base_text = base.id.empty()
                                    ? fmt::format("`{}`", base.shown)
                                    : fmt::format("[{0}](https://huggingface.co/{0})", base.id);
  const std::string kind = base.shown.empty() ? "A model"
                           : is_adapter       ? "An adapter for " + base_text
                                              : "A model from " + base_text;
  text += fmt::format("\n# {}\n\n{}, trained with Convoy {}.\n", name, kind,
                      text_at(record, "/version"));
  text += table("Data", data_rows(record));
  text += table("Training", setting_rows(record, is_adapter));
  text += table("Figures", figure_rows(figures_of(run, model)));
  return text;
}

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
//
// `convoy models`: lists models, and checks or fetches one.
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/models/hub_fetch.h"
#include "convoy/apps/front/worker/worker_program.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/model_check_flags.h"
#include "convoy/data/hub/file_choice.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/architecture/families/missing_forms.h"

namespace convoy::apps {
namespace {

// Warns of problems that training would report for the configuration.
bool can_be_used(const std::filesystem::path& folder, const Log& log) {
  if (!std::filesystem::exists(folder / "config.json")) return false;
  try {
    families::read_decoder_spec(io::ModelFolder::open(folder.string()));
    return true;
  } catch (const DataError& error) {
    log.warning("it was downloaded, but cannot be used: " + error.sentence());
    return false;
  }
}

int fetch_model(const Context& context, const FetchFlags& flags, const Words& words) {
  if (words.size() != 1)
    throw ConfigError(fmt::format("wanted one hub id, found {}", words.size()),
                      {.hint = "convoy models fetch ORG/NAME"});
  return fetch_from_hub(context, flags,
                        {.repository = {.id = words[0], .kind = io::HubRepository::Model},
                         .is_read = hub::is_model_file,
                         .use = fmt::format("convoy generate --model {} --prompt ...", words[0]),
                         .look = can_be_used});
}

struct ListFlags {
  template <class Visitor>
  void fields(Visitor&) {}
};

constexpr std::array kRefused = {
    "mixtures of experts, hybrids, state-space and encoder models: `convoy models check` says what "
    "each lacks, and which family comes nearest",
    "pickled weights (.bin, .pth): converted once with save_pretrained(safe_serialization=True)",
    "a model's own Python code (auto_map, trust_remote_code): never run",
    "forms that a family lacks, such as an output gate of attention: named by their key of "
    "config.json",
    "vision and audio parts: only the language model of a nested checkpoint is read"};

nlohmann::ordered_json list_as_json() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const families::Family& family : families::all_families())
    list.push_back({{"model_type", family.model_type},
                    {"architecture", family.architecture},
                    {"models", family.models},
                    {"nested", family.layout == families::TextModel::Nested}});
  nlohmann::ordered_json missing = nlohmann::ordered_json::array();
  for (const families::MissingType& type : families::missing_types())
    missing.push_back({{"model_type", type.model_type},
                       {"models", type.models},
                       {"needs", type.needs},
                       {"nearest", type.nearest}});
  return {{"families", list}, {"missing", missing}, {"refused", kRefused}};
}

int list_models(const Context& context, const ListFlags&, const Words& words) {
  if (!words.empty())
    throw ConfigError(
        "models list takes no model",
        {.hint = fmt::format("`convoy models check {}` looks at one", words.front())});
  if (context.common.json) {
    std::cout << list_as_json().dump(1) << "\n";
    return 0;
  }
  fmt::print("{:<17} {:<22} {}\n", "model_type", "transformers' class", "models");
  for (const families::Family& family : families::all_families())
    fmt::print("{:<17} {:<22} {}\n", family.model_type, family.architecture, family.models);
  fmt::print(
      "\nSafetensors in one file or sharded, config.json of transformers 4 and 5; GGUF files of "
      "these\nfamilies. Refused:\n");
  for (const char* refused : kRefused) fmt::print("  - {}\n", refused);
  fmt::print(
      "\n`convoy models check FOLDER` checks one, `convoy models fetch ORG/NAME` downloads one.\n");
  return 0;
}

int check_model_folder(Context& context, const std::vector<std::string>& arguments) {
  settings::ModelCheckFlags flags;
  context.parse(flags, arguments);  // reports a wrong flag before the worker starts
  become_worker(context, "check-model", arguments);
}

}  // namespace

Command models_command() {
  return {.name = "models",
          .summary = "List, check, fetch, push, merge and export models",
          .usage =
              "convoy models [list] | check MODEL | fetch ORG/NAME | push FOLDER "
              "USER/NAME | merge|quantize|export|convert [flags]",
          .examples =
              "convoy models\n"
              "convoy models check examples/tally-3m\n"
              "convoy models fetch Qwen/Qwen2.5-0.5B-Instruct",
          .actions = {{.name = "list",
                       .summary = "List the families of models, and what is refused",
                       .usage = "convoy models [list]",
                       .examples = "convoy models\nconvoy models list --json",
                       .run = with_flags_of<ListFlags, list_models>},
                      {.name = "check",
                       .summary = "Check what a model folder is, holds and lacks",
                       .usage = "convoy models check FOLDER|FILE.gguf|ORG/NAME [flags]",
                       .examples = "convoy models check examples/tally-3m",
                       .flags = {flags_of<settings::ModelCheckFlags>()},
                       .run = check_model_folder},
                      {.name = "fetch",
                       .summary = "Download a model of the Hugging Face hub",
                       .usage = "convoy models fetch ORG/NAME [flags]",
                       .examples = "convoy models fetch Qwen/Qwen2.5-0.5B-Instruct",
                       .flags = {flags_of<FetchFlags>()},
                       .run = with_flags_of<FetchFlags, fetch_model>},
                      models_push_action(),
                      models_merge_action(),
                      models_quantize_action(),
                      models_export_action(),
                      models_convert_action()},
          .usual_action = "list",
          .group = HelpGroup::ModelsAndData};
}

}  // namespace convoy::apps

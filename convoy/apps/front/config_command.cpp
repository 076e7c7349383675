// SPDX-License-Identifier: Apache-2.0
//
// `convoy config show|check|presets|prompts|schema`, and the hidden `docs` that writes docs/reference/config.md.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/apps/front/build_facts.h"
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/process_config.h"
#include "convoy/apps/front/train_config.h"
#include "convoy/apps/front/train_inputs.h"
#include "convoy/base/error.h"
#include "convoy/base/suggest.h"
#include "convoy/config/describe.h"
#include "convoy/process/pipeline_plan.h"
#include "convoy/settings/resolve_train.h"

namespace convoy::apps {
namespace {

struct ConfigFlags {
  bool origin = false;
  std::string preset;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("origin", origin, "show: print where each value came from");
    visit("preset", preset, "start from this preset (`convoy config presets`)");
  }
};

void print_values(const Context& context, const ConfigFlags& flags,
                  const config::Resolved& resolved) {
  if (context.common.json) {
    const nlohmann::json record = flags.origin ? resolved.json_with_origins() : resolved.json();
    fmt::print("{}\n", record.dump(2));
  } else {
    fmt::print("{}", flags.origin ? resolved.yaml_with_origins() : resolved.yaml());
  }
}

// A configuration says by its task whose it is.
bool is_of_process(const ConfigFlags& flags, const std::vector<std::string>& arguments) {
  return settings::is_process_config(process_sources(arguments, flags.preset));
}

config::Resolved read_process(settings::ProcessSettings& process, const Context& context,
                              const ConfigFlags& flags, const std::vector<std::string>& arguments) {
  config::Resolved resolved =
      settings::resolve_process(process, process_sources(arguments, flags.preset));
  process::PipelinePlan(process, process::read_prompt_texts(process.prompts, prompt_texts()));
  for (const std::string& notice : resolved.notices()) context.log().info(notice);
  return resolved;
}

int show(const Context& context, const ConfigFlags& flags,
         const std::vector<std::string>& arguments) {
  if (is_of_process(flags, arguments)) {
    settings::ProcessSettings process;
    print_values(context, flags, read_process(process, context, flags, arguments));
    return 0;
  }
  settings::TrainSettings train;
  print_values(context, flags, read_train_config(train, arguments, flags.preset, context.log()));
  return 0;
}

int say_ok(const Context& context, const config::Resolved& resolved) {
  if (context.common.json)
    fmt::print("{}\n", nlohmann::json{{"ok", true}, {"notices", resolved.notices()}}.dump());
  else
    fmt::print("ok\n");
  return 0;
}

int check(const Context& context, const ConfigFlags& flags,
          const std::vector<std::string>& arguments) {
  if (arguments.empty() && flags.preset.empty())
    throw ConfigError("config check wants a file", {.hint = "convoy config check run.yaml"});
  if (is_of_process(flags, arguments)) {
    settings::ProcessSettings process;
    return say_ok(context, read_process(process, context, flags, arguments));
  }
  settings::TrainSettings train;
  const config::Resolved resolved = read_train_config(train, arguments, flags.preset, context.log(),
                                                      settings::Wanted::TrainInputs);
  // A configuration may be for another machine: it is right without its files.
  for (const DataError& error : missing_train_inputs(train))
    context.log().warning(fmt::format("{}: {}", error.place().key, error.sentence()));
  return say_ok(context, resolved);
}

// The comment lines at the top of a preset say what it is for.
std::string preset_summary(const std::string& text) {
  return text.starts_with("# ") ? text.substr(2, text.find('\n') - 2) : "";
}

int presets(const Context& context, const std::vector<std::string>& arguments) {
  const std::map<std::string, std::string> texts = preset_texts();
  if (!arguments.empty()) {
    const auto preset = texts.find(arguments[0]);
    if (preset == texts.end()) {
      std::vector<std::string> names;
      for (const auto& [name, text] : texts) names.push_back(name);
      throw ConfigError(fmt::format("there is no preset `{}`{}", arguments[0],
                                    did_you_mean(arguments[0], names)));
    }
    fmt::print("{}", preset->second);
    return 0;
  }
  nlohmann::json list = nlohmann::json::object();
  for (const auto& [name, text] : texts) {
    list[name] = preset_summary(text);
    if (!context.common.json) fmt::print("{:<16} {}\n", name, preset_summary(text));
  }
  if (context.common.json) fmt::print("{}\n", list.dump(2));
  return 0;
}

int prompts(const Context& context, const std::vector<std::string>& arguments) {
  const std::map<std::string, std::string> texts = prompt_texts();
  if (arguments.empty()) {
    if (context.common.json) fmt::print("{}\n", nlohmann::json(texts).dump(2));
    for (const auto& [name, text] : texts)
      if (!context.common.json) fmt::print("{:<10} {}\n", name, text.substr(0, text.find('\n')));
    return 0;
  }
  const auto prompt = texts.find(arguments[0]);
  if (prompt == texts.end()) {
    std::vector<std::string> names;
    for (const auto& [name, text] : texts) names.push_back(name);
    throw ConfigError(
        fmt::format("there is no prompt `{}`{}", arguments[0], did_you_mean(arguments[0], names)));
  }
  fmt::print("{}", prompt->second);
  return 0;
}

int schema(const std::vector<std::string>& arguments) {
  if (arguments == std::vector<std::string>{"process"}) {
    settings::ProcessSettings process;
    fmt::print("{}\n",
               config::json_schema(config::list_fields(process), "Convoy processing configuration")
                   .dump(2));
    return 0;
  }
  settings::TrainSettings train;
  fmt::print(
      "{}\n",
      config::json_schema(config::list_fields(train), "Convoy training configuration").dump(2));
  return 0;
}

int docs() {
  fmt::print("{}{}", train_config_markdown(), process_config_markdown());
  return 0;
}

int run_config(Context& context, const std::vector<std::string>& arguments) {
  ConfigFlags flags;
  std::vector<std::string> rest = context.parse(flags, arguments);
  const std::vector<std::string> parts = {"show", "check", "presets", "prompts", "schema"};
  if (rest.empty()) throw ConfigError("config wants one of show, check, presets, prompts, schema");
  const std::string part = rest[0];
  rest.erase(rest.begin());
  if (part == "show") return show(context, flags, rest);
  if (part == "check") return check(context, flags, rest);
  if (part == "presets") return presets(context, rest);
  if (part == "prompts") return prompts(context, rest);
  if (part == "schema") return schema(rest);
  if (part == "docs") return docs();
  throw ConfigError(
      fmt::format("config wants one of show, check, presets, prompts, schema, found `{}`{}", part,
                  did_you_mean(part, parts)));
}

}  // namespace

Command config_command() {
  return {.name = "config",
          .summary = "shows and checks configuration: values, origins, presets, prompts, schema",
          .usage =
              "convoy config show [--origin] [CONFIG.yaml] [key=value ...]\n"
              "convoy config check CONFIG.yaml [key=value ...]\n"
              "convoy config presets [NAME]\n"
              "convoy config prompts [NAME]\n"
              "convoy config schema [process]",
          .examples =
              "convoy config show --origin run.yaml train.batch_size=2\n"
              "convoy config check run.yaml\n"
              "convoy config show --preset chat-lora model.name=Qwen/Qwen2.5-0.5B",
          .flag_table = config::flag_table_of<ConfigFlags>,
          .run = run_config};
}

}  // namespace convoy::apps

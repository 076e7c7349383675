// SPDX-License-Identifier: Apache-2.0
//
// `convoy config show|check|presets|schema`, and the hidden `docs` that writes docs/reference/config.md.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "convoy/apps/front/build_facts.h"
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/train_config.h"
#include "convoy/apps/front/train_inputs.h"
#include "convoy/base/error.h"
#include "convoy/base/suggest.h"
#include "convoy/config/describe.h"
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

int show(const Context& context, const ConfigFlags& flags,
         const std::vector<std::string>& arguments) {
  settings::TrainSettings train;
  const config::Resolved resolved =
      read_train_config(train, arguments, flags.preset, context.log());
  if (context.common.json) {
    const nlohmann::json record = flags.origin ? resolved.json_with_origins() : resolved.json();
    fmt::print("{}\n", record.dump(2));
  } else {
    fmt::print("{}", flags.origin ? resolved.yaml_with_origins() : resolved.yaml());
  }
  return 0;
}

int check(const Context& context, const ConfigFlags& flags,
          const std::vector<std::string>& arguments) {
  if (arguments.empty() && flags.preset.empty())
    throw ConfigError("config check wants a file", {.hint = "convoy config check run.yaml"});
  settings::TrainSettings train;
  const config::Resolved resolved = read_train_config(train, arguments, flags.preset, context.log(),
                                                      settings::Wanted::TrainInputs);
  // A configuration may be for another machine: it is right without its files.
  for (const DataError& error : missing_train_inputs(train))
    context.log().warning(fmt::format("{}: {}", error.place().key, error.sentence()));
  if (context.common.json) {
    fmt::print("{}\n", nlohmann::json{{"ok", true}, {"notices", resolved.notices()}}.dump());
  } else {
    fmt::print("ok\n");
  }
  return 0;
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

int schema() {
  settings::TrainSettings train;
  fmt::print(
      "{}\n",
      config::json_schema(config::list_fields(train), "Convoy training configuration").dump(2));
  return 0;
}

int docs() {
  fmt::print("{}", train_config_markdown());
  return 0;
}

int run_config(Context& context, const std::vector<std::string>& arguments) {
  ConfigFlags flags;
  std::vector<std::string> rest = context.parse(flags, arguments);
  const std::vector<std::string> parts = {"show", "check", "presets", "schema"};
  if (rest.empty()) throw ConfigError("config wants one of show, check, presets, schema");
  const std::string part = rest[0];
  rest.erase(rest.begin());
  if (part == "show") return show(context, flags, rest);
  if (part == "check") return check(context, flags, rest);
  if (part == "presets") return presets(context, rest);
  if (part == "schema") return schema();
  if (part == "docs") return docs();
  throw ConfigError(fmt::format("config wants one of show, check, presets, schema, found `{}`{}",
                                part, did_you_mean(part, parts)));
}

}  // namespace

Command config_command() {
  return {.name = "config",
          .summary = "shows and checks configuration: values, origins, presets, schema",
          .usage =
              "convoy config show [--origin] [CONFIG.yaml] [key=value ...]\n"
              "convoy config check CONFIG.yaml [key=value ...]\n"
              "convoy config presets [NAME]\n"
              "convoy config schema",
          .examples =
              "convoy config show --origin run.yaml train.batch_size=2\n"
              "convoy config check run.yaml\n"
              "convoy config show --preset chat-lora model.name=Qwen/Qwen2.5-0.5B",
          .flag_table = config::flag_table_of<ConfigFlags>,
          .run = run_config};
}

}  // namespace convoy::apps

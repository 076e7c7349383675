// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_config.h"

#include <fmt/format.h>

#include <map>

#include "convoy/apps/front/build_facts.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/describe.h"

namespace convoy::apps {

config::Sources process_sources(const std::vector<std::string>& words, const std::string& preset) {
  config::Sources sources;
  for (const std::string& word : words) {
    if (word.find('=') != std::string::npos) {
      sources.overrides.push_back(word);
    } else if (sources.file.empty()) {
      sources.file = word;
    } else {
      throw ConfigError(
          fmt::format("wanted one config file, found {} and {}", sources.file.string(), word),
          {.hint = "settings are written key=value; files are merged by include:"});
    }
  }
  sources.preset = preset;
  sources.presets = preset_texts();
  sources.environment = config::process_environment();
  return sources;
}

void read_process_config(Context& context, const std::vector<std::string>& arguments,
                         ProcessConfig& config) {
  settings::ProcessSettings scratch;  // the flags are parsed again over the sources
  const std::vector<std::string> words =
      config::parse_flags({settings::process_flag_list(scratch), config::list_fields(config.flags),
                           config::list_fields(context.common)},
                          arguments);
  std::vector<std::string> flags = arguments;
  if (config.flags.plain) flags.insert(flags.begin(), {"--chat", "off"});
  settings::ProcessCommandFlags again;
  CommonFlags common;
  config.resolved =
      settings::resolve_process(config.settings, process_sources(words, config.flags.preset), flags,
                                {config::list_fields(again), config::list_fields(common)});
  if (config.flags.debug) context.common.verbose = true;
}

std::vector<FlagGroup> process_flag_groups() {
  static const std::map<std::string, std::string_view> headings = {{"", "Run"},
                                                                   {"model", "Model"},
                                                                   {"remote", "Servers"},
                                                                   {"data", "Data"},
                                                                   {"prompts", "Prompts"},
                                                                   {"generate", "Generate"},
                                                                   {"evaluate", "Evaluate"},
                                                                   {"improve", "Improve"},
                                                                   {"filter", "Filter"},
                                                                   {"output", "Output"},
                                                                   {"pairs", "Pairs"},
                                                                   {"answers", "Answers"},
                                                                   {"workers", "Ranks"},
                                                                   {"engine", "Engine"}};
  static settings::ProcessSettings defaults;
  std::vector<FlagGroup> groups;
  for (const config::Section& section : settings::process_flag_sections(defaults))
    groups.push_back({headings.at(section.name), [section] { return section; }});
  groups.push_back(flags_of<settings::ProcessCommandFlags>("This start"));
  return groups;
}

std::string process_config_markdown() {
  settings::ProcessSettings settings;
  return "\n# Configuration of `convoy process`\n\n"
         "A separate file with `task: process`. Sources have the precedence above; each setting is "
         "also a flag (`convoy help process`).\n" +
         config::reference_markdown(config::list_fields(settings));
}

}  // namespace convoy::apps

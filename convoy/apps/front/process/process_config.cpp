// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/process/process_config.h"

#include <algorithm>
#include <map>
#include <utility>

#include "convoy/apps/front/train/train_config.h"
#include "convoy/core/config/describe.h"

namespace convoy::apps {

void read_process_config(Context& context, const std::vector<std::string>& arguments,
                         ProcessConfig& config) {
  settings::ProcessFlagValues flags;
  const config::TakenFlags taken = config::take_flags(
      {settings::process_flag_list(flags.settings)},
      {config::list_fields(config.flags), config::list_fields(context.common)}, arguments);
  flags.names = taken.given;
  if (config.flags.plain &&
      std::find(flags.names.begin(), flags.names.end(), "chat") == flags.names.end()) {
    flags.settings.prompts.chat = "off";
    flags.names.push_back("chat");
  }
  config.resolved = settings::resolve_process(
      config.settings, config_sources(taken.positionals, config.flags.preset), std::move(flags));
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
                                                                   {"problems", "Problems"},
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

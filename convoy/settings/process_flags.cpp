// SPDX-License-Identifier: Apache-2.0
#include "convoy/settings/process_flags.h"

#include <algorithm>
#include <map>

#include "convoy/config/describe.h"

namespace convoy::settings {
namespace {

// Where the plain name of a setting is not its own: what the guide calls it, or what tells two apart.
// Empty: no flag.
const std::map<std::string, std::string>& names_of_their_own() {
  static const std::map<std::string, std::string> names = {
      {"task", ""},
      {"model.name", "model"},
      {"generate.n", "samples"},
      {"prompts.system", "system_prompt"},
      {"prompts.generate", "generate_prompt"},
      {"prompts.evaluate", "evaluate_prompt"},
      {"prompts.improve", "improve_prompt"},
      {"evaluate.temperature", "evaluate_temperature"},
      {"evaluate.top_p", "evaluate_top_p"},
      {"evaluate.max_tokens", "evaluate_max_tokens"},
      {"evaluate.weights", ""},
      {"improve.temperature", "improve_temperature"},
      {"improve.top_p", "improve_top_p"},
      {"improve.max_tokens", "improve_max_tokens"},
      {"output.path", "output"},
  };
  return names;
}

void add_flags(const config::Section& list, const std::string& prefix, config::Section& flags) {
  for (config::Field field : list.fields) {
    const auto own = names_of_their_own().find(prefix + field.name);
    if (own != names_of_their_own().end()) field.name = own->second;
    if (prefix + field.name == "generate.samples") field.aliases.emplace_back("n");
    if (!field.name.empty()) flags.fields.push_back(std::move(field));
  }
  for (const config::Section& section : list.sections)
    add_flags(section, prefix + section.name + ".", flags);
}

}  // namespace

config::Section process_flag_list(ProcessSettings& settings) {
  config::Section flags;
  add_flags(config::list_fields(settings), "", flags);
  return flags;
}

std::string process_flag(const std::string& path) {
  ProcessSettings settings;
  bool is_setting = false;
  config::for_each_field(config::list_fields(settings), "",
                         [&](const std::string& known, const config::Field&) {
                           is_setting = is_setting || known == path;
                         });
  const auto own = names_of_their_own().find(path);
  std::string name = !is_setting                         ? ""
                     : own != names_of_their_own().end() ? own->second
                                                         : path.substr(path.rfind('.') + 1);
  std::replace(name.begin(), name.end(), '_', '-');
  return name.empty() ? name : "--" + name;
}

std::vector<std::string> ProcessCommandFlags::notices(bool is_local_dataset) const {
  std::vector<std::string> lines;
  if (force_download)
    lines.emplace_back(is_local_dataset ? "--force-download: the files are read anew"
                                        : "--force-download: the data set's files are read anew; "
                                          "`convoy data fetch ID --verify` downloads them");
  if (optimize_gpu) lines.emplace_back("--optimize-gpu has no effect: the fast path is always on");
  if (!cleanup_delay.is_auto())
    lines.emplace_back("--cleanup-delay has no effect: nothing sleeps between rows");
  return lines;
}

}  // namespace convoy::settings

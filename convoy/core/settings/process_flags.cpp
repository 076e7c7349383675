// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/process_flags.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "convoy/core/config/describe.h"

namespace convoy::settings {
namespace {

// Names of flags that differ from the setting's plain name: the guide's names, and names that
// distinguish two settings. Empty: no flag.
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
      {"evaluate.schema", "evaluate_schema"},
      {"improve.temperature", "improve_temperature"},
      {"improve.top_p", "improve_top_p"},
      {"improve.max_tokens", "improve_max_tokens"},
      {"improve.schema", "improve_schema"},
      {"output.path", "output"},
      {"pairs.path", "pairs"},
      {"pairs.by", "pairs_by"},
      {"pairs.per_problem", "pairs_per_problem"},
      {"pairs.chosen", "pairs_chosen"},
      {"pairs.rejected", "pairs_rejected"},
      {"pairs.margin", "pairs_margin"},
      {"answers.path", "answers"},
      {"answers.by", "answers_by"},
      {"answers.per_problem", "answers_per_problem"},
      {"answers.order", "answers_order"},
      {"problems.path", "problems"},
      {"problems.min_difficulty", "problems_min_difficulty"},
      {"problems.max_difficulty", "problems_max_difficulty"},
  };
  return names;
}

// Flags that all commands share, with further spellings. The setting's own name stays accepted.
struct SharedWord {
  std::string flag;
  std::vector<std::string> aliases;
};

const std::map<std::string, SharedWord>& shared_words() {
  static const std::map<std::string, SharedWord> words = {
      {"generate.n", {"", {"n"}}},
      {"data.dataset", {"data", {}}},
      {"data.num_examples", {"limit", {}}},
      {"generate.max_tokens", {"", {"max_new_tokens"}}},
      {"output.path", {"", {"o"}}},
      {"workers.world_size", {"ranks", {"nproc", "nproc_per_node"}}},
      {"workers.devices", {"", {"device"}}},
  };
  return words;
}

void add_flags(const config::Section& list, const std::string& prefix, config::Section& flags) {
  for (config::Field field : list.fields) {
    const std::string path = prefix + field.name;
    const auto own = names_of_their_own().find(path);
    if (own != names_of_their_own().end()) field.name = own->second;
    if (const auto shared = shared_words().find(path); shared != shared_words().end()) {
      field.flag = shared->second.flag;
      field.aliases.insert(field.aliases.end(), shared->second.aliases.begin(),
                           shared->second.aliases.end());
    }
    if (!field.name.empty()) flags.fields.push_back(std::move(field));
  }
  for (const config::Section& section : list.sections)
    add_flags(section, prefix + section.name + ".", flags);
}

}  // namespace

std::vector<config::Section> process_flag_sections(ProcessSettings& settings) {
  config::Section all = config::list_fields(settings);
  const std::vector<config::Section> sections = std::move(all.sections);
  all.sections.clear();
  std::vector<config::Section> flags(1);
  add_flags(all, "", flags.front());
  for (const config::Section& section : sections) {
    flags.emplace_back().name = section.name;
    add_flags(section, section.name + ".", flags.back());
  }
  return flags;
}

config::Section process_flag_list(ProcessSettings& settings) {
  config::Section flags;
  for (config::Section& section : process_flag_sections(settings))
    flags.fields.insert(flags.fields.end(), std::make_move_iterator(section.fields.begin()),
                        std::make_move_iterator(section.fields.end()));
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
  const auto shared = shared_words().find(path);
  std::string name = !is_setting                         ? ""
                     : own != names_of_their_own().end() ? own->second
                                                         : path.substr(path.rfind('.') + 1);
  if (shared != shared_words().end() && !shared->second.flag.empty()) name = shared->second.flag;
  std::replace(name.begin(), name.end(), '_', '-');
  return name.empty() ? name : "--" + name;
}

std::vector<std::string> ProcessCommandFlags::notices(bool is_local_dataset) const {
  std::vector<std::string> lines;
  if (force_download)
    lines.emplace_back(is_local_dataset ? "--force-download: the files are read again"
                                        : "--force-download: the data set's files are read again; "
                                          "`convoy data fetch ID --verify` downloads them");
  if (optimize_gpu) lines.emplace_back("--optimize-gpu has no effect: the fast path is always on");
  if (!cleanup_delay.is_auto())
    lines.emplace_back("--cleanup-delay has no effect: nothing sleeps between rows");
  return lines;
}

}  // namespace convoy::settings

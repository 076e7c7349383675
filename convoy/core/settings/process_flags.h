// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy process`: each setting of ProcessSettings under one plain name, spelt as in
// the multi-GPU processing guide where it has the setting, and flags that are no settings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field_list.h"
#include "convoy/core/settings/process_settings.h"

namespace convoy::settings {

// One flat list over the members of `settings`, which must outlive it: "generate.max_tokens" is
// `--max-tokens`, "model.name" is `--model`.
config::Section process_flag_list(ProcessSettings& settings);
// The same in parts: the top level, then each section of the settings, by its name.
std::vector<config::Section> process_flag_sections(ProcessSettings& settings);

// The flag of a setting: "--max-tokens" for "generate.max_tokens". Empty when the setting has no
// flag or does not exist.
std::string process_flag(const std::string& path);

struct ProcessCommandFlags {
  std::string preset;
  std::string resume = "auto";
  bool dry_run = false;
  bool keep_apart = false;
  bool plain = false;
  bool list_datasets = false;
  std::string dataset_info;
  bool force_download = false;
  bool optimize_gpu = false;
  config::AutoOr<double> cleanup_delay;
  bool no_warnings = false;
  bool debug = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("preset", preset, "start from this preset (`convoy config presets`)");
    visit("resume", resume,
          "auto: resume the run folder's last start; never: a new run folder; last: the "
          "newest of runs/; or a run folder");
    visit("dry_run", dry_run, "check everything, print plan and first prompt, and stop");
    visit("keep_apart", keep_apart,
          "a run folder that holds rows of another configuration or data set keeps both");
    visit("plain", plain, "prompts.chat=off");
    visit("list_datasets", list_datasets, "print the data sets that have a key, and stop");
    visit("dataset_info", dataset_info, "print the facts about this data set, and stop");
    visit("force_download", force_download,
          "read the data set's files again; nothing is downloaded");
    visit("optimize_gpu", optimize_gpu, "accepted and ignored: the fast path is always on")
        .hidden();
    visit("cleanup_delay", cleanup_delay, "accepted and ignored: nothing sleeps between rows")
        .at_least(0)
        .hidden();
    visit("no_warnings", no_warnings, "no warnings on the terminal");
    visit("debug", debug, "the same as --verbose");
  }

  // One line per given flag that has another meaning here or no effect.
  std::vector<std::string> notices(bool is_local_dataset) const;
};

}  // namespace convoy::settings

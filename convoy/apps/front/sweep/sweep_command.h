// SPDX-License-Identifier: Apache-2.0
//
// The parts of `convoy sweep`: computing (sweep_command.cpp), reading results (sweep_results.cpp),
// drawing them (sweep_plot.cpp), repairing a store (sweep_recover.cpp), merging stores
// (sweep_merge.cpp), testing the machine (sweep_check.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/farm/sweep/results/cell_result.h"

namespace convoy::apps {

// The store to read, and the sweep in it.
struct SweepReadFlags {
  std::string store;
  std::string results_dir = "results";
  std::string name;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("store", store,
          "file or its folder, PostgreSQL URL or \"host=... dbname=...\"; default sweep.db in "
          "--results-dir");
    visit("results_dir", results_dir, "folder of the store and of written tables");
    visit("name", name,
          "sweep of the store: its name or a prefix, also NAME@VERSION; empty = the one that was "
          "run last");
  }
};

// Returns the store that the user names with `place`. For a folder, it is the sweep.db in that
// folder.
std::string store_at(const std::string& place);

// Makes the folder of a store that is a file. Throws IoError.
void make_folder_of_store(const std::string& store);

// The sweep that the flags choose; a word of `words` may name its store.
sweep::SweepResults read_chosen_sweep(const Context& context, const SweepReadFlags& flags,
                                      const Words& words);

// Writes the text to `file`, or to stdout when `file` is empty.
void write_or_print(const Context& context, const std::string& file, const std::string& text);

Command sweep_show_action();
Command sweep_plot_action();
Command sweep_export_action();
Command sweep_recover_action();
Command sweep_merge_action();
Command sweep_check_action();

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
//
// The parts of `convoy sweep`: what computes (sweep_command.cpp), what reads results (sweep_results.cpp), what mends a
// store (sweep_recover.cpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/sweep/results/cell_result.h"

namespace convoy::apps {

// Of show, plot and export.
struct SweepReadFlags {
  std::string store;
  std::string results_dir = "results";
  std::string name;
  bool list = false;
  bool cells = false;
  std::string format = "tidy";
  std::string output;
  bool log_y = false;
  int64_t width = 1400;
  int64_t height = 600;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("store", store,
          "file, PostgreSQL URL or \"host=... dbname=...\"; default sweep.db in --results-dir");
    visit("results_dir", results_dir, "folder of the store and of written tables");
    visit("name", name,
          "which sweep of the store: its name or the beginning, also NAME@VERSION; empty = the one "
          "that was run last");
    visit("list", list, "name the sweeps of the store, the last run at the end");
    visit("cells", cells, "every cell too, with its 95 % interval");
    visit("format", format,
          "wide as the prior programs wrote it; tidy, a row per cell, with --json or for a "
          ".json file as JSON; or parquet, the same")
        .one_of({"wide", "tidy", "parquet"});
    visit("output", output, "file to write, a figure as .svg or .png; empty = stdout").alias("o");
    visit("log_y", log_y, "logarithmic y axis");
    visit("width", width, "of the figure in pixels").at_least(600).at_most(10000);
    visit("height", height, "of the figure in pixels").at_least(200).at_most(10000);
  }
};

struct SweepRecoverFlags {
  std::string store;
  std::string results_dir = "results";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("store", store,
          "file, PostgreSQL URL or \"host=... dbname=...\"; default sweep.db in --results-dir");
    visit("results_dir", results_dir, "folder of the store");
  }
};

// "20250902_080855", local time.
std::string time_for_names();

// The names of those that the action reads.
std::vector<std::string> sweep_read_flags(std::string_view action);
int sweep_show(Context& context, const std::vector<std::string>& arguments);
int sweep_plot(Context& context, const std::vector<std::string>& arguments);
int sweep_export(Context& context, const std::vector<std::string>& arguments);
int sweep_recover(Context& context, const std::vector<std::string>& arguments);

}  // namespace convoy::apps

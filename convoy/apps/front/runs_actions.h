// SPDX-License-Identifier: Apache-2.0
//
// The actions of `convoy runs` that look at several runs at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/telemetry/plot.h"
#include "convoy/telemetry/run_history.h"

namespace convoy::apps {

struct RunsFlags {
  std::string dir = "runs";
  std::string output;
  bool ascii = false;
  std::string metric = "loss";
  bool log_y = false;
  double smoothing = 0.6;
  int64_t width = 1000;
  int64_t height = 600;
  bool follow = false;
  int64_t lines = 10;
  int64_t keep_best = 0;
  double older_than = 0;
  bool checkpoints = false;
  bool yes = false;
  bool dry_run = false;
  bool force = false;
  std::string host = "127.0.0.1";
  int64_t port = 6007;
  bool token = true;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dir", dir, "folder that holds the runs");
    visit("output", output,
          "plot, compare: file to write, .svg or .png; export: .csv, .parquet or .jsonl")
        .alias("o");
    visit("ascii", ascii, "plot, compare: draw in the terminal");
    visit("metric", metric, "plot: which curve")
        .one_of({"loss", "learning_rate", "grad_norm", "tokens_per_second"});
    visit("log_y", log_y, "plot: logarithmic y axis");
    visit("smoothing", smoothing, "plot: weight of the past in the smoothed line; 0 = off")
        .at_least(0)
        .at_most(0.999);
    visit("width", width, "plot: pixels").at_least(300).at_most(10000);
    visit("height", height, "plot: pixels").at_least(200).at_most(10000);
    visit("follow", follow, "tail: go on until the run ends").alias("f");
    visit("keep_best", keep_best,
          "clean: remove all ended trainings but so many with the lowest evaluation loss")
        .at_least(0);
    visit("older_than", older_than, "clean: only runs whose last event is so many days old")
        .at_least(0);
    visit("checkpoints", checkpoints,
          "clean: remove checkpoints alone; adapters, models and figures stay");
    visit("yes", yes, "clean: do not ask").alias("y");
    visit("dry_run", dry_run, "clean: say what would be removed");
    visit("force", force, "export: write over a file that exists");
    visit("host", host, "serve: address of this machine to listen on");
    visit("port", port, "serve: port; 0 = one that is free").at_least(0).at_most(65535);
    visit("token", token, "serve: answer only who knows the token of the printed address");
    visit("lines", lines, "tail: rows shown first").at_least(0).alias("n");
  }
};

// Those below `folder` that can be read, oldest first; others are warned of, so that one does not hide the rest.
std::vector<telemetry::RunHistory> readable_runs(const std::string& folder, const Log& log);

// Draws in the terminal, into --output, or as SVG on standard output; with nothing of these, and a pipe, nothing.
int draw_series(const Context& context, const RunsFlags& flags,
                const std::vector<telemetry::PlotSeries>& series, const std::string& title);

// `words` name runs, at least two. Throws ConfigError, DataError.
int compare_named_runs(const Context& context, const RunsFlags& flags,
                       const std::vector<std::string>& words);

// Steps and evaluations of the named runs, of all without a name, one row each, as a table of --output's format. Throws
// ConfigError, DataError, IoError.
int export_runs(const Context& context, const RunsFlags& flags,
                const std::vector<std::string>& words);

// Serves the page of the runs until SIGINT or SIGTERM; prints its address. Throws IoError.
int serve_runs(const Context& context, const RunsFlags& flags,
               const std::vector<std::string>& words);

// Lists what would be removed, asks, and removes it. Throws ConfigError where nobody can be asked, IoError.
int clean_runs(const Context& context, const RunsFlags& flags,
               const std::vector<std::string>& words);

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
//
// The flags of `convoy runs`, and its actions on several runs at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/core/base/usable_cpus.h"
#include "convoy/core/charts/plot.h"
#include "convoy/core/telemetry/runs/run_history.h"

namespace convoy::apps {

// The input of every action.
struct RunsFolderFlags {
  std::string dir = "runs";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dir", dir, "folder that holds the runs");
  }
};

// Options for drawing curves.
struct RunsDrawingFlags : RunsFolderFlags {
  std::string output;
  bool ascii = false;
  bool log_y = false;
  double smoothing = 0.6;
  int64_t width = 1000;
  int64_t height = 600;

  template <class Visitor>
  void fields(Visitor& visit) {
    RunsFolderFlags::fields(visit);
    visit("output", output, "figure to write, as .svg, .png or .pdf").alias("o");
    visit("ascii", ascii, "draw in the terminal");
    visit("log_y", log_y, "logarithmic y axis");
    visit("smoothing", smoothing, "weight of the past in the smoothed line; 0 = off")
        .at_least(0)
        .at_most(0.999);
    visit("width", width, "of the figure in pixels").at_least(300).at_most(10000);
    visit("height", height, "of the figure in pixels").at_least(200).at_most(10000);
  }
};

struct RunsExportFlags : RunsFolderFlags {
  std::string output;
  bool rollouts = false;
  std::string as = "rollouts";
  double min_reward = 1;
  bool force = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    RunsFolderFlags::fields(visit);
    visit("output", output, "file to write: rows as .csv, .parquet or .jsonl").alias("o");
    visit("rollouts", rollouts,
          "write the texts that the steps of task grpo learnt from, with their rewards and tokens, "
          "in place of steps and evaluations");
    visit(
        "as", as,
        "rollouts: the texts with all that is known of them; sft: good texts as rows of prompt and "
        "completion; pairs: of each problem in a step the best and the worst text as a preference")
        .one_of({"rollouts", "sft", "pairs"});
    visit("min_reward", min_reward, "with --as sft: least reward of a text");
    visit("force", force, "write over a file that exists");
  }
};

struct RunsCleanFlags : RunsFolderFlags {
  int64_t keep_best = 0;
  double older_than = 0;
  bool checkpoints = false;
  bool yes = false;
  bool dry_run = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    RunsFolderFlags::fields(visit);
    visit("keep_best", keep_best,
          "keep this many trainings with the lowest evaluation loss, remove the other ended ones")
        .at_least(0);
    visit("older_than", older_than, "only runs whose last event is at least this many days old")
        .at_least(0);
    visit("checkpoints", checkpoints, "remove only checkpoints; adapters, models and metrics stay");
    visit("yes", yes, "do not ask").alias("y");
    visit("dry_run", dry_run, "print what would be removed, and stop");
  }
};

struct RunsServeFlags : RunsFolderFlags {
  std::string host = "127.0.0.1";
  int64_t port = 6007;
  bool token = true;
  bool chat = false;
  double chat_idle = 300;
  std::string devices = "auto";
  int64_t threads = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    RunsFolderFlags::fields(visit);
    visit("host", host, "address of this machine to listen on");
    visit("port", port, "0 = one that is free").at_least(0).at_most(65535);
    visit("token", token, "require the token from the printed address");
    visit("chat", chat, "ask the models of ended trainings on the page, base beside adapter");
    visit("chat_idle", chat_idle, "with --chat: seconds without a question that end the model")
        .at_least(0);
    visit("devices", devices, "with --chat: compute on cpu or cuda (gpu is the same)")
        .one_of({"auto", "cpu", "cuda", "gpu"});
    visit("threads", threads,
          "with --chat: CPU threads of the model; 0 = OMP_NUM_THREADS, else all")
        .at_least(0)
        .at_most(kMostThreads);
  }
};

// The readable runs below `folder`, oldest first. Warns of the others, so that one bad run does not
// hide the rest.
std::vector<telemetry::RunHistory> readable_runs(const std::string& folder, const Log& log);

// Draws curves of `metric` in the terminal, into --output, or as SVG on standard output.
int draw_series(const Context& context, const RunsDrawingFlags& flags, const std::string& metric,
                const std::vector<charts::PlotSeries>& series, const std::string& title);

// `words` name runs, at least two. Throws ConfigError, DataError.
int compare_named_runs(const Context& context, const RunsDrawingFlags& flags,
                       const std::vector<std::string>& words);

// Writes a table of the steps and evaluations of the named runs, one row each, in the format of
// --output. Without names it takes all runs. Throws ConfigError, DataError, IoError.
int export_runs(const Context& context, const RunsExportFlags& flags,
                const std::vector<std::string>& words);

// Serves the page of the runs until SIGINT or SIGTERM; prints its address. Throws IoError.
int serve_runs(const Context& context, const RunsServeFlags& flags,
               const std::vector<std::string>& words);

// Lists the runs to remove, asks, and removes them. Throws ConfigError when there is no terminal to
// ask on, IoError.
int clean_runs(const Context& context, const RunsCleanFlags& flags,
               const std::vector<std::string>& words);

}  // namespace convoy::apps

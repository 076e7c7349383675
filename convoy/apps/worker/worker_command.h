// SPDX-License-Identifier: Apache-2.0
//
// One command of convoy-worker. To add one: write x_command.cpp and list it in main.cpp.
#pragma once

#include <string>
#include <vector>

#include "convoy/base/log.h"
#include "convoy/config/flags.h"

namespace convoy::apps {

// Flags that every worker command has; the front passes them on as they came.
struct WorkerFlags {
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  bool no_input = false;
  std::string color = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("quiet", quiet, "no messages but warnings and errors").alias("q");
    visit("verbose", verbose, "more messages").alias("v");
    visit("json", json, "machine-readable data on stdout, errors as JSON on stderr");
    visit("no_input", no_input, "never ask");
    visit("color", color, "colour on terminals").one_of({"auto", "always", "never"});
  }

  Log log() const {
    return Log(quiet ? LogLevel::Quiet : verbose ? LogLevel::Verbose : LogLevel::Normal);
  }
};

using Arguments = std::vector<std::string>;

int train_command(const Arguments& arguments);
int eval_command(const Arguments& arguments);
int score_command(const Arguments& arguments);
int generate_command(const Arguments& arguments);
int merge_command(const Arguments& arguments);
int bench_command(const Arguments& arguments);

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
//
// One command of convoy-worker. To add one: write x_command.cpp and list it in main.cpp.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/config/flags.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::apps {

using settings::CommonFlags;
using Arguments = std::vector<std::string>;

// Parses the words of a call whose flags are `call`, with the words that the front adds for its
// ranks. Returns the positional arguments.
inline Arguments parse_call(std::vector<config::Section> call, settings::RankFlags& ranks,
                            CommonFlags& common, const Arguments& arguments) {
  call.push_back(config::list_fields(ranks));
  call.push_back(config::list_fields(common));
  return config::parse_flags(call, arguments);
}

int train_command(const Arguments& arguments);
int eval_command(const Arguments& arguments);
int score_command(const Arguments& arguments);
int generate_command(const Arguments& arguments);
int serve_command(const Arguments& arguments);
int merge_command(const Arguments& arguments);
int quantize_command(const Arguments& arguments);
int export_command(const Arguments& arguments);
int convert_command(const Arguments& arguments);
int bench_train_command(const Arguments& arguments);
int bench_generate_command(const Arguments& arguments);
int bench_peak_command(const Arguments& arguments);
int predict_command(const Arguments& arguments);
int process_command(const Arguments& arguments);
int check_model_command(const Arguments& arguments);
int check_ranks_command(const Arguments& arguments);

}  // namespace convoy::apps

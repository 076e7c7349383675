// SPDX-License-Identifier: Apache-2.0
//
// One command of the front program: `convoy NAME ...`. To add one: write x_command.cpp with `Command x_command()`,
// declare it below and list it in commands.cpp. Flags are a settings struct with fields() (convoy/config/flags.h).
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/base/log.h"
#include "convoy/config/flags.h"
#include "convoy/settings/command_flags.h"

namespace convoy::apps {

using settings::CommonFlags;

// What a command is run with.
struct Context {
  std::filesystem::path program;  // this executable; convoy-worker lies beside it
  CommonFlags common;

  Log log() const { return common.log(); }
  // NO_COLOR, FORCE_COLOR, CONVOY_NO_COLOR, TERM=dumb and --color decide; auto asks whether `descriptor` is a terminal.
  bool use_color(int descriptor) const;

  // Sets `flags` and `common` from the arguments and returns the positionals. Throws ConfigError.
  template <class Flags>
  std::vector<std::string> parse(Flags& flags, const std::vector<std::string>& arguments,
                                 config::Positionals positionals = config::Positionals::Anywhere) {
    return config::parse_flags({config::list_fields(flags), config::list_fields(common)}, arguments,
                               positionals);
  }
};

// What a command of several kinds of work does first: `convoy sweep mf ...`.
struct Action {
  std::string_view name;                    // "mf"
  std::string_view summary;                 // one line in `convoy sweep --help`
  std::string_view usage;                   // "convoy sweep mf [flags]"
  std::function<std::string()> flag_table;  // the flags of this action
  std::string_view examples;                // real command lines, one per line
};

struct Command {
  std::string_view name;        // "tokens"
  std::string_view summary;     // one line in `convoy --help`
  std::string_view usage;       // "convoy tokens --model D (--text T | --data F)"
  std::string_view examples;    // two or three real command lines, one per line
  std::string (*flag_table)();  // config::flag_table_of<TokensFlags>; null: none
  int (*run)(Context& context, const std::vector<std::string>& arguments);  // exit code
  bool forwards_arguments = false;   // what follows the first positional belongs to another program
  std::vector<Action> actions = {};  // with flags of their own
  bool hidden = false;               // of programs for each other: in no list
};

// Every command, in the order of `convoy --help`.
const std::vector<Command>& commands();

// What `convoy --help` and `convoy NAME --help` print.
std::string overview_text();
// With one of the command's actions among `words`: of that alone, the first.
std::string help_text(const Command& command, const std::vector<std::string>& words = {});
// docs/reference/commands.md.
std::string commands_markdown();

// One factory per command, defined in <name>_command.cpp.
Command init_command();
Command train_command();
Command launch_command();
Command submit_command();
Command eval_command();  // eval to bench: worker_commands.cpp
Command score_command();
Command generate_command();
Command merge_command();
Command quantize_command();
Command process_command();
Command bench_command();
Command config_command();
Command data_command();
Command help_command();
Command runs_command();
Command sweep_command();
Command store_command();
Command sweep_worker_command();
Command tokens_command();
Command models_command();
Command gpu_info_command();
Command topo_command();
Command monitor_command();
Command memory_check_command();
Command doctor_command();
Command profile_command();

}  // namespace convoy::apps

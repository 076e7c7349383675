// SPDX-License-Identifier: Apache-2.0
//
// One command of the front program: `convoy NAME ...`. To add one: write x_command.cpp with
// `Command x_command()`, declare it below and list it in commands.cpp. An action, `convoy NAME
// ACTION ...`, is a line in its command's list. Flags are a settings struct with fields()
// (convoy/core/config/flags.h).
#pragma once

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/config/flags.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::apps {

using settings::CommonFlags;

// The environment in which a command runs.
struct Context {
  std::filesystem::path program;  // this executable; convoy-worker is in the same folder
  CommonFlags common;

  Log log() const { return common.log(); }
  // NO_COLOR, FORCE_COLOR, CONVOY_NO_COLOR, TERM=dumb and --color decide; auto asks whether
  // `descriptor` is a terminal.
  bool use_color(int descriptor) const;
  // Returns why the command may not ask a question. Empty: it may ask.
  std::string why_no_question() const;

  // Sets `flags` and `common` from the arguments and returns the positionals. Throws ConfigError.
  template <class Flags>
  std::vector<std::string> parse(Flags& flags, const std::vector<std::string>& arguments,
                                 config::Positionals positionals = config::Positionals::Anywhere) {
    return config::parse_flags({config::list_fields(flags), config::list_fields(common)}, arguments,
                               positionals);
  }
};

// A group of flags under one heading of the help.
struct FlagGroup {
  std::string_view heading;                 // "Ranks"; empty: the command's own flags
  std::function<config::Section()> fields;  // the flags with their defaults
};

// The flags of the struct that `only` names; empty: all.
template <class Flags>
FlagGroup flags_of(std::string_view heading = {}, std::vector<std::string_view> only = {}) {
  return {heading, [only = std::move(only)] {
            static Flags defaults;
            config::Section list = config::list_fields(defaults);
            if (!only.empty())
              std::erase_if(list.fields, [&only](const config::Field& field) {
                return std::find(only.begin(), only.end(), field.name) == only.end();
              });
            return list;
          }};
}

// The section of `convoy help` that lists a command, in this order.
enum class HelpGroup { GetStarted, ModelsAndData, TrainAndUse, RunJobs, Look, Advanced };

using Words = std::vector<std::string>;

// A command, or an action of one: `convoy sweep mf ...`.
struct Command {
  std::string_view name;      // "mf"
  std::string_view summary;   // verb and object, at most 60 characters: "Generate text for prompts"
  std::string_view usage;     // "convoy sweep mf [flags]"
  std::string_view examples;  // real command lines, one per line
  std::vector<FlagGroup> flags = {};
  // The flags that --help shows, at most twelve; --help-all shows all. Empty: --help shows all too.
  std::vector<std::string_view> first_flags = {};
  // `arguments` follow the name. Returns the exit code. Null: the command only has actions.
  std::function<int(Context& context, const Words& arguments)> run = nullptr;
  std::vector<Command> actions = {};   // actions, each with its own flags
  std::string_view usual_action = {};  // the action when none is named
  HelpGroup group = HelpGroup::Advanced;
  // The words after the first positional argument belong to another program.
  bool forwards_arguments = false;
  bool hidden = false;  // for calls between programs: in no list
};

// The `run` of an action: parses its flags and passes the rest to `work`.
template <class Flags, int (*work)(const Context& context, const Flags& flags, const Words& words)>
int with_flags_of(Context& context, const Words& arguments) {
  Flags flags;
  const Words words = context.parse(flags, arguments);
  return work(context, flags, words);
}

// Every command, in the order of `convoy --help`.
const std::vector<Command>& commands();

// Runs the command, or the action that the arguments name. Throws ConfigError when there is no such
// action.
int run_command(Context& context, const Command& command, const Words& arguments);

// Returns the action that the first of `words` names, or null.
const Command* find_action(const Command& command, const Words& words);

// Translates old spellings of a command line: `merge ...` is `models merge ...`.
Words current_words(Words words);
// The old spellings that are still accepted, as they are typed: "merge", "data process".
std::vector<std::string> old_spellings();

enum class HelpDepth { Usual, All };

// The text that `convoy --help` and `convoy NAME --help` print.
std::string overview_text();
// When `words` names an action of the command, returns only that action's help.
std::string help_text(const Command& command, const Words& words = {},
                      HelpDepth depth = HelpDepth::Usual);
// Prints a help text. On a terminal, fits it to the terminal's width.
void print_help(const std::string& text);
// Returns the page for man(1), in roff.
std::string manual_page();
// Returns the text of docs/reference/commands.md.
std::string commands_markdown();

// One factory per command, defined in <name>_command.cpp.
Command init_command();
Command doctor_command();
Command help_command();
Command models_command();
Command data_command();
Command config_command();
Command train_command();
Command eval_command();  // eval, generate and bench are in worker_commands.cpp
Command generate_command();
Command serve_command();
Command process_command();
Command launch_command();
Command submit_command();
Command sweep_command();
Command runs_command();
Command gpus_command();
Command profile_command();
Command bench_command();
Command store_command();
Command sweep_worker_command();
Command process_worker_command();
Command complete_command();

// Actions that are defined in files of their own.
Command models_merge_action();
Command models_quantize_action();
Command models_export_action();
Command models_convert_action();
Command models_push_action();
Command data_fetch_action();
Command data_tokens_action();
Command gpus_memory_action();
Command gpus_watch_action();
Command runs_watch_action();
Command process_verify_action();

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
//
// The front program: finds the command, runs it, and turns exceptions into the public error
// contract.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <new>
#include <string>
#include <string_view>
#include <system_error>

#include "convoy/apps/front/build_facts.h"
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/peers/foreign_launchers.h"
#include "convoy/apps/front/standard_streams.h"
#include "convoy/apps/front/worker/libtorch_folder.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/error_readers.h"
#include "convoy/core/base/suggest.h"
#include "convoy/data/text/template_clock.h"

namespace convoy::apps {
namespace {

bool is_help_of_all(const std::string& argument) {
  return argument == "--help-all" || argument == "--help_all";
}

bool is_help(const std::string& argument) {
  return argument == "--help" || argument == "-h" || is_help_of_all(argument);
}

// Arguments up to `--`, or up to the first positional after `num_names` when the rest belongs to
// another program.
Words own_arguments(const Words& arguments, bool forwards, size_t num_names = 0) {
  Words own;
  for (const std::string& argument : arguments) {
    const bool is_word = own.size() >= num_names && !argument.starts_with('-');
    if (argument == "--" || (forwards && is_word)) break;
    own.push_back(argument);
  }
  return own;
}

const Command& find_command(const std::string& name, const std::vector<std::string>& arguments) {
  const std::string spelling = config::dashed(name);
  std::vector<std::string> names;
  for (const Command& command : commands()) {
    if (command.name == spelling) return command;
    if (!command.hidden) names.emplace_back(command.name);
  }
  if (const std::string hint = hint_for_command(name, arguments); !hint.empty())
    throw ConfigError(fmt::format("unknown command `{}`", name), {.key = name, .hint = hint});
  for (const std::string& old : old_spellings()) names.push_back(old);
  std::string near = nearest_word(name, names);
  if (!near.empty())
    near = fmt::format(", did you mean `{}`?", fmt::join(current_words({near}), " "));
  throw ConfigError(fmt::format("unknown command `{}`{}", name, near),
                    {.key = name, .hint = "`convoy --help` lists the commands"});
}

std::string version_text(const Context& context) {
  const LibtorchFolder libtorch = find_libtorch(context.program);
  return fmt::format("convoy {} ({})\nLibTorch {}\ncuDNN {}\nNCCL {}\n", kVersion, kGitId,
                     libtorch.text(), find_cudnn(libtorch.folder).text(),
                     find_nccl(libtorch.folder).text());
}

int dispatch(Context& context, const Words& typed) {
  const Words arguments = current_words(typed);
  if (arguments.empty() || is_help(arguments[0])) {
    fmt::print("{}", overview_text());
    return static_cast<int>(arguments.empty() ? ExitCode::Usage : ExitCode::Done);
  }
  if (arguments[0] == "--version" || arguments[0] == "-V") {
    fmt::print("{}", version_text(context));
    return 0;
  }
  if (arguments[0].starts_with('-'))
    throw ConfigError(
        fmt::format("unknown flag {} before a command", arguments[0]),
        {.key = arguments[0], .hint = "flags follow the command: convoy COMMAND --flag"});
  const std::vector<std::string> rest(arguments.begin() + 1, arguments.end());
  const Command& command = find_command(arguments[0], rest);
  const Command* const action = find_action(command, rest);
  const bool forwards = command.forwards_arguments || (action && action->forwards_arguments);
  const Words own = own_arguments(rest, forwards, action == nullptr ? 0 : 1);
  if (std::any_of(own.begin(), own.end(), is_help)) {
    const bool wants_all = std::any_of(own.begin(), own.end(), is_help_of_all);
    print_help(help_text(command, own, wants_all ? HelpDepth::All : HelpDepth::Usual));
    return 0;
  }
  try {
    return run_command(context, command, rest);
  } catch (const ConfigError& error) {
    // For a command that starts another program, only now is it certain which word is a flag's
    // value and which is the program.
    if (!forwards || !is_help(error.location().key)) throw;
    print_help(help_text(command, action == nullptr ? Words() : Words{rest[0]},
                         is_help_of_all(error.location().key) ? HelpDepth::All : HelpDepth::Usual));
    return 0;
  }
}

int report(const Error& error, bool json) {
  const ErrorReaders readers = error_readers(json);
  std::string text;
  if (readers.people) text += fmt::format("convoy: {}\n", error.sentence());
  if (readers.programs) text += error.json_line() + "\n";
  write_to_stderr(text);
  return static_cast<int>(error.code());
}

int run(int argument_count, char** argument_values) {
  const std::vector<std::string> arguments(argument_values + 1, argument_values + argument_count);
  const std::vector<std::string> own = own_arguments(arguments, false);
  const bool json = std::find(own.begin(), own.end(), "--json") != own.end();
  // Commands that start other programs do not set the time of the command's start: each Convoy
  // command among those programs sets its own.
  constexpr std::array<std::string_view, 3> kStartOthers = {"launch", "sweep", "submit"};
  if (own.empty() ||
      std::find(kStartOthers.begin(), kStartOthers.end(), own[0]) == kStartOthers.end())
    ::setenv(text::kCommandStart, std::to_string(std::time(nullptr)).c_str(), /*overwrite=*/0);
  try {
    Context context;
    std::error_code ignored;
    context.program = std::filesystem::read_symlink("/proc/self/exe", ignored);
    const int code = dispatch(context, arguments);
    if (std::fflush(stdout) != 0)
      throw IoError("stdout could not be written",
                    {.hint = "is the disk full or the pipe closed?"});
    return code;
  } catch (const Error& error) {
    return report(error, json);
  } catch (const std::bad_alloc&) {
    return report(IoError("out of memory", {.hint = "free memory or use a machine with more"}),
                  json);
  } catch (const std::system_error& error) {
    return report(IoError(fmt::format("the system refused: {}", error.what()),
                          {.hint = "raise the limits of this user (ulimit -a), or free memory and "
                                   "disk space"}),
                  json);
  } catch (const std::exception& error) {
    return report(StateError(fmt::format("a bug in Convoy: {}", error.what()),
                             {.hint = "please report it with the command line"}),
                  json);
  }
}

}  // namespace
}  // namespace convoy::apps

int main(int argument_count, char** argument_values) {
  convoy::apps::open_standard_streams();
  std::signal(SIGCHLD, SIG_DFL);  // if SIGCHLD were ignored, children would leave no exit code
  return convoy::apps::run(argument_count, argument_values);
}

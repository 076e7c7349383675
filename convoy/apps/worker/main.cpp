// SPDX-License-Identifier: Apache-2.0
//
// convoy-worker: one rank, or a command that needs LibTorch. Started by `convoy`, or by another
// launcher with torchrun's environment.
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>

#include "convoy/apps/recipes/training/run_fault.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/error_readers.h"
#include "convoy/core/base/suggest.h"
#include "convoy/machine/processes/error_file.h"

namespace convoy::apps {
namespace {

int dispatch(const Arguments& arguments) {
  static const std::map<std::string, std::function<int(const Arguments&)>> commands = {
      {"train", train_command},
      {"eval", eval_command},
      {"score", score_command},
      {"generate", generate_command},
      {"serve", serve_command},
      {"merge", merge_command},
      {"bench-train", bench_train_command},
      {"bench-generate", bench_generate_command},
      {"bench-peak", bench_peak_command},
      {"predict", predict_command},
      {"process", process_command},
      {"quantize", quantize_command},
      {"export", export_command},
      {"convert", convert_command},
      {"check-model", check_model_command},
      {"check-ranks", check_ranks_command}};
  const std::string name = arguments.empty() ? "" : arguments[0];
  const auto command = commands.find(name);
  if (command != commands.end()) return command->second({arguments.begin() + 1, arguments.end()});
  std::vector<std::string> names;
  for (const auto& [known, ignored] : commands) names.push_back(known);
  throw ConfigError(fmt::format("unknown worker command `{}`{}", name, did_you_mean(name, names)),
                    {.hint = "run `convoy`, which starts this program"});
}

// A launcher that requested an error file prints it; otherwise this program prints the error.
int report(Error error, bool json) {
  const auto rank = environment_variable("RANK");
  if (error.location().rank < 0 && rank) error.location().rank = std::atoi(rank->c_str());
  const auto error_file = environment_variable("TORCHELASTIC_ERROR_FILE");
  if (error_file && processes::write_error_file(*error_file, error))
    return static_cast<int>(error.code());
  const ErrorReaders readers = error_readers(json);
  if (readers.people) fmt::print(stderr, "convoy: {}\n", error.sentence());
  if (readers.programs) fmt::print(stderr, "{}\n", error.json_line());
  return static_cast<int>(error.code());
}

std::string memory_hint(const std::string& command) {
  return command == "train"              ? "lower train.batch_size or model.max_seq_len"
         : command.starts_with("bench-") ? "lower --batch or --seq, or take a smaller --geometry"
         : command == "merge"            ? "merge on the CPU: --devices cpu"
                                         : "lower --batch-size";
}

int run(const Arguments& arguments) {
  const std::string command = arguments.empty() ? "" : arguments.front();
  bool json = false;
  for (const std::string& argument : arguments) json = json || argument == "--json";
  try {
    return dispatch(arguments);
  } catch (const std::exception& error) {
    return report(recipes::fault_of(error, memory_hint(command)), json);
  }
}

}  // namespace
}  // namespace convoy::apps

int main(int argument_count, char** argument_values) {
  const int code = convoy::apps::run({argument_values + 1, argument_values + argument_count});
  // LibTorch's static destructors take a tenth of a second and can deadlock with threads of a
  // broken process group.
  std::fflush(nullptr);
  std::_Exit(code);
}

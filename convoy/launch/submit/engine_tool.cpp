// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/engine_tool.h"

#include <fmt/format.h>

#include <vector>

#include "convoy/core/base/error.h"
#include "convoy/machine/processes/program_check.h"
#include "convoy/machine/processes/run_child.h"

namespace convoy::launch {
namespace {

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

// Returns the program's stdout. When it fails, its stderr is part of the error that is thrown.
std::string run_tool(const std::vector<std::string>& words, const std::string& input) {
  if (processes::program_problem(words[0]).any())
    throw ConfigError(fmt::format("{} is not here, so the job cannot be submitted", words[0]),
                      {.hint = "run this where the engine's tools are, or leave --go out and carry "
                               "the text there"});
  const processes::ChildResult tool =
      processes::run_child({.program = words, .shares_session = true}, input);
  if (tool.end.success()) return trimmed(tool.output);
  throw ConfigError(
      fmt::format("{} refused the job: {}", words[0], trimmed(tool.errors)),
      {.hint = "change the flags that it names; without --go the job's text is printed alone"});
}

}  // namespace

std::string submit_job(const SubmitSettings& settings, const std::string& text) {
  if (settings.engine == "kubernetes") {
    // create, not apply: a second job under an old name is refused instead of silently being the
    // first.
    const std::string names = run_tool({"kubectl", "create", "-f", "-", "-o", "name"}, text);
    return names.substr(names.rfind('\n') + 1);
  }
  const std::string answer = run_tool({"sbatch", "--parsable"}, text);
  return answer.substr(0, answer.find(';'));  // ";cluster" follows in a federation
}

void become_mpi_job(const std::filesystem::path& script) {
  const std::string reason = processes::become_program({"bash", script.string()});
  throw ConfigError(fmt::format("bash could not be started: {}", reason), {.hint = "install bash"});
}

}  // namespace convoy::launch

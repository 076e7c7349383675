// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "convoy/base/error.h"
#include "convoy/launch/place/preflight.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;

// Empty when the file may be executed, else why not.
std::string problem_of(const fs::path& file) {
  std::error_code failure;
  const fs::file_status status = fs::status(file, failure);
  if (failure && status.type() != fs::file_type::not_found) return failure.message();
  if (!fs::exists(status)) return std::strerror(ENOENT);
  if (!fs::is_regular_file(status)) return "it is not a file";
  return ::access(file.c_str(), X_OK) == 0 ? "" : std::strerror(errno);
}

fs::path found_in_path(const std::string& name) {
  const char* const variable = std::getenv("PATH");
  std::istringstream folders(variable == nullptr ? "/bin:/usr/bin" : variable);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
    if (problem_of(file).empty()) return file;
  }
  return {};
}

// What `#!` names; empty when the file is no script.
std::string interpreter_of(const fs::path& file) {
  std::ifstream stream(file);
  char mark[2] = {};
  if (!stream.read(mark, 2) || mark[0] != '#' || mark[1] != '!') return "";
  std::string line, word;
  std::getline(stream, line);
  std::istringstream(line) >> word;
  return word;
}

}  // namespace

Finding program_finding(const std::string& program, const std::string& script) {
  const auto wrong = [&](const std::string& why) {
    return Finding{Severity::Error, "program",
                   fmt::format("`{}` could not be started: {}", program, why),
                   "name a program that exists and may be executed"};
  };
  const bool is_path = program.find('/') != std::string::npos;
  const fs::path file = is_path ? fs::path(program) : found_in_path(program);
  if (file.empty()) return wrong("no folder of PATH has it");
  if (const std::string problem = problem_of(file); !problem.empty()) return wrong(problem);
  const std::string interpreter = interpreter_of(file);
  if (!interpreter.empty() && !problem_of(interpreter).empty())
    return wrong(fmt::format("its interpreter {}: {}", interpreter, problem_of(interpreter)));
  if (!script.empty() && ::access(script.c_str(), R_OK) != 0)
    return {Severity::Error, "program",
            fmt::format("`{}` can not be read: {}", script, std::strerror(errno)),
            "name a script that exists"};
  return {Severity::Ok, "program", script.empty() ? file.string() : script + " can be read", ""};
}

}  // namespace convoy::launch

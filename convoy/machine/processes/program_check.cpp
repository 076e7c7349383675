// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/program_check.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "convoy/core/base/environment_variable.h"

namespace convoy::processes {
namespace {

namespace fs = std::filesystem;
constexpr const char* kNameAProgram = "name a program that exists and may be executed";

// Returns why the file may not be executed; empty = it may.
std::string problem_of(const fs::path& file) {
  std::error_code failure;
  const fs::file_status status = fs::status(file, failure);
  if (failure && status.type() != fs::file_type::not_found) return failure.message();
  if (!fs::exists(status)) return std::strerror(ENOENT);
  if (fs::is_directory(status)) return "it is a folder";
  if (!fs::is_regular_file(status)) return "it is not a file";
  return ::access(file.c_str(), X_OK) == 0 ? "" : std::strerror(errno);
}

bool is_folder(const fs::path& file) {
  std::error_code absent;
  return fs::is_directory(file, absent);
}

bool is_file(const fs::path& file) {
  std::error_code absent;
  return fs::is_regular_file(file, absent);
}

fs::path found_in_path(const std::string& name) {
  std::istringstream folders(environment_variable("PATH").value_or("/bin:/usr/bin"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path file = fs::path(folder.empty() ? "." : folder) / name;
    if (problem_of(file).empty()) return file;
  }
  return {};
}

// The first line of a script after `#!`, as the kernel cuts it.
struct InterpreterLine {
  std::string interpreter;  // empty: the file is no script
  std::string argument;     // a single argument, including its spaces
  bool ends_with_return = false;
};

std::string without_spaces_around(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") + 1 - first);
}

InterpreterLine interpreter_line(const fs::path& file) {
  std::ifstream stream(file);
  char mark[2] = {};
  if (!stream.read(mark, 2) || mark[0] != '#' || mark[1] != '!') return {};
  constexpr size_t kMostOfTheKernel = 256;
  std::string line(kMostOfTheKernel, '\0');
  stream.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(stream.gcount()));
  line = line.substr(0, line.find('\n'));
  InterpreterLine found;
  found.ends_with_return = line.ends_with('\r');
  if (found.ends_with_return) line.pop_back();
  line = without_spaces_around(line);
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  found.interpreter = line.substr(0, end);
  found.argument = without_spaces_around(line.substr(end));
  return found;
}

// `#!/usr/bin/env python3` names its interpreter in the argument. With options, env parses the line
// by its own rules.
bool asks_env(const InterpreterLine& line) {
  return fs::path(line.interpreter).filename() == "env" && !line.argument.empty() &&
         line.argument[0] != '-' && line.argument.find('=') == std::string::npos;
}

// Why the interpreter in a script's first line cannot run it, and what to do. Empty `found`:
// nothing is wrong.
ProgramProblem first_line_problem(const fs::path& file) {
  const InterpreterLine line = interpreter_line(file);
  if (line.interpreter.empty()) return {};
  const bool by_env = asks_env(line);
  const std::string& name = by_env ? line.argument : line.interpreter;
  // After an argument, the '\r' belongs to that argument, which only matters for env.
  if (line.ends_with_return && (by_env || line.argument.empty()))
    return {fmt::format("it has Windows line ends, so its first line names `{}\\r`", name),
            fmt::format("convert it: sed -i 's/\\r$//' {}", file.string())};
  const std::string problem = !by_env                       ? problem_of(name)
                              : found_in_path(name).empty() ? "no folder of PATH has it"
                                                            : "";
  if (problem.empty()) return {};
  return {fmt::format("its first line names the interpreter {}: {}", name, problem),
          fmt::format("correct that line, or start the interpreter of your choice with {}",
                      file.string())};
}

// A suggestion for a word that is no program.
std::string advice_for(const std::string& program) {
  const bool is_path = program.find('/') != std::string::npos;
  if (is_folder(program))
    return is_file(fs::path(program) / "__main__.py")
               ? "name a program in it; --run-path runs its __main__.py with Python"
               : "name a program in it";
  if (!is_file(program)) return kNameAProgram;
  const bool executable = ::access(program.c_str(), X_OK) == 0;
  const std::string allow = executable ? "" : fmt::format("chmod +x {}", program);
  if (is_path) return allow.empty() ? kNameAProgram : fmt::format("make it a program: {}", allow);
  return fmt::format("the current folder has one: type ./{}{}", program,
                     allow.empty() ? "" : " after " + allow);
}

}  // namespace

fs::path program_file(const std::string& program) {
  return program.find('/') != std::string::npos ? fs::path(program) : found_in_path(program);
}

ProgramProblem program_problem(const std::string& program) {
  const auto wrong = [&](const std::string& why, const std::string& to_do) {
    return ProgramProblem{fmt::format("`{}` could not be started: {}", program, why), to_do};
  };
  const fs::path file = program_file(program);
  if (file.empty())
    return wrong(is_folder(program) ? "it is a folder" : "no folder of PATH has it",
                 advice_for(program));
  if (const std::string problem = problem_of(file); !problem.empty())
    return wrong(problem, advice_for(program));
  if (const ProgramProblem line = first_line_problem(file); line.any())
    return wrong(line.found, line.to_do);
  return {};
}

}  // namespace convoy::processes

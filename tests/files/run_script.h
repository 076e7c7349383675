// SPDX-License-Identifier: Apache-2.0
//
// Runs a shell command, or a script in a folder. Returns its output and its exit code.
#pragma once

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace convoy::testing {

struct ScriptEnd {
  int code = -1;  // exit code, or 128 + signal
  std::string out;
};

// Runs a command of the shell; `out` is its stdout.
inline ScriptEnd run_command(const std::string& line) {
  FILE* const pipe = ::popen(line.c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("popen");
  ScriptEnd end;
  std::array<char, 4096> buffer{};
  while (const size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    end.out.append(buffer.data(), count);
  const int status = ::pclose(pipe);
  end.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

inline void write_executable(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path) << text;
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

// Runs the script with bash. `prelude` precedes `bash script`: assignments or another program.
// `out` is stdout and stderr.
inline ScriptEnd run_script(const std::filesystem::path& folder, const std::string& script,
                            const std::string& prelude = "") {
  const std::filesystem::path file = folder / "script-under-test.sh";
  std::ofstream(file) << script;
  return run_command("cd '" + folder.string() + "' && " + prelude + " bash '" + file.string() +
                     "' 2>&1");
}

// Joins arguments in the form of /proc/PID/cmdline: each ends with a zero byte.
inline std::string zero_ended(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += word + '\0';
  return text;
}

}  // namespace convoy::testing

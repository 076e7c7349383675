// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/engine_tool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"

namespace convoy::launch {
namespace {

// A file without a name that holds `text`, read from its start.
Descriptor memory_file(const std::string& text) {
  Descriptor file(::memfd_create("convoy-job", MFD_CLOEXEC));
  for (size_t done = 0; file.open() && done < text.size();) {
    const ssize_t written = ::write(file.get(), text.data() + done, text.size() - done);
    if (written < 0 && errno != EINTR)
      throw IoError("the job's text does not fit into memory",
                    {.hint = "free memory of this machine"});
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  if (!file.open() || ::lseek(file.get(), 0, SEEK_SET) != 0)
    throw IoError(fmt::format("no memory file: {}", std::strerror(errno)),
                  {.hint = "raise the limit of open files (ulimit -n, LimitNOFILE)"});
  return file;
}

std::string contents(const Descriptor& file) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(file.get(), buffer.data(), buffer.size(), at);
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(count));
    at += count;
  }
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  return text;
}

std::vector<char*> argument_pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Returns the program's stdout. When it fails, its stderr is part of the error that is thrown.
std::string run_tool(std::vector<std::string> words, const std::string& input) {
  const Descriptor in = memory_file(input);
  const Descriptor out = memory_file("");
  const Descriptor errors = memory_file("");
  std::vector<char*> arguments = argument_pointers(words);
  const pid_t child = ::fork();
  if (child < 0)
    throw IoError(fmt::format("no process could be made: {}", std::strerror(errno)),
                  {.hint = "raise the limit of processes (ulimit -u, pids.max)"});
  if (child == 0) {
    ::dup2(in.get(), STDIN_FILENO);
    ::dup2(out.get(), STDOUT_FILENO);
    ::dup2(errors.get(), STDERR_FILENO);
    ::execvp(arguments[0], arguments.data());
    ::_exit(errno == ENOENT ? 127 : 126);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return trimmed(contents(out));
  if (WIFEXITED(status) && WEXITSTATUS(status) >= 126)
    throw ConfigError(fmt::format("{} is not here, so the job cannot be submitted", words[0]),
                      {.hint = "run this where the engine's tools are, or leave --go out and carry "
                               "the text there"});
  throw ConfigError(
      fmt::format("{} refused the job: {}", words[0], trimmed(contents(errors))),
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
  std::vector<std::string> words = {"bash", script.string()};
  std::vector<char*> arguments = argument_pointers(words);
  ::execvp(arguments[0], arguments.data());
  throw ConfigError(fmt::format("bash could not be started: {}", std::strerror(errno)),
                    {.hint = "install bash"});
}

}  // namespace convoy::launch

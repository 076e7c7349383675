// SPDX-License-Identifier: Apache-2.0
#include "process/probe_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "convoy/core/base/files.h"

namespace convoy::testing {

ProbeRun::ProbeRun(const std::vector<std::string>& words, const std::filesystem::path& scratch)
    : output_(scratch.string() + ".out"), errors_(scratch.string() + ".err") {
  const char* const folder = std::getenv("CONVOY_BIN_DIR");
  std::vector<std::string> all = {
      std::string(folder == nullptr ? "build/bin" : folder) + "/row_probe", "coordinate"};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : all) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  // The parent opens the files, because the child may be killed before it does anything.
  const int out = ::open(output_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  const int err = ::open(errors_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::dup2(out, 1) >= 0 && ::dup2(err, 2) >= 0) ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(out);
  ::close(err);
}

ProbeRun::~ProbeRun() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  wait();
}

bool ProbeRun::running() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return !status_;
}

std::vector<pid_t> ProbeRun::workers() const {
  std::ifstream file(fmt::format("/proc/{}/task/{}/children", pid_, pid_));
  std::vector<pid_t> workers;
  for (pid_t worker = 0; file >> worker;) workers.push_back(worker);
  return workers;
}

ProbeEnd ProbeRun::wait() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, 0) == pid_) status_ = status;
  ProbeEnd end{.status = WIFSIGNALED(*status_) ? 128 + WTERMSIG(*status_) : WEXITSTATUS(*status_)};
  end.output = read_file(output_);
  end.errors = read_file(errors_);
  return end;
}

std::vector<std::string> ProbeTest::words(const std::string& folder, int64_t workers,
                                          const std::vector<std::string>& more) const {
  std::vector<std::string> all = {"folder=" + (scratch_ / folder).string(),
                                  fmt::format("workers={}", workers)};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::unique_ptr<ProbeRun> ProbeTest::start(const std::vector<std::string>& words) {
  return std::make_unique<ProbeRun>(words, scratch_ / fmt::format("probe{}", started_++));
}

ProbeEnd ProbeTest::run(const std::vector<std::string>& words) { return start(words)->wait(); }

std::string ProbeTest::output(const std::string& folder) const {
  return read_file(scratch_ / (folder + "/out.jsonl"));
}

int64_t ProbeTest::tokens_made(const std::string& folder) const {
  const std::string bytes = read_file(scratch_ / (folder + "/tokens"));
  int64_t tokens = 0;
  std::memcpy(&tokens, bytes.data(), sizeof(tokens));
  return tokens;
}

}  // namespace convoy::testing

// SPDX-License-Identifier: Apache-2.0
#include "sweep/sweep_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

#include "convoy/core/base/files.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTurn{5};

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> numbers;
  for (const fs::directory_entry& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t number = 0;
    const auto [end, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong == std::errc() && end == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

// Returns the state and the parent of a process, or ' ' as the state if there is no such process.
std::pair<char, pid_t> state_and_parent(pid_t pid) {
  const std::string stat = contents(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return {' ', -1};
  std::istringstream rest(stat.substr(name_end + 1));
  char state = ' ';
  pid_t parent = -1;
  rest >> state >> parent;
  return {state, parent};
}

std::string convoy() { return fmt::format("{}/convoy", std::getenv("CONVOY_BIN_DIR")); }

}  // namespace

std::string SweepEnd::last_line() const {
  const size_t end = errors.find_last_not_of('\n');
  if (end == std::string::npos) return "";
  const size_t begin = errors.rfind('\n', end);
  return errors.substr(begin == std::string::npos ? 0 : begin + 1,
                       end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

SweepProcess::SweepProcess(std::vector<std::string> command, const fs::path& folder, int number,
                           const std::string& mark)
    : output_file_(folder / fmt::format("output-{}", number)),
      errors_file_(folder / fmt::format("errors-{}", number)) {
  std::vector<char*> pointers;
  for (std::string& word : command) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const std::string output = output_file_.string(), errors = errors_file_.string();
  const std::string here = folder.string();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::setpgid(0, 0);
  const int out = ::open(output.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  const int err = ::open(errors.c_str(), O_CREAT | O_WRONLY | O_TRUNC, 0600);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  ::setenv("SWEEP_TEST_MARK", mark.c_str(), 1);
  if (::chdir(here.c_str()) != 0) ::_exit(126);
  ::execvp(pointers[0], pointers.data());
  ::_exit(127);
}

SweepProcess::~SweepProcess() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  int status = 0;
  ::waitpid(pid_, &status, 0);
}

bool SweepProcess::running() {
  if (status_) return false;
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return true;
  status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return false;
}

std::vector<pid_t> SweepProcess::workers() const {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes())
    if (state_and_parent(pid).second == pid_ &&
        contents(fmt::format("/proc/{}/cmdline", pid)).find("sweep-worker") != std::string::npos)
      found.push_back(pid);
  return found;
}

std::vector<pid_t> SweepProcess::guards() const {
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes())
    if (state_and_parent(pid).second == pid_ &&
        contents(fmt::format("/proc/{}/comm", pid)) == "convoy-guard\n")
      found.push_back(pid);
  return found;
}

SweepEnd SweepProcess::wait(std::chrono::milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (running()) {
    if (Clock::now() > until) {
      ::kill(pid_, SIGKILL);
      ADD_FAILURE() << "convoy sweep did not end: " << contents(errors_file_);
    }
    std::this_thread::sleep_for(kTurn);
  }
  return {.status = *status_, .output = contents(output_file_), .errors = contents(errors_file_)};
}

SweepTest::SweepTest()
    : mark_(fmt::format("{}.{}", ::getpid(), Clock::now().time_since_epoch().count())) {}

SweepTest::~SweepTest() { EXPECT_TRUE(nothing_left()); }

std::unique_ptr<SweepProcess> SweepTest::start(const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {convoy(), "sweep"};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return std::make_unique<SweepProcess>(command, folder_.path(), num_started_++, mark_);
}

SweepEnd SweepTest::run_with_mounts(const std::string& mounts,
                                    const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"unshare",
                                      "--user",
                                      "--map-root-user",
                                      "--mount",
                                      "sh",
                                      "-c",
                                      mounts + " || exit 77; exec \"$0\" sweep \"$@\"",
                                      convoy()};
  command.insert(command.end(), arguments.begin(), arguments.end());
  SweepEnd end = SweepProcess(command, folder_.path(), num_started_++, mark_).wait();
  if (end.errors.starts_with("unshare:")) end.status = 77;
  return end;
}

SweepEnd SweepTest::run(const std::vector<std::string>& arguments) {
  return start(arguments)->wait();
}

std::string SweepTest::file_beginning(const std::string& folder,
                                      const std::string& beginning) const {
  const std::vector<std::string> names = files_beginning(folder, beginning);
  EXPECT_EQ(names.size(), 1u) << "files in " << folder << " that begin with " << beginning;
  return names.empty() ? "" : contents(path(folder) / names.front());
}

std::vector<std::string> SweepTest::files_beginning(const std::string& folder,
                                                    const std::string& beginning) const {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(path(folder)))
    if (std::string name = entry.path().filename().string(); name.starts_with(beginning))
      names.push_back(std::move(name));
  return names;
}

void SweepTest::write(const std::string& name, const std::string& content) const {
  std::ofstream(path(name), std::ios::binary) << content;
}

std::vector<pid_t> SweepTest::processes(const std::string& words) const {
  const std::string entry = "SWEEP_TEST_MARK=" + mark_;
  std::vector<pid_t> found;
  for (const pid_t pid : all_processes()) {
    std::string command = contents(fmt::format("/proc/{}/cmdline", pid));
    std::replace(command.begin(), command.end(), '\0', ' ');
    if (pid != ::getpid() && state_and_parent(pid).first != 'Z' && command.starts_with(words) &&
        contents(fmt::format("/proc/{}/environ", pid)).find(entry) != std::string::npos)
      found.push_back(pid);
  }
  return found;
}

bool SweepTest::wait_until(const std::function<bool()>& condition) {
  for (const auto until = Clock::now() + std::chrono::minutes(1); Clock::now() < until;) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

::testing::AssertionResult SweepTest::nothing_left() const {
  std::string left;
  for (const auto until = Clock::now() + std::chrono::seconds(20); Clock::now() < until;) {
    left.clear();
    for (const pid_t pid : processes(""))
      left += contents(fmt::format("/proc/{}/cmdline", pid)) + "; ";
    if (left.empty()) return ::testing::AssertionSuccess();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return ::testing::AssertionFailure() << "left: " << left;
}

}  // namespace convoy::testing

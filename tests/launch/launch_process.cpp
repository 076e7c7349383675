// SPDX-License-Identifier: Apache-2.0
#include "launch/launch_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
constexpr milliseconds kPoll{3};

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> environment_of(const LaunchStart& start) {
  std::set<std::string> replaced(start.removed_variables.begin(), start.removed_variables.end());
  for (const auto& [name, value] : start.environment) replaced.insert(name);
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!replaced.contains(text.substr(0, text.find('=')))) entries.push_back(text);
  }
  for (const auto& [name, value] : start.environment) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

int shell_status(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int open_for_output(const fs::path& path) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
}

}  // namespace

std::string LaunchEnd::last_line() const {
  std::istringstream lines(errors);
  std::string last;
  for (std::string line; std::getline(lines, line);)
    if (!line.empty()) last = line;
  return last;
}

LaunchProcess::LaunchProcess(const LaunchStart& start, const fs::path& folder, int number)
    : begin_(Clock::now()),
      output_file_(folder / fmt::format("launch-{}.out", number)),
      errors_file_(folder / fmt::format("launch-{}.err", number)) {
  std::vector<std::string> words = start.before;
  words.push_back(start.program.empty() ? built_program() : start.program);
  words.push_back("launch");
  words.insert(words.end(), start.arguments.begin(), start.arguments.end());
  std::vector<std::string> entries = environment_of(start);
  const std::vector<char*> arguments = pointers_to(words), environment = pointers_to(entries);
  const int output = open_for_output(output_file_), errors = open_for_output(errors_file_);
  pid_ = ::fork();
  if (pid_ == 0) {
    if (start.own_group) ::setpgid(0, 0);
    const int nothing = ::open("/dev/null", O_RDONLY);
    ::dup2(nothing, STDIN_FILENO);
    ::close(nothing);
    ::dup2(output, STDOUT_FILENO);
    ::dup2(errors, STDERR_FILENO);
    if (start.before_exec) start.before_exec();
    ::execvpe(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
  }
  ::close(output);
  ::close(errors);
  if (pid_ < 0) throw std::runtime_error("fork");
}

LaunchProcess::~LaunchProcess() {
  if (status_) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool LaunchProcess::running() {
  int status = 0;
  if (!status_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = shell_status(status);
    seconds_ = std::chrono::duration<double>(Clock::now() - begin_).count();
  }
  return !status_;
}

void LaunchProcess::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

LaunchEnd LaunchProcess::wait(milliseconds patience) {
  LaunchEnd end;
  if (!wait_until([this] { return !running(); }, patience)) {
    end.timed_out = true;
    ::kill(pid_, SIGKILL);
    while (running()) std::this_thread::sleep_for(kPoll);
  }
  end.status = *status_;
  end.seconds = seconds_;
  end.output = output();
  end.errors = errors();
  return end;
}

std::string LaunchProcess::output() const { return text_of(output_file_); }
std::string LaunchProcess::errors() const { return text_of(errors_file_); }

LaunchTest::LaunchTest() {
  static int count = 0;
  mark_ = fmt::format("CONVOY_TEST_MARK={}-{}", ::getpid(), ++count);
  fs::create_directory(temporary());
}

LaunchTest::~LaunchTest() {
  for (const pid_t pid : survivors()) ::kill(pid, SIGKILL);
}

std::unique_ptr<LaunchProcess> LaunchTest::start(LaunchStart what) {
  const size_t equals = mark_.find('=');
  what.environment.emplace(mark_.substr(0, equals), mark_.substr(equals + 1));
  what.environment.emplace("HERE", folder_.path());
  what.environment.emplace("TMPDIR", temporary());
  return std::make_unique<LaunchProcess>(what, folder_.path(), ++num_started_);
}

LaunchEnd LaunchTest::run(LaunchStart what) { return start(std::move(what))->wait(); }

LaunchEnd LaunchTest::run(std::vector<std::string> arguments) {
  LaunchStart what;
  what.arguments = std::move(arguments);
  return run(std::move(what));
}

void LaunchTest::expect_refused(std::vector<std::string> arguments,
                                const std::vector<std::string>& words) {
  const LaunchEnd end = run(std::move(arguments));
  EXPECT_EQ(end.status, 2) << end.errors;
  const auto line = nlohmann::json::parse(end.last_line(), nullptr, false);
  ASSERT_TRUE(line.is_object()) << end.errors;
  EXPECT_EQ(line["code"], 2);
  for (const std::string& word : words)
    EXPECT_NE(end.errors.find(word), std::string::npos) << word << "\n" << end.errors;
  EXPECT_TRUE(nothing_left());
}

LaunchStart LaunchTest::shell(int ranks, const std::string& script,
                              std::vector<std::string> flags) {
  LaunchStart what;
  what.arguments = {"--nproc-per-node", std::to_string(ranks)};
  what.arguments.insert(what.arguments.end(), flags.begin(), flags.end());
  for (const std::string& word : {std::string("sh"), std::string("-c"), script})
    what.arguments.push_back(word);
  return what;
}

std::string LaunchTest::file(const std::string& name) const { return text_of(folder_ / name); }

void LaunchTest::write(const std::string& name, const std::string& text, bool executable) const {
  std::ofstream(folder_ / name) << text;
  if (executable) fs::permissions(folder_ / name, fs::perms::owner_all);
}

bool LaunchTest::wait_for_lines(const std::string& name, long lines) const {
  return wait_until(
      [&] {
        const std::string text = file(name);
        return std::count(text.begin(), text.end(), '\n') >= lines;
      },
      milliseconds(300'000));  // a busy machine is no failure
}

std::vector<pid_t> LaunchTest::numbers(const std::string& name) const {
  std::istringstream text(file(name));
  std::vector<pid_t> found;
  for (pid_t number; text >> number;) found.push_back(number);
  return found;
}

std::vector<pid_t> LaunchTest::survivors() const {
  std::vector<pid_t> found;
  std::error_code error;
  for (fs::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    const pid_t pid = std::atoi(entry->path().filename().c_str());
    if (pid <= 0 || pid == ::getpid()) continue;
    const std::string environment = '\0' + text_of(entry->path() / "environ");
    if (environment.find('\0' + mark_ + '\0') != std::string::npos && is_alive(pid))
      found.push_back(pid);
  }
  return found;
}

std::string LaunchTest::what_is_left() const {
  std::string left;
  for (const pid_t pid : survivors()) {
    std::string command = text_of(fmt::format("/proc/{}/cmdline", pid));
    std::replace(command.begin(), command.end(), '\0', ' ');
    left += fmt::format("process {}: {}\n", pid, command);
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary()))
    left += fmt::format("{}\n", entry.path().string());
  const std::string claims = text_of("/proc/net/unix");
  const std::string listeners = text_of("/proc/net/tcp"), listeners6 = text_of("/proc/net/tcp6");
  for (const pid_t port : numbers("ports")) {
    if (claims.find(fmt::format("@convoy-port-{}\n", port)) != std::string::npos)
      left += fmt::format("claim on port {}\n", port);
    // 0A is the state LISTEN.
    if (listeners.find(fmt::format(":{:04X} {:08}:0000 0A", port, 0)) != std::string::npos ||
        listeners6.find(fmt::format(":{:04X} {:032}:0000 0A", port, 0)) != std::string::npos)
      left += fmt::format("listener on port {}\n", port);
  }
  return left;
}

::testing::AssertionResult LaunchTest::nothing_left(milliseconds within) const {
  std::string left;
  if (wait_until([&] { return (left = what_is_left()).empty(); }, within))
    return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "left behind:\n" << left;
}

bool is_alive(pid_t pid) {
  const std::string stat = text_of(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return false;
  const char state = stat[name_end + 2];
  return state != 'Z' && state != 'X';
}

bool wait_until(const std::function<bool()>& condition, milliseconds patience) {
  const auto until = Clock::now() + patience;
  while (!condition()) {
    if (Clock::now() >= until) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

std::string built_program() { return fmt::format("{}/convoy", std::getenv("CONVOY_BIN_DIR")); }

bool is_root() { return ::geteuid() == 0; }

}  // namespace convoy::testing

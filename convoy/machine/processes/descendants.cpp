// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/descendants.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "convoy/core/base/process_descriptor.h"
#include "convoy/core/base/text_as.h"

namespace convoy::processes {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTurn{5};

std::vector<pid_t> numbers_in(const std::filesystem::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (const auto number = text_as<pid_t>(entry->path().filename().string()))
      numbers.push_back(*number);
  }
  return numbers;
}

// The parent of a process, -1 when it is gone. The name in /proc/PID/stat may hold any byte, so
// count from its end.
pid_t parent_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text, '\0');
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return -1;
  std::istringstream rest(text.substr(name_end + 1));
  std::string state;
  pid_t parent = -1;
  rest >> state >> parent;
  return parent;
}

// Kernels without CONFIG_PROC_CHILDREN have no list of children; then the parent of every process
// is read.
std::vector<pid_t> children_of(pid_t pid) {
  std::vector<pid_t> children;
  const std::filesystem::path threads = "/proc/" + std::to_string(pid) + "/task";
  bool listed = false;
  for (const pid_t thread : numbers_in(threads)) {
    std::ifstream file(threads / std::to_string(thread) / "children");
    listed = listed || file.good();
    for (pid_t child; file >> child;) children.push_back(child);
  }
  if (listed) return children;
  for (const pid_t candidate : numbers_in("/proc"))
    if (parent_of(candidate) == pid) children.push_back(candidate);
  return children;
}

bool is_guard(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(file, name);
  return name == kGuardName;
}

// Kills top down. A process that is stopped before its children are read cannot start others
// meanwhile.
int kill_tree(pid_t pid) {
  ::kill(pid, SIGSTOP);
  int killed = 1;
  for (const pid_t child : children_of(pid))
    if (!is_guard(child)) killed += kill_tree(child);
  ::kill(pid, SIGKILL);
  return killed;
}

// Returns "" when the variable is not set, or when the process is gone, belongs to another user, or
// is in the middle of an exec.
std::string variable_of(pid_t pid, const std::string& name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string text; std::getline(file, text, '\0');)
    if (text.starts_with(name) && text[name.size()] == '=') return text.substr(name.size() + 1);
  return "";
}

// A process in the middle of an exec has memory, and neither an environment nor arguments yet.
// Threads of the kernel and zombies have no memory.
bool is_in_an_exec(pid_t pid) {
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream environment(folder + "/environ");
  if (!environment.good() || environment.peek() != EOF) return false;
  std::ifstream arguments(folder + "/cmdline"), memory(folder + "/statm");
  int64_t pages = 0;
  return arguments.good() && arguments.peek() == EOF && memory >> pages && pages > 0;
}

// If the process ended in between, another process may have its number by now. The descriptor still
// names the old process.
bool kill_if_marked(pid_t pid, const std::string& name, const MarkWanted& wanted) {
  const Descriptor process = process_descriptor(pid);
  const std::string value = process.open() ? variable_of(pid, name) : "";
  if (value.empty() || !wanted(value) || is_guard(pid)) return false;
  return signal_process(process, SIGKILL);
}

}  // namespace

bool descends_from(pid_t process, pid_t ancestor) {
  // The search has a bound, because a reused pid could make the chain of parents endless.
  constexpr int kMostGenerations = 1'000;
  for (int generation = 0; process > 1 && generation < kMostGenerations; ++generation) {
    if (process == ancestor) return true;
    process = parent_of(process);
  }
  return false;
}

DescendantKeeper::DescendantKeeper() {
  int before = 0;
  ::prctl(PR_GET_CHILD_SUBREAPER, &before);
  was_keeper_ = before != 0;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const pid_t child : children_of(::getpid())) not_ours_.insert(child);
}

DescendantKeeper::~DescendantKeeper() {
  if (!was_keeper_) ::prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int DescendantKeeper::kill_orphans(std::chrono::milliseconds limit) {
  const auto until = Clock::now() + limit;
  int killed = 0;
  while (true) {
    bool any = false;
    for (const pid_t child : children_of(::getpid())) {
      if (not_ours_.contains(child)) continue;
      if (::waitpid(child, nullptr, WNOHANG) == child) {
        any = true;  // its own children are ours now
        continue;
      }
      any = true;
      if (!is_guard(child)) killed += kill_tree(child);
    }
    if (!any || Clock::now() >= until) return killed;
    std::this_thread::sleep_for(kTurn);
  }
}

int kill_marked(const std::string& name, const MarkWanted& wanted,
                std::chrono::milliseconds limit) {
  // The search ends after this many looks without a find: a process may exec during one look.
  constexpr int kLooks = 4;
  constexpr std::chrono::milliseconds kBetweenLooks{15};
  const auto until = Clock::now() + limit;
  std::set<pid_t> killed;
  for (int clean = 0; clean < kLooks && Clock::now() < until;) {
    ++clean;
    for (const pid_t pid : numbers_in("/proc")) {
      if (pid == ::getpid()) continue;
      const bool was_marked = kill_if_marked(pid, name, wanted);
      if (was_marked) killed.insert(pid);
      if (was_marked || is_in_an_exec(pid)) clean = 0;
    }
    std::this_thread::sleep_for(clean == 0 ? kTurn : kBetweenLooks);
  }
  return static_cast<int>(killed.size());
}

void kill_marked(const std::string& entry, std::chrono::milliseconds limit) {
  const size_t equals = entry.find('=');
  const std::string mark = entry.substr(equals + 1);
  const auto wanted = [&](const std::string& value) {
    return value.starts_with(mark) && (value.size() == mark.size() || value[mark.size()] == ':');
  };
  kill_marked(entry.substr(0, equals), wanted, limit);
}

}  // namespace convoy::processes

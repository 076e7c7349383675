// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/descendants.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

namespace convoy::launch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTurn{5};

std::vector<pid_t> numbers_in(const std::filesystem::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    pid_t number = 0;
    const auto [stop, wrong] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (wrong == std::errc() && stop == name.data() + name.size()) numbers.push_back(number);
  }
  return numbers;
}

// The parent of a process, -1 when it is gone. The name in /proc/PID/stat may hold any byte, so count from its end.
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

// Kernels without CONFIG_PROC_CHILDREN have no list of children; then every process is asked for its parent.
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

// Children first seen stopped can not start others behind our back: kill top down.
int kill_tree(pid_t pid) {
  ::kill(pid, SIGSTOP);
  int killed = 1;
  for (const pid_t child : children_of(pid))
    if (!is_guard(child)) killed += kill_tree(child);
  ::kill(pid, SIGKILL);
  return killed;
}

bool environment_holds(pid_t pid, const std::string& entry) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string text; std::getline(file, text, '\0');)
    if (text.starts_with(entry) && (text.size() == entry.size() || text[entry.size()] == ':'))
      return true;
  return false;
}

}  // namespace

bool descends_from(pid_t process, pid_t ancestor) {
  // Numbers that are used again while this looks must not keep it here.
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

void kill_marked(const std::string& entry, std::chrono::milliseconds limit) {
  // A process in the middle of an exec has no environment to be read: one look without a find proves nothing.
  constexpr int kLooks = 4;
  constexpr std::chrono::milliseconds kBetweenLooks{15};
  const auto until = Clock::now() + limit;
  for (int clean = 0; clean < kLooks && Clock::now() < until;) {
    ++clean;
    for (const pid_t pid : numbers_in("/proc")) {
      if (pid == ::getpid() || !environment_holds(pid, entry) || is_guard(pid)) continue;
      clean = 0;
      ::kill(pid, SIGKILL);
    }
    std::this_thread::sleep_for(clean == 0 ? kTurn : kBetweenLooks);
  }
}

}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
#include "convoy/machine/processes/process_name.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "convoy/core/base/first_line.h"

namespace convoy::processes {
namespace {

// People choose the names of hosts, which may be equal. The id of a boot is unique.
std::string this_boot() {
  char host[256] = {};
  ::gethostname(host, sizeof(host) - 1);
  std::string name = host;
  std::replace(name.begin(), name.end(), ':', '_');
  return fmt::format("{}.{}", name, first_line("/proc/sys/kernel/random/boot_id").substr(0, 8));
}

// Clock ticks since boot at which the process began; empty when there is none, or only its exit
// status is left.
std::string start_of(const std::string& pid) {
  const std::string stat = first_line("/proc/" + pid + "/stat");
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return "";
  std::istringstream rest(stat.substr(name_end + 1));
  std::string field;
  rest >> field;
  if (field == "Z" || field == "X") return "";
  // The 22nd field of all; the 20th after the name.
  for (int at = 1; at < 20; ++at) rest >> field;
  return field;
}

// In another container the same number is another process.
std::string process_namespace() {
  char target[64] = {};
  [[maybe_unused]] const ssize_t length =
      ::readlink("/proc/self/ns/pid", target, sizeof(target) - 1);
  std::string text = target;
  std::erase_if(text, [](char letter) { return letter < '0' || letter > '9'; });
  return text;
}

std::string this_place() { return fmt::format("{}.{}", this_boot(), process_namespace()); }

}  // namespace

std::string process_name(pid_t process) {
  const std::string pid = std::to_string(process);
  return fmt::format("{}:{}:{}", this_place(), pid, start_of(pid));
}

bool is_gone(const std::string& process) {
  std::istringstream parts(process);
  std::string place, pid, start;
  std::getline(parts, place, ':');
  std::getline(parts, pid, ':');
  std::getline(parts, start, ':');
  if (place != this_place() || pid.empty() || start.empty()) return false;
  return start_of(pid) != start;
}

}  // namespace convoy::processes

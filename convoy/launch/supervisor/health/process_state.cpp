// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/process_state.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <sstream>
#include <string>

#include "convoy/core/base/descriptor.h"

namespace convoy::launch {
namespace {

std::string small_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  char bytes[4096];
  const ssize_t received = file.open() ? ::read(file.get(), bytes, sizeof(bytes)) : 0;
  return received > 0 ? std::string(bytes, static_cast<size_t>(received)) : std::string();
}

}  // namespace

std::optional<ProcessState> read_process_state(pid_t pid) {
  const std::string stat = small_file(fmt::format("/proc/{}/stat", pid));
  // "PID (NAME) STATE PPID PGRP ...": the name may hold anything, brackets and spaces too.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(name_end + 1));
  ProcessState state;
  int64_t skipped = 0, user_ticks = 0, system_ticks = 0;
  fields >> state.letter >> skipped >> state.group;
  for (int field = 0; field < 8; ++field) fields >> skipped;  // session ... cmajflt
  fields >> user_ticks >> system_ticks;
  if (!fields) return std::nullopt;
  state.cpu_seconds =
      static_cast<double>(user_ticks + system_ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return state;
}

bool waits_for_processor(const ProcessState& state) { return state.letter == 'R'; }

std::string why_not_ended(const ProcessState& state) {
  if (waits_for_processor(state)) return "it waits for a processor of this busy machine";
  if (state.letter == 'D')
    return "it waits inside the kernel, most often for a disk, a network file system or a device";
  if (state.letter == 'Z') return "it has ended, but a debugger or a thread of it holds it";
  return fmt::format("its state in /proc is {}", state.letter);
}

bool is_dumping_core(pid_t pid) {
  return small_file(fmt::format("/proc/{}/status", pid)).find("\nCoreDumping:\t1") !=
         std::string::npos;
}

}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
#include "convoy/sweep/runner/worker_failure.h"

#include <fmt/format.h>
#include <signal.h>

#include <nlohmann/json.hpp>

#include "convoy/base/json_member.h"
#include "convoy/launch/signals.h"

namespace convoy::sweep {
namespace {

constexpr int kMostLosses = 20;  // of one range to kills from outside

}  // namespace

std::optional<Error> own_error(const WorkerDeath& death) {
  const size_t end = death.stderr_tail.find_last_not_of('\n');
  if (death.signal != 0 || end == std::string::npos) return std::nullopt;
  const size_t before = death.stderr_tail.rfind('\n', end);
  const size_t begin = before == std::string::npos ? 0 : before + 1;
  const auto line =
      nlohmann::json::parse(death.stderr_tail.substr(begin, end + 1 - begin), nullptr, false);
  if (!line.is_object() || member_or(line, "code", int64_t{0}) != death.exit_code)
    return std::nullopt;
  ErrorPlace place;
  place.file = member_or(line, "file", std::string());
  place.hint = member_or(line, "hint", std::string());
  return Error(static_cast<ExitCode>(death.exit_code), member_or(line, "kind", std::string("bug")),
               member_or(line, "message", std::string("a worker failed")), place);
}

bool BlameForDeaths::is_its_fault(const WorkerDeath& death, bool memory, const jobs::Lease& lease) {
  if (death.signal == SIGTERM || death.signal == SIGINT || death.signal == SIGHUP) return false;
  if (death.signal != SIGKILL || death.timed_out || memory) return true;
  return ++losses_[{lease.task, lease.first}] >= kMostLosses;
}

jobs::Failure failure_of(const WorkerDeath& death, bool memory, double timeout_seconds) {
  jobs::Failure failure;
  failure.stderr_tail = death.stderr_tail;
  failure.signal = death.signal;
  failure.exit_code = death.signal == 0 ? death.exit_code : -1;
  if (death.timed_out) {
    failure.kind = "timeout";
    failure.message = fmt::format("no sign of life for {} s", timeout_seconds);
  } else if (death.signal == SIGKILL) {
    failure.kind = memory ? "memory" : "lost";
    failure.message = memory ? "the kernel killed the worker for its memory"
                             : "the worker was killed again and again";
  } else if (death.signal != 0) {
    failure.kind = "crash";
    failure.message = fmt::format("the worker was ended by {}", launch::signal_name(death.signal));
  } else {
    failure.kind = "exit";
    failure.message = fmt::format("the worker ended with {}", death.exit_code);
  }
  return failure;
}

}  // namespace convoy::sweep

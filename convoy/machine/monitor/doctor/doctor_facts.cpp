// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/process_descriptor.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/core/telemetry/logs/event_log.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/machine/monitor/doctor/doctor.h"

namespace convoy::monitor {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

Limit limit_of(__rlimit_resource resource) {
  rlimit found{};
  Limit limit;
  if (::getrlimit(resource, &found) != 0) return limit;
  if (found.rlim_cur != RLIM_INFINITY) limit.soft = found.rlim_cur;
  if (found.rlim_max != RLIM_INFINITY) limit.hard = found.rlim_max;
  return limit;
}

struct FileSystemKind {
  long magic;
  const char* name;
  bool remote;
};
constexpr std::array<FileSystemKind, 14> kFileSystems = {{{0xEF53, "ext4", false},
                                                          {0x58465342, "xfs", false},
                                                          {0x9123683E, "btrfs", false},
                                                          {0x2FC12FC1, "zfs", false},
                                                          {0x01021994, "tmpfs", false},
                                                          {0x794C7630, "overlayfs", false},
                                                          {0x6969, "nfs", true},
                                                          {0x0BD00BD0, "lustre", true},
                                                          {0x47504653, "gpfs", true},
                                                          {0xFF534D42, "cifs", true},
                                                          {0xFE534D42, "smb2", true},
                                                          {0x00C36400, "ceph", true},
                                                          {0x65735546, "fuse", true},
                                                          {0x01021997, "9p", true}}};

void measure_writing(int descriptor, DiskFacts& facts) {
  constexpr size_t kBlock = size_t{4} << 20;
  constexpr int kMostBlocks = 16;
  constexpr double kLongEnough = 1.0;  // seconds
  const std::string block(kBlock, 'c');
  const Clock::time_point begin = Clock::now();
  size_t written = 0;
  for (int at = 0; at < kMostBlocks; ++at) {
    const ssize_t count = ::write(descriptor, block.data(), block.size());
    if (count < 0) {
      facts.problem = std::strerror(errno);
      return;
    }
    written += static_cast<size_t>(count);
    if (seconds_since(begin) > kLongEnough) break;
  }
  if (::fsync(descriptor) != 0) {
    facts.problem = std::strerror(errno);
    return;
  }
  const double seconds = seconds_since(begin);
  facts.mib_per_s = static_cast<double>(written) / (1 << 20) / std::max(seconds, 1e-6);
}

double number(const nlohmann::ordered_json& row, const char* key, double otherwise) {
  const auto found = row.find(key);
  return found != row.end() && found->is_number() ? found->get<double>() : otherwise;
}

std::string text(const nlohmann::ordered_json& row, const char* key) {
  const auto found = row.find(key);
  return found != row.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// The exit code in a failure row; a row of another program may have none.
ExitCode failure_code(const nlohmann::ordered_json& row) {
  const double code = number(row, "code", 0);
  return code >= 1 && code <= 255 ? static_cast<ExitCode>(static_cast<int>(code))
                                  : ExitCode::PeerLost;
}

double middle(std::vector<double> values) {
  if (values.empty()) return -1;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

KernelFacts read_kernel() {
  utsname names{};
  ::uname(&names);
  return {.release = names.release, .cannot_watch = why_no_process_descriptors()};
}

LimitFacts read_limits(const DeviceSources& sources) {
  LimitFacts facts{.files = limit_of(RLIMIT_NOFILE),
                   .locked_bytes = limit_of(RLIMIT_MEMLOCK),
                   .processes = limit_of(RLIMIT_NPROC)};
  std::error_code absent;
  facts.has_fast_network = fs::exists(sources.sys / "class/infiniband", absent) &&
                           !fs::is_empty(sources.sys / "class/infiniband", absent);
  return facts;
}

DiskFacts read_disk(const fs::path& folder) {
  DiskFacts facts{.folder = folder};
  struct statfs kind {};
  if (::statfs(folder.c_str(), &kind) == 0) {
    for (const FileSystemKind& known : kFileSystems)
      if (known.magic == kind.f_type) {
        facts.file_system = known.name;
        facts.remote = known.remote;
      }
    facts.free_bytes = static_cast<int64_t>(kind.f_bavail) * static_cast<int64_t>(kind.f_bsize);
  }
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file.open() && (errno == EOPNOTSUPP || errno == EISDIR)) {
    // This file system does not support unnamed files: the file has a name for a moment.
    std::string name = (folder / ".convoy-doctor-XXXXXX").string();
    file = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (file.open()) ::unlink(name.c_str());
  }
  if (!file.open()) {
    facts.problem = std::strerror(errno);
    return facts;
  }
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  facts.locks = ::fcntl(file.get(), F_SETLK, &range) == 0;
  measure_writing(file.get(), facts);
  return facts;
}

SharedMemoryFacts read_shared_memory() {
  SharedMemoryFacts facts;
  struct statvfs found {};
  if (::statvfs("/dev/shm", &found) != 0) return facts;
  facts.bytes = static_cast<int64_t>(found.f_blocks) * static_cast<int64_t>(found.f_frsize);
  facts.free_bytes = static_cast<int64_t>(found.f_bavail) * static_cast<int64_t>(found.f_frsize);
  return facts;
}

ClockFacts read_clock() {
  timex state{};
  const int result = ::adjtimex(&state);
  if (result < 0) return {};
  return {.known = true,
          .synchronised = result != TIME_ERROR && (state.status & STA_UNSYNC) == 0,
          .most_error_s = static_cast<double>(state.maxerror) * 1e-6};
}

PortFacts read_port(int port) {
  PortFacts facts{.port = port};
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket.open()) return facts;
  const int on = 1;  // as later listeners do
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  facts.is_free =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0 ||
      errno != EADDRINUSE;
  return facts;
}

RunFacts read_run_facts(const fs::path& run) {
  constexpr size_t kSteps = 20;
  constexpr size_t kWarnings = 3;
  RunFacts facts{.name = run.filename().string(), .held = telemetry::run_folder_is_held(run)};
  std::error_code absent;
  if (!fs::exists(run / "events.jsonl", absent)) return facts;  // its ranks are starting
  const auto rows = telemetry::read_events(run / "events.jsonl");
  std::vector<double> seconds;
  std::vector<std::vector<double>> waits;
  double last_time = 0;
  for (const auto& row : rows) {
    const std::string event = text(row, "event");
    last_time = std::max(last_time, number(row, "time", 0));
    if (event == "start") {
      facts.total_steps = static_cast<int64_t>(number(row, "total_steps", 0));
      facts.begun = true;
      facts.failure.clear();
      facts.end.clear();
      facts.warnings.clear();
      seconds.clear();
      waits.clear();
    } else if (event == "step") {
      facts.step = static_cast<int64_t>(number(row, "step", -1));
      seconds.push_back(number(row, "seconds", 0));
      std::vector<double> of_ranks;
      const auto found = row.find("rank_wait_seconds");
      if (found != row.end() && found->is_array())
        for (const auto& wait : *found)
          of_ranks.push_back(wait.is_number() ? wait.get<double>() : 0);
      waits.push_back(std::move(of_ranks));
    } else if (event == "warning") {
      facts.warnings.push_back(text(row, "message"));
    } else if (event == "failure") {
      facts.failure = text(row, "message");
      facts.failure_code = failure_code(row);
    } else if (event == "end") {
      facts.end = text(row, "status");
      if (facts.end.empty()) facts.end = "ended";
    }
  }
  if (facts.warnings.size() > kWarnings)
    facts.warnings.erase(facts.warnings.begin(),
                         facts.warnings.end() - static_cast<std::ptrdiff_t>(kWarnings));
  const size_t first = seconds.size() > kSteps ? seconds.size() - kSteps : 0;
  facts.step_seconds =
      middle({seconds.begin() + static_cast<std::ptrdiff_t>(first), seconds.end()});
  for (size_t at = first; at < seconds.size(); ++at) {
    facts.window_seconds += seconds[at];
    if (facts.rank_wait_seconds.size() != waits[at].size())
      facts.rank_wait_seconds.assign(waits[at].size(), 0);
    for (size_t rank = 0; rank < waits[at].size(); ++rank)
      facts.rank_wait_seconds[rank] += waits[at][rank];
  }
  const double now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (last_time > 0) facts.seconds_since_event = now - last_time;
  return facts;
}

}  // namespace convoy::monitor

// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/preflight.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include "convoy/core/base/bytes_text.h"
#include "convoy/core/base/cgroups.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/descriptor.h"
#include "convoy/core/base/error.h"
#include "convoy/machine/processes/descriptor_limit.h"

namespace convoy::launch {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

std::string bytes_text(int64_t bytes) {
  if (bytes >= 10 * kGiB) return fmt::format("{} GiB", bytes / kGiB);
  return convoy::bytes_text(bytes);
}

Finding ok(const std::string& check, const std::string& found) {
  return {Severity::Ok, check, found, ""};
}

struct LimitNeed {
  std::string check;
  std::string what;
  int resource;
  rlim_t needed;
  std::string to_do;
};

Finding check_limit(const LimitNeed& need) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(need.resource), &limit);
  const bool unlimited = limit.rlim_cur == RLIM_INFINITY;
  const std::string found = unlimited ? fmt::format("{}: no limit", need.what)
                                      : fmt::format("{}: at most {}", need.what, limit.rlim_cur);
  if (unlimited || limit.rlim_cur >= need.needed) return ok(need.check, found);
  return {Severity::Warning, need.check, fmt::format("{}, about {} are needed", found, need.needed),
          need.to_do};
}

Finding check_open_files(const PreflightRequest& request) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t needed = processes::DescriptorLimit::needed(request.num_ranks);
  if (limit.rlim_max < needed)
    return {Severity::Error, "open_files",
            fmt::format("open files: at most {}, the launcher of {} needs {}", limit.rlim_max,
                        counted(request.num_ranks, "rank"), needed),
            "raise it (ulimit -n, LimitNOFILE), or start fewer ranks here"};
  // Descriptors of a rank, for its files; one more is needed for a socket to each peer. The
  // launcher raises its own limit, but its ranks keep the old one.
  constexpr rlim_t kOfARank = 128;
  return check_limit({"open_files", "open files of a rank", RLIMIT_NOFILE,
                      kOfARank + static_cast<rlim_t>(request.num_ranks),
                      "raise it: ulimit -n 65536"});
}

Finding check_processes(const PreflightRequest& request) {
  // Threads of a rank, which count too: intra-op pool, autograd, communication, data loading.
  constexpr rlim_t kPerRank = 64;
  const rlim_t needed = kPerRank * static_cast<rlim_t>(request.num_ranks);
  if (::geteuid() == 0)
    return ok("processes", "processes of this user: the limit does not bind root");
  return check_limit({"processes", "processes and threads of this user", RLIMIT_NPROC, needed,
                      "raise it: ulimit -u 65536"});
}

// The limit of a control group on processes.
struct GroupProcesses {
  int64_t most = 0;
  int64_t current = 0;  // groups below it count too
  int64_t left() const { return most - current; }
};

// The limit that leaves the fewest processes. In a container, a group further up may set the limit.
std::optional<GroupProcesses> tightest_group(const PreflightRequest& request) {
  std::optional<GroupProcesses> tightest;
  visit_cgroups("pids", {.sys = request.sys, .proc = request.proc},
                [&](const fs::path& folder, bool /*unified*/) {
                  GroupProcesses group;
                  std::ifstream limit(folder / "pids.max");
                  if (!(limit >> group.most)) return;  // "max" is no number
                  std::ifstream(folder / "pids.current") >> group.current;
                  if (!tightest || group.left() < tightest->left()) tightest = group;
                });
  return tightest;
}

// The pids controller counts threads too; containers often set it low.
Finding check_cgroup_pids(const PreflightRequest& request) {
  const std::optional<GroupProcesses> group = tightest_group(request);
  if (!group) return ok("cgroup_processes", "no cgroup limit on processes");
  const int64_t needed = int64_t{64} * request.num_ranks;
  const std::string found = fmt::format("the cgroup allows {} processes and threads, {} are in use",
                                        group->most, group->current);
  if (group->left() >= needed) return ok("cgroup_processes", found);
  return {Severity::Warning, "cgroup_processes",
          fmt::format("{}, about {} more are needed", found, needed),
          "raise the container's limit (docker: --pids-limit, Kubernetes: podPidsLimit)"};
}

Finding check_locked_memory(const PreflightRequest& request) {
  std::error_code absent;
  const bool rdma = fs::exists(request.sys / "class/infiniband", absent) &&
                    !fs::is_empty(request.sys / "class/infiniband", absent);
  if (!request.uses_gpus || !rdma)
    return ok("locked_memory", "no device here pins memory for RDMA");
  return check_limit({"locked_memory", "bytes of locked memory", RLIMIT_MEMLOCK, RLIM_INFINITY - 1,
                      "InfiniBand pins its buffers: ulimit -l unlimited"});
}

Finding check_shared_memory(const PreflightRequest& request) {
  struct statvfs disk {};
  const std::string name = request.shared_memory.string();
  if (::statvfs(request.shared_memory.c_str(), &disk) != 0)
    return {Severity::Warning, "shared_memory", name + " is not there",
            "mount a tmpfs there; NCCL and data loaders of Python programs use it"};
  const auto block = static_cast<int64_t>(disk.f_frsize);
  const int64_t size = static_cast<int64_t>(disk.f_blocks) * block;
  const int64_t free = static_cast<int64_t>(disk.f_bavail) * block;
  const std::string found =
      fmt::format("{} has {} free of {}", name, bytes_text(free), bytes_text(size));
  // NCCL needs 10 to 30 MiB of shared memory per rank on a host of eight (measured by others);
  // containers have 64 MiB in all. A single rank needs room too: data loaders of Python programs
  // pass batches in shared memory.
  const int64_t needed = 32 * kMiB * request.num_ranks;
  if (free >= needed) return ok("shared_memory", found);
  return {Severity::Warning, "shared_memory",
          fmt::format("{}, about {} are needed", found, bytes_text(needed)),
          "give the container more (docker: --shm-size=8g), or remove old files there"};
}

// The nearest existing folder above. Missing folders below it will be made.
fs::path existing_parent(fs::path folder) {
  std::error_code error;
  folder = fs::absolute(folder, error);
  while (!fs::exists(folder, error) && folder.has_relative_path()) folder = folder.parent_path();
  return folder;
}

// Returns why no file can be made in the folder; empty = one can. A test file is removed.
std::string write_problem(const fs::path& folder) {
  const Descriptor nameless(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  if (nameless.open()) return "";  // other file systems report unsupported files by many errors
  std::string name = (folder / ".convoy-preflight-XXXXXX").string();
  const Descriptor named(::mkostemp(name.data(), O_CLOEXEC));
  if (!named.open()) return std::strerror(errno);
  ::unlink(name.c_str());
  return "";
}

struct FolderCheck {
  std::string check;
  fs::path folder;
  Severity if_unwritable;
  int64_t free_needed_bytes;
};

Finding check_folder(const FolderCheck& what) {
  const fs::path folder = existing_parent(what.folder);
  const std::string problem = write_problem(folder);
  if (!problem.empty())
    return {what.if_unwritable, what.check,
            fmt::format("{} cannot be written: {}", folder.string(), problem),
            what.check == "logs"
                ? "choose another --log-dir; without it the ranks' output is shown but not stored"
                : "set TMPDIR to a folder that can be written"};
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0)
    return ok(what.check, folder.string() + " can be written");
  const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  const bool no_inodes = disk.f_files > 0 && disk.f_favail < 1000;
  const std::string found =
      fmt::format("{} can be written, {} free{}", folder.string(), bytes_text(free),
                  no_inodes ? fmt::format(", {} files more", disk.f_favail) : "");
  if (free >= what.free_needed_bytes && !no_inodes) return ok(what.check, found);
  return {Severity::Warning, what.check, found, "make room, or choose a folder on another disk"};
}

Finding check_core_files(const PreflightRequest& request) {
  rlimit limit{};
  ::getrlimit(RLIMIT_CORE, &limit);
  std::string pattern;
  std::ifstream file(request.proc / "sys/kernel/core_pattern");
  std::getline(file, pattern);
  const bool piped = !pattern.empty() && pattern[0] == '|';
  if (limit.rlim_cur == 0 && !piped) return ok("core_files", "a crash leaves no core file");
  return ok("core_files", fmt::format("a crash leaves a core file by `{}`", pattern));
}

}  // namespace

std::vector<Finding> preflight(const PreflightRequest& request) {
  std::vector<Finding> findings;
  if (!request.program.empty())
    findings.push_back(program_finding(request.program, request.script));
  if (request.endpoint_port > 0)
    findings.push_back(port_finding(request.endpoint_addr, request.endpoint_port, request.proc));
  findings.push_back(check_open_files(request));
  findings.push_back(check_processes(request));
  findings.push_back(check_cgroup_pids(request));
  findings.push_back(check_locked_memory(request));
  findings.push_back(check_shared_memory(request));
  if (!request.scratch_folder.empty())
    findings.push_back(
        check_folder({"scratch", request.scratch_folder, Severity::Error, 16 * kMiB}));
  if (!request.log_folder.empty())
    findings.push_back(check_folder({"logs", request.log_folder, Severity::Warning, kGiB}));
  findings.push_back(check_core_files(request));
  return findings;
}

}  // namespace convoy::launch

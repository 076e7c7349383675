// SPDX-License-Identifier: Apache-2.0
//
// The lock is an open-file-description lock (fcntl F_OFD_SETLK) on <run>/.lock: the kernel releases
// it with its process, it works over NFS, and F_OFD_GETLK tests it without taking it. The text in
// the file only names the holder.
#include "convoy/core/telemetry/runs/run_folder.h"

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/json_depth.h"
#include "convoy/core/base/json_member.h"
#include "convoy/core/base/printable_text.h"
#include "convoy/core/base/time_text.h"

namespace convoy::telemetry {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::string_view kLockName = ".lock";

std::string folder_word(std::string name) {
  std::replace_if(
      name.begin(), name.end(),
      [](char letter) { return letter == '/' || static_cast<unsigned char>(letter) <= ' '; }, '-');
  return name.empty() || name.front() == '.' ? "run" + name : name;
}

fs::path new_folder(const std::string& name, const fs::path& parent) {
  const std::string base =
      folder_word(name) + "-" + utc_time_text(std::time(nullptr), "%Y%m%d-%H%M%S");
  std::error_code failure;
  fs::create_directories(parent, failure);
  for (int number = 1; !failure && number < 1000; ++number) {
    const fs::path folder = parent / (number == 1 ? base : fmt::format("{}-{}", base, number));
    if (fs::create_directory(folder, failure)) return folder;
  }
  throw IoError(fmt::format("could not make a run folder: {}", failure.message()),
                {.file = (parent / base).string(), .hint = "give a folder with --run-dir"});
}

struct flock whole_file(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

std::string holder_text(const fs::path& lock_path) {
  try {
    const json holder = json::parse(read_file(lock_path, 4096), nullptr, false);
    if (holder.is_object())
      return fmt::format("process {} on {} since {}", member_or(holder, "pid", int64_t{-1}),
                         member_or(holder, "host", std::string("unknown host")),
                         member_or(holder, "since", std::string("?")));
  } catch (const Error&) {
    // Only the lock counts. The message then does not name its holder.
  }
  return "another process";
}

// True for Lustre without `-o flock`, NFS without its lock service, and similar network file
// systems.
bool has_no_locks(int code) {
  return code == ENOSYS || code == ENOLCK || code == EOPNOTSUPP || code == EINVAL;
}

// Returns the descriptor that holds the lock; -1 when the file system has no locks.
int take_lock(const fs::path& folder) {
  const fs::path path = folder / kLockName;
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (descriptor < 0)
    throw IoError(
        fmt::format("could not open the lock of the run folder: {}", std::strerror(errno)),
        {.file = path.string(), .hint = "check free space and permissions"});
  struct flock lock = whole_file(F_WRLCK);
  if (::fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
    const int code = errno;
    ::close(descriptor);
    if (code == EAGAIN || code == EACCES)
      throw ConfigError(
          fmt::format("the run folder is in use by {}", holder_text(path)),
          {.file = folder.string(), .hint = "wait for it, stop it, or name another run folder"});
    if (has_no_locks(code)) return -1;
    throw IoError(
        fmt::format("could not lock the run folder: {}", std::strerror(code)),
        {.file = path.string(), .hint = "put the run folder on another disk with --run-dir"});
  }
  const json holder = {
      {"pid", ::getpid()}, {"host", host_name()}, {"since", utc_time_text(std::time(nullptr))}};
  const std::string text = holder.dump() + "\n";
  // The name is only information: a full disk does not affect the lock.
  if (::ftruncate(descriptor, 0) == 0) [[maybe_unused]]
    const ssize_t written = ::pwrite(descriptor, text.data(), text.size(), 0);
  return descriptor;
}

json read_object(const fs::path& path) {
  std::error_code missing;
  if (!fs::exists(path, missing)) return json::object();
  const std::string text = read_file(path);
  json value = json::parse(text, nullptr, false);
  return value.is_object() && !nested_deeper(text) ? value : json::object();
}

}  // namespace

RunFolder::RunFolder(fs::path path, int lock_descriptor)
    : path_(std::move(path)), lock_descriptor_(lock_descriptor) {}

RunFolder RunFolder::create(const fs::path& folder, const std::string& name,
                            const fs::path& parent) {
  RunFolder run = take_part(folder, name, parent);
  run.lock_descriptor_ = take_lock(run.path_);
  return run;
}

RunFolder RunFolder::take_part(const fs::path& folder, const std::string& name,
                               const fs::path& parent) {
  const fs::path path = folder.empty() ? new_folder(name, parent) : folder;
  std::error_code failure;
  fs::create_directories(path, failure);
  if (!fs::is_directory(path))
    throw IoError(fmt::format("could not make the run folder: {}", failure.message()),
                  {.file = path.string(),
                   .hint = "check free space and permissions, or name another --run-dir"});
  RunFolder run(fs::absolute(path).lexically_normal(), -1);
  fs::create_directories(run.logs_folder(), failure);
  return run;
}

RunFolder RunFolder::attach(const fs::path& folder) {
  if (!fs::is_directory(folder))
    throw IoError(fmt::format("wanted a run folder at {}, found none", folder.string()),
                  {.hint = "the rank that should make it has ended, or this host does not see it: "
                           "name a folder that all hosts share"});
  return RunFolder(fs::absolute(folder).lexically_normal(), -1);
}

RunFolder::~RunFolder() {
  if (lock_descriptor_ >= 0) ::close(lock_descriptor_);
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_descriptor_(std::exchange(other.lock_descriptor_, -1)) {}

void RunFolder::write_config(const std::string& config_yaml, const json& config,
                             const std::map<std::string, std::string>& origins) const {
  json record = read_object(identity_path());
  record["config"] = config;
  record["origins"] = origins;
  write_file_atomic(identity_path(),
                    record.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  write_file_atomic(config_path(), config_yaml);
}

void RunFolder::propose_config(const json& config,
                               const std::map<std::string, std::string>& origins) const {
  json record = read_object(identity_path());
  record["proposed"] = {{"config", config}, {"origins", origins}};
  write_file_atomic(identity_path(),
                    record.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
}

void RunFolder::write_identity(const RunIdentity& identity) const {
  const std::string now = utc_time_text(std::time(nullptr));
  json before = read_object(identity_path());
  if (const json proposed = before.value("proposed", json()); proposed.is_object())
    before.update(proposed);
  json starts = before.value("starts", json::array());
  if (!starts.is_array()) starts = json::array();
  starts.push_back({{"time", now},
                    {"resume_step", identity.resume_step},
                    {"world_size", identity.world_size},
                    {"hosts", identity.hosts},
                    {"devices", identity.devices},
                    {"threads", identity.threads}});
  const json config = identity.config_json.empty()
                          ? before.value("config", json(nullptr))
                          : json::parse(identity.config_json, nullptr, /*allow_exceptions=*/false);
  CONVOY_INVARIANT(!config.is_discarded(), "the resolved config is not JSON");
  const json record = {
      {"version", CONVOY_VERSION},
      {"name", identity.name},
      {"task", identity.task},
      {"created", member_or(before, "created", now)},
      {"starts", starts},
      {"world_size", identity.world_size},
      {"hosts", identity.hosts},
      {"devices", identity.devices},
      {"threads", identity.threads},
      {"config", config},
      {"origins",
       identity.origins.empty() ? before.value("origins", json::object()) : json(identity.origins)},
      {"data_hashes", identity.data_hashes},
      {"stamp", identity.stamp}};
  write_file_atomic(identity_path(),
                    record.dump(2, ' ', false, json::error_handler_t::replace) + "\n");
  if (!identity.config_yaml.empty()) write_file_atomic(config_path(), identity.config_yaml);
}

void RunFolder::write_metrics(const json& figures) const {
  json merged = read_object(metrics_path());
  merged.update(figures);
  write_file_atomic(metrics_path(), merged.dump(2) + "\n");
}

std::string host_name() {
  std::array<char, HOST_NAME_MAX + 1> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? printable_text(name.data())
                                                          : "unknown host";
}

bool run_folder_is_held(const fs::path& folder) {
  const int descriptor = ::open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return false;
  struct flock lock = whole_file(F_WRLCK);
  const bool held = ::fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  ::close(descriptor);
  return held;
}

}  // namespace convoy::telemetry

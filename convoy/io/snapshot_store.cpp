// SPDX-License-Identifier: Apache-2.0
#include "convoy/io/snapshot_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <set>
#include <utility>

#include "convoy/base/error.h"
#include "convoy/base/files.h"
#include "convoy/base/hash.h"
#include "convoy/io/json_reader.h"
#include "convoy/io/model_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kFormat = "convoy-snapshot";
constexpr int64_t kFormatVersion = 1;
constexpr size_t kReadBytes = size_t{1} << 20;

struct FileRecord {
  int64_t bytes = 0;
  uint32_t crc = 0;
};

[[noreturn]] void throw_io(const char* what, const fs::path& path, int code) {
  throw IoError(fmt::format("could not {} {}: {}", what, path.string(), std::strerror(code)),
                {.file = path.string(), .hint = "check free space and permissions"});
}

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    entries.push_back(*entry);
  if (error) throw_io("list", folder, error.value());
  return entries;
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path)
      : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
    if (value_ < 0) throw_io("open", path, errno);
  }
  ~Descriptor() { ::close(value_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int value() const { return value_; }

 private:
  int value_;
};

FileRecord read_record(const Descriptor& file, const fs::path& path) {
  FileRecord record;
  std::string piece(kReadBytes, '\0');
  while (true) {
    const ssize_t count = ::read(file.value(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_io("read", path, errno);
    if (count == 0) return record;
    record.bytes += count;
    record.crc = crc32c({piece.data(), static_cast<size_t>(count)}, record.crc);
  }
}

// Makes every file and folder below `root` durable and says what each file holds.
std::map<std::string, FileRecord> sync_files(const fs::path& root) {
  std::map<std::string, FileRecord> records;
  std::vector<fs::path> folders = {root};
  for (size_t index = 0; index < folders.size(); ++index) {
    const fs::path folder = folders[index];
    for (const fs::directory_entry& entry : entries_of(folder)) {
      const fs::path& path = entry.path();
      const fs::file_status status = entry.symlink_status();
      if (fs::is_directory(status)) {
        folders.push_back(path);
        continue;
      }
      CONVOY_INVARIANT(fs::is_regular_file(status), "{} in a snapshot", path.string());
      const Descriptor file(path);
      // fsync first: after a failed one the pages would still read back as if written.
      if (::fsync(file.value()) != 0) throw_io("fsync", path, errno);
      records[path.lexically_relative(root)] = read_record(file, path);
    }
  }
  for (const fs::path& folder : folders)
    if (folder != root) sync_folder(folder);  // the root is synced with its manifest
  return records;
}

std::string crc_text(uint32_t crc) { return fmt::format("{:08x}", crc); }

Json manifest_of(int64_t step, int64_t sequence, const Json& content,
                 const std::map<std::string, FileRecord>& records) {
  Json manifest;
  manifest["format"] = kFormat;
  manifest["version"] = kFormatVersion;
  manifest["step"] = step;
  manifest["sequence"] = sequence;
  manifest["content"] = content;
  manifest["files"] = Json::object();
  for (const auto& [name, record] : records)
    manifest["files"][name] = {{"bytes", record.bytes}, {"crc32c", crc_text(record.crc)}};
  manifest["manifest_crc32c"] = crc_text(crc32c(manifest.dump()));
  return manifest;
}

// The manifest, with its own checksum proved. Throws DataError.
JsonReader read_manifest(const fs::path& folder) {
  const fs::path path = folder / kManifest;
  Json manifest = read_json_file(path);
  JsonReader reader(manifest, path.string());
  if (reader.string_or("format", "") != kFormat)
    reader.fail("format", "this is no snapshot manifest");
  const int64_t version = reader.require_int("version", 1, INT64_MAX);
  if (version > kFormatVersion)
    reader.fail("version", fmt::format("written by a newer Convoy (format {})", version));
  const std::string stored = reader.require_string("manifest_crc32c");
  manifest.erase("manifest_crc32c");
  const std::string found = crc_text(crc32c(manifest.dump()));
  if (found != stored)
    reader.fail("manifest_crc32c",
                fmt::format("wanted {}, found {}: the manifest is damaged", stored, found));
  return reader;
}

int64_t sequence_of(const fs::path& folder) {
  try {
    return read_manifest(folder).require_int("sequence", 0, INT64_MAX);
  } catch (const Error&) {
    return INT64_MAX;  // unreadable: looked at first, and then refused in words
  }
}

bool is_relative_and_inside(const std::string& name) {
  for (const fs::path& part : fs::path(name))
    if (!is_single_path_component(part.string())) return false;
  return !name.empty();
}

void check_file(const fs::path& folder, const std::string& name, const JsonReader& entry) {
  if (!is_relative_and_inside(name)) throw DataError(fmt::format("file name `{:.200}`", name));
  const int64_t bytes = entry.require_int("bytes", 0, INT64_MAX);
  const std::string crc = entry.require_string("crc32c");
  const fs::path path = folder / name;
  const FileRecord found = read_record(Descriptor(path), path);
  if (found.bytes != bytes)
    throw DataError(fmt::format("{} has {} bytes, {} were saved", name, found.bytes, bytes));
  if (crc_text(found.crc) != crc)
    throw DataError(fmt::format("{} was changed or damaged after saving (CRC32C {}, saved {})",
                                name, crc_text(found.crc), crc));
}

std::optional<int64_t> step_of(const std::string& folder_name) {
  constexpr std::string_view kPrefix = "step-";
  if (!folder_name.starts_with(kPrefix)) return std::nullopt;
  int64_t step = 0;
  const char* end = folder_name.data() + folder_name.size();
  const auto result = std::from_chars(folder_name.data() + kPrefix.size(), end, step);
  if (result.ec != std::errc() || result.ptr != end || snapshot_folder_name(step) != folder_name)
    return std::nullopt;
  return step;
}

}  // namespace

std::string snapshot_folder_name(int64_t step) { return fmt::format("step-{:08}", step); }

VerifiedSnapshot verify_snapshot(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw CheckpointError("there is no such checkpoint folder", {.file = folder.string()});
  try {
    const JsonReader manifest = read_manifest(folder);
    const JsonReader files = manifest.require_object("files");
    for (const std::string& name : files.keys())
      check_file(folder, name, files.require_object(name));
    return {
        folder,
        {manifest.require_int("step", 0, INT64_MAX), manifest.require_object("content").value()}};
  } catch (const Error& error) {
    throw CheckpointError(fmt::format("the checkpoint is not usable: {}", error.sentence()),
                          {.file = folder.string()});
  }
}

SnapshotStore::SnapshotStore(fs::path root, int64_t keep)
    : root_(std::move(root)), keep_(std::max<int64_t>(keep, 1)) {}

void SnapshotStore::prepare() {
  std::error_code error;
  fs::create_directories(root_, error);
  if (error) throw_io("create", root_, error.value());
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : entries_of(root_))
    if (entry.path().filename().string().starts_with(".tmp-")) leftovers.push_back(entry.path());
  for (const fs::path& path : leftovers) {
    fs::remove_all(path, error);
    if (error) throw_io("remove", path, error.value());
  }
}

std::vector<int64_t> SnapshotStore::steps() const {
  std::vector<int64_t> steps;
  std::error_code ignored;
  if (!fs::exists(root_, ignored)) return steps;
  for (const fs::directory_entry& entry : entries_of(root_))
    if (const auto step = step_of(entry.path().filename()); step && entry.is_directory(ignored))
      steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

// Newest first. By sequence, not by step: a run continued from an older snapshot makes newer ones with smaller steps.
std::vector<int64_t> SnapshotStore::newest_first() const {
  std::vector<std::pair<int64_t, int64_t>> by_sequence;
  for (const int64_t step : steps())
    by_sequence.emplace_back(sequence_of(root_ / snapshot_folder_name(step)), step);
  std::sort(by_sequence.rbegin(), by_sequence.rend());
  std::vector<int64_t> ordered;
  for (const auto& [sequence, step] : by_sequence) ordered.push_back(step);
  return ordered;
}

int64_t SnapshotStore::next_sequence() const {
  int64_t next = 0;
  int64_t num_unreadable = 0;
  for (const int64_t step : steps()) {
    const int64_t sequence = sequence_of(root_ / snapshot_folder_name(step));
    if (sequence == INT64_MAX)
      ++num_unreadable;
    else
      next = std::max(next, sequence + 1);
  }
  return next + num_unreadable;  // above those too, should they come back
}

fs::path SnapshotStore::save(const SaveRequest& request,
                             const std::function<void(const fs::path&)>& write_files) {
  const std::string name = snapshot_folder_name(request.step);
  const fs::path temporary = root_ / fmt::format(".tmp-{}-{}", name, ::getpid());
  std::error_code error;
  fs::remove_all(temporary, error);
  fs::create_directories(temporary, error);
  if (error) throw_io("create", temporary, error.value());
  try {
    write_files(temporary);
    const std::map<std::string, FileRecord> records = sync_files(temporary);
    const Json manifest = manifest_of(request.step, next_sequence(), request.content, records);
    write_file_atomic(temporary / kManifest, manifest.dump(2) + "\n");
    publish(temporary, request.step);
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
  known_valid_.insert(request.step);
  link("last", request.step);
  if (request.is_best) link("best", request.step);
  apply_retention();
  return root_ / name;
}

void SnapshotStore::publish(const fs::path& temporary, int64_t step) {
  const fs::path target = root_ / snapshot_folder_name(step);
  std::error_code ignored;
  if (fs::exists(target, ignored)) {
    // A rerun of the same step. The two swap names at once, so there is no moment without either.
    if (::renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) != 0)
      throw_io("replace", target, errno);
    sync_folder(root_);
    fs::remove_all(temporary, ignored);
    return;
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0) throw_io("rename", temporary, errno);
  sync_folder(root_);
}

void SnapshotStore::link(const std::string& name, int64_t step) {
  const fs::path temporary = root_ / fmt::format(".tmp-{}-{}", name, ::getpid());
  ::unlink(temporary.c_str());
  if (::symlink(snapshot_folder_name(step).c_str(), temporary.c_str()) != 0)
    throw_io("link", temporary, errno);
  if (::rename(temporary.c_str(), (root_ / name).c_str()) != 0)
    throw_io("rename", temporary, errno);
  sync_folder(root_);
}

void SnapshotStore::mark_best(int64_t step) {
  if (linked_step("best") != step) link("best", step);
}

std::optional<int64_t> SnapshotStore::linked_step(const std::string& name) const {
  std::error_code error;
  const fs::path target = fs::read_symlink(root_ / name, error);
  return error ? std::nullopt : step_of(target.string());
}

bool SnapshotStore::is_valid(int64_t step) {
  if (known_valid_.contains(step)) return true;
  try {
    verify_snapshot(root_ / snapshot_folder_name(step));
  } catch (const CheckpointError&) {
    return false;
  }
  known_valid_.insert(step);
  return true;
}

// Only snapshots proved whole count as kept; damaged ones go with age.
void SnapshotStore::apply_retention() {
  int64_t kept = 0;
  for (const int64_t step : newest_first()) {
    if (linked_step("last") == step || linked_step("best") == step) continue;
    if (kept >= keep_) {
      discard(root_ / snapshot_folder_name(step));
      known_valid_.erase(step);
    } else if (is_valid(step)) {
      ++kept;
    }
  }
}

// Renamed first: a half-removed folder never carries a snapshot's name. What stays behind goes at the next prepare().
void SnapshotStore::discard(const fs::path& folder) {
  const fs::path removed =
      root_ / fmt::format(".tmp-removed-{}-{}", folder.filename().string(), ::getpid());
  if (::rename(folder.c_str(), removed.c_str()) != 0) throw_io("remove", folder, errno);
  std::error_code ignored;
  fs::remove_all(removed, ignored);
}

std::optional<VerifiedSnapshot> SnapshotStore::newest_valid(
    std::vector<std::string>& notices) const {
  for (const int64_t step : newest_first()) {
    try {
      return verify_snapshot(root_ / snapshot_folder_name(step));
    } catch (const CheckpointError& error) {
      notices.push_back(error.sentence() + "; the one before it is tried");
    }
  }
  return std::nullopt;
}

std::optional<VerifiedSnapshot> SnapshotStore::best(std::vector<std::string>& notices) const {
  const std::optional<int64_t> step = linked_step("best");
  if (!step) return std::nullopt;
  try {
    return verify_snapshot(root_ / snapshot_folder_name(*step));
  } catch (const CheckpointError& error) {
    notices.push_back(error.sentence());
    return std::nullopt;
  }
}

}  // namespace convoy::io

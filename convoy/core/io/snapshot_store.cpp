// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/snapshot_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <set>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/file_failure.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/model_folder.h"

namespace convoy::io {
namespace {

namespace fs = std::filesystem;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kFormat = "convoy-snapshot";
constexpr int64_t kFormatVersion = 1;
constexpr size_t kReadBytes = size_t{1} << 20;
constexpr const char* kTemporary = ".tmp-";
constexpr const char* kReplaced = ".replaced-";

std::vector<fs::directory_entry> entries_of(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::directory_entry> entries;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    entries.push_back(*entry);
  if (error) throw_file_failure("list", folder, error.value());
  return entries;
}

class Descriptor {
 public:
  explicit Descriptor(const fs::path& path)
      : value_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
    if (value_ < 0) throw_file_failure("open", path, errno);
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
    if (count < 0) throw_file_failure("read", path, errno);
    if (count == 0) return record;
    record.bytes += count;
    record.crc32c = crc32c({piece.data(), static_cast<size_t>(count)}, record.crc32c);
  }
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
    manifest["files"][name] = {{"bytes", record.bytes}, {"crc32c", crc_text(record.crc32c)}};
  manifest["manifest_crc32c"] = crc_text(crc32c(manifest.dump()));
  return manifest;
}

// Reads the manifest and verifies its own checksum. Throws DataError.
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

int64_t stored_sequence(const fs::path& folder) {
  try {
    return read_manifest(folder).require_int("sequence", 0, INT64_MAX);
  } catch (const Error&) {
    return INT64_MAX;  // unreadable: checked first, and then refused with an error text
  }
}

bool is_relative_and_inside(const std::string& name) {
  for (const fs::path& part : fs::path(name))
    if (!is_single_path_component(part.string())) return false;
  return !name.empty();
}

void check_file(const fs::path& folder, const std::string& name, const JsonReader& entry) {
  if (!is_relative_and_inside(name))
    throw DataError(fmt::format("the file name `{:.200}` leaves the snapshot folder", name),
                    {.file = folder.string(),
                     .hint = "the checkpoint is damaged: resume from an older one, or start anew "
                             "with --resume never"});
  const int64_t bytes = entry.require_int("bytes", 0, INT64_MAX);
  const std::string crc = entry.require_string("crc32c");
  const fs::path path = folder / name;
  const FileRecord found = read_record(Descriptor(path), path);
  if (found.bytes != bytes)
    throw DataError(fmt::format("{} has {} bytes, {} were saved", name, found.bytes, bytes),
                    {.file = folder.string(),
                     .hint = "resume from an older checkpoint, or start anew with --resume never"});
  if (crc_text(found.crc32c) != crc)
    throw DataError(fmt::format("{} was changed or damaged after saving (CRC32C {}, saved {})",
                                name, crc_text(found.crc32c), crc),
                    {.file = folder.string(),
                     .hint = "resume from an older checkpoint, or start anew with --resume never"});
}

std::optional<int64_t> step_of(const std::string& folder_name) {
  constexpr std::string_view kPrefix = "step-";
  if (!folder_name.starts_with(kPrefix)) return std::nullopt;
  const auto step = text_as<int64_t>(std::string_view(folder_name).substr(kPrefix.size()));
  return step && snapshot_folder_name(*step) == folder_name ? step : std::nullopt;
}

// Returns the step that a symbolic link points to, or that a file in place of a link holds as text;
// empty when neither exists. A name that cannot be read is an error, because its snapshot must not
// be removed.
std::optional<int64_t> named_step(const fs::path& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  if (!error) return step_of(target.string());
  if (error == std::errc::no_such_file_or_directory) return std::nullopt;
  if (error != std::errc::invalid_argument) throw_file_failure("read link", link, error.value());
  const Descriptor file(link);
  std::array<char, 64> text{};
  const ssize_t length = ::read(file.value(), text.data(), text.size());
  if (length < 0) throw_file_failure("read", link, errno);
  const std::string_view line(text.data(), static_cast<size_t>(length));
  return step_of(std::string(line.substr(0, line.find('\n'))));
}

void rename_entry(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) throw_file_failure("rename", from, errno);
}

}  // namespace

std::string snapshot_folder_name(int64_t step) { return fmt::format("step-{:08}", step); }

VerifiedSnapshot verify_snapshot(const fs::path& named) {
  std::error_code ignored;
  fs::path folder = named;
  if (fs::is_regular_file(named, ignored))
    if (const auto step = named_step(named))
      folder = named.parent_path() / snapshot_folder_name(*step);
  if (!fs::is_directory(folder, ignored))
    throw CheckpointError(
        "there is no such checkpoint folder",
        {.file = folder.string(), .hint = "name a run folder or one of its checkpoints"});
  try {
    const JsonReader manifest = read_manifest(folder);
    const JsonReader files = manifest.require_object("files");
    for (const std::string& name : files.keys())
      check_file(folder, name, files.require_object(name));
    return {
        folder,
        {manifest.require_int("step", 0, INT64_MAX), manifest.require_object("content").value()}};
  } catch (const Error& error) {
    throw CheckpointError(
        fmt::format("the checkpoint is not usable: {}", error.sentence()),
        {.file = folder.string(),
         .hint = "name an older checkpoint of the run, or start anew with --resume never"});
  }
}

SnapshotStore::SnapshotStore(fs::path root, int64_t keep)
    : root_(std::move(root)), keep_(std::max<int64_t>(keep, 1)) {}

void SnapshotStore::prepare() {
  std::error_code error;
  fs::create_directories(root_, error);
  if (error) throw_file_failure("create", root_, error.value());
  put_back_replaced();
  // An entry that cannot be removed now, because a reader on a network file system has it open, is
  // removed at the next start.
  for (const fs::directory_entry& entry : entries_of(root_))
    if (entry.path().filename().string().starts_with(kTemporary))
      fs::remove_all(entry.path(), error);
  for (const int64_t step : steps()) sequence_of(step);
  settle();
}

// Handles reruns of a step that were interrupted. If the new snapshot has its final name, the old
// one is removed; otherwise the old one gets its name back.
void SnapshotStore::put_back_replaced() {
  for (const fs::directory_entry& entry : entries_of(root_)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kReplaced)) continue;
    const fs::path target = root_ / name.substr(std::string_view(kReplaced).size());
    if (fs::exists(target)) {
      discard(entry.path());
    } else {
      rename_entry(entry.path(), target);
      sync_folder(root_);
    }
  }
}

fs::path SnapshotStore::folder_of(int64_t step) const {
  const std::string name = snapshot_folder_name(step);
  std::error_code ignored;
  return fs::is_directory(root_ / name, ignored) ? root_ / name : root_ / (kReplaced + name);
}

std::vector<int64_t> SnapshotStore::steps() const {
  std::set<int64_t> steps;
  std::error_code ignored;
  if (!fs::exists(root_, ignored)) return {};
  for (const fs::directory_entry& entry : entries_of(root_)) {
    std::string name = entry.path().filename();
    if (name.starts_with(kReplaced)) name.erase(0, std::string_view(kReplaced).size());
    if (const auto step = step_of(name); step && entry.is_directory(ignored)) steps.insert(*step);
  }
  return {steps.begin(), steps.end()};
}

int64_t SnapshotStore::sequence_of(int64_t step) {
  const auto known = sequences_.find(step);
  if (known != sequences_.end()) return known->second;
  return sequences_[step] = stored_sequence(folder_of(step));
}

// Sorts by sequence, not by step: a run continued from an older snapshot makes newer ones with
// smaller steps.
std::vector<int64_t> SnapshotStore::newest_first() {
  std::vector<std::pair<int64_t, int64_t>> by_sequence;
  for (const int64_t step : steps()) by_sequence.emplace_back(sequence_of(step), step);
  std::sort(by_sequence.rbegin(), by_sequence.rend());
  std::vector<int64_t> ordered;
  for (const auto& [sequence, step] : by_sequence) ordered.push_back(step);
  return ordered;
}

int64_t SnapshotStore::next_sequence() {
  int64_t next = 0;
  int64_t num_unreadable = 0;
  for (const int64_t step : steps()) {
    const int64_t sequence = sequence_of(step);
    if (sequence == INT64_MAX)
      ++num_unreadable;
    else
      next = std::max(next, sequence + 1);
  }
  return next + num_unreadable;  // above the unreadable snapshots too, in case they become readable
}

fs::path SnapshotStore::save(const SaveRequest& request,
                             const std::function<void(SnapshotWriter&)>& write_files) {
  const std::string name = snapshot_folder_name(request.step);
  const fs::path temporary = root_ / fmt::format("{}{}-{}", kTemporary, name, ::getpid());
  std::error_code error;
  fs::create_directories(root_, error);
  fs::remove_all(temporary, error);
  if (!fs::create_directory(temporary, error))
    throw_file_failure("create", temporary, error ? error.value() : EEXIST);
  const int64_t sequence = next_sequence();
  try {
    SnapshotWriter writer(temporary);
    write_files(writer);
    const Json manifest = manifest_of(request.step, sequence, request.content, writer.records());
    writer.write(kManifest, manifest.dump(2) + "\n");
    writer.sync_folders();
    publish(temporary, request.step);
  } catch (...) {
    fs::remove_all(temporary, error);
    throw;
  }
  sequences_[request.step] = sequence;
  proved_.insert(request.step);
  link("last", request.step);
  if (request.is_best) link("best", request.step);
  apply_retention(Unproved::Stay);
  return root_ / name;
}

void SnapshotStore::publish(const fs::path& temporary, int64_t step) {
  const fs::path target = root_ / snapshot_folder_name(step);
  const fs::path replaced = root_ / (kReplaced + snapshot_folder_name(step));
  std::error_code ignored;
  const bool is_rerun = fs::exists(target, ignored);
  if (is_rerun) {
    fs::remove_all(replaced, ignored);
    rename_entry(target, replaced);
  }
  try {
    // Each rename is made durable before the next one, so that no order of lost renames leaves the
    // step without a snapshot.
    if (is_rerun) sync_folder(root_);
    rename_entry(temporary, target);
  } catch (...) {
    if (is_rerun) ::rename(replaced.c_str(), target.c_str());
    throw;
  }
  sync_folder(root_);
  if (fs::exists(replaced, ignored)) discard(replaced);
}

void SnapshotStore::link(const std::string& name, int64_t step) {
  const std::string target = snapshot_folder_name(step);
  const fs::path temporary = root_ / fmt::format("{}{}-{}", kTemporary, name, ::getpid());
  ::unlink(temporary.c_str());
  if (::symlink(target.c_str(), temporary.c_str()) != 0) {
    if (errno != EPERM && errno != EOPNOTSUPP && errno != ENOSYS)
      throw_file_failure("link", temporary, errno);
    write_file_atomic(root_ / name, target + "\n");  // SMB shares and FAT have no links
    return;
  }
  rename_entry(temporary, root_ / name);
  sync_folder(root_);
}

bool SnapshotStore::verify(int64_t step) {
  try {
    verify_snapshot(folder_of(step));
  } catch (const CheckpointError&) {
    proved_.erase(step);
    return false;
  }
  proved_.insert(step);
  return true;
}

void SnapshotStore::settle() { apply_retention(Unproved::AreVerified); }

// Only snapshots verified as whole count as kept; damaged ones are removed by age.
void SnapshotStore::apply_retention(Unproved unproved) {
  std::vector<int64_t> ordinary = newest_first();
  const std::optional<int64_t> last = named_step(root_ / "last");
  const std::optional<int64_t> best = named_step(root_ / "best");
  std::erase_if(ordinary, [&](int64_t step) { return step == last || step == best; });
  if (std::ssize(ordinary) <= keep_) return;
  int64_t num_kept = 0;
  for (const int64_t step : ordinary) {
    if (num_kept >= keep_) {
      discard(folder_of(step));
      sequences_.erase(step);
      proved_.erase(step);
    } else if (proved_.contains(step) || (unproved == Unproved::AreVerified && verify(step))) {
      ++num_kept;
    }
  }
}

// Renames first, so that a half-removed folder never has a snapshot's name. The next prepare()
// removes what is left.
void SnapshotStore::discard(const fs::path& folder) {
  const fs::path removed =
      root_ / fmt::format("{}removed-{}-{}", kTemporary, folder.filename().string(), ::getpid());
  rename_entry(folder, removed);
  std::error_code ignored;
  fs::remove_all(removed, ignored);
}

std::optional<VerifiedSnapshot> SnapshotStore::newest_valid(std::vector<std::string>& notices) {
  sequences_.clear();  // a writer may have changed them since
  for (const int64_t step : newest_first()) {
    try {
      VerifiedSnapshot snapshot = verify_snapshot(folder_of(step));
      proved_.insert(step);
      return snapshot;
    } catch (const CheckpointError& error) {
      proved_.erase(step);
      notices.push_back(error.sentence() + "; the one before it is tried");
    }
  }
  return std::nullopt;
}

std::optional<VerifiedSnapshot> SnapshotStore::best(std::vector<std::string>& notices) {
  const std::optional<int64_t> step = named_step(root_ / "best");
  if (!step) return std::nullopt;
  try {
    return verify_snapshot(folder_of(*step));
  } catch (const CheckpointError& error) {
    notices.push_back(error.sentence());
    return std::nullopt;
  }
}

}  // namespace convoy::io

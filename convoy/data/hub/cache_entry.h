// SPDX-License-Identifier: Apache-2.0
//
// One repository in the local hub cache, in huggingface_hub's format, so that each program can use
// the other's downloads: blobs/ETAG, snapshots/COMMIT/PATH as relative links to blobs,
// refs/REVISION, and locks in .locks/ that both programs take.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "convoy/core/base/descriptor.h"
#include "convoy/data/hub/blob_hash.h"
#include "convoy/data/hub/hub_client.h"

namespace convoy::hub {

class CacheEntry {
 public:
  CacheEntry(const std::filesystem::path& cache, const RepositoryName& repository);

  std::filesystem::path snapshot(const std::string& commit) const;
  std::filesystem::path blob(const std::string& etag) const;
  std::filesystem::path part(const std::string& etag) const;  // path of a partial blob
  std::filesystem::path lock(const std::string& etag) const;

  // True when the file of a snapshot is a link to an existing blob.
  bool has_file(const std::string& commit, const std::string& path) const;
  void link_file(const std::string& commit, const RemoteFile& file) const;  // throws IoError
  // Removes a file of a snapshot and its blob.
  void forget_file(const std::string& commit, const std::string& path) const;
  // Writes refs/REVISION. Does nothing when `revision` is the commit itself. Throws IoError.
  void write_ref(const std::string& revision, const std::string& commit) const;
  void make_folders(const std::string& commit) const;  // throws IoError

 private:
  std::filesystem::path cache_;
  std::filesystem::path folder_;  // folder models--org--name
};

// A lock that one process holds at a time, processes of huggingface_hub included. Blocks: calls
// `while_waiting` a few times a second; an exception from it ends the wait.
class FileLock {
 public:
  FileLock(const std::filesystem::path& path, const std::function<void()>& while_waiting);

 private:
  Descriptor file_;
};

// A blob while it is downloaded: a growing file, and the hash of its content. A later process can
// resume from the partial file.
class BlobPart {
 public:
  // Reads an existing partial file. Throws IoError.
  BlobPart(std::filesystem::path path, const RemoteFile& file);

  int64_t size_bytes() const { return size_bytes_; }
  void write(int64_t begin, std::string_view bytes);  // truncates at `begin` if it is not the end
  void restart();
  // Returns true when the bytes are correct and synced to disk. No further bytes may be written.
  bool finish();

 private:
  void cut(int64_t size_bytes);

  std::filesystem::path path_;
  RemoteFile file_;
  Descriptor descriptor_;
  BlobHash hash_;
  int64_t size_bytes_ = 0;
};

}  // namespace convoy::hub

// SPDX-License-Identifier: Apache-2.0
//
// One repository in the local hub cache, written as huggingface_hub writes it, so that either's
// downloads serve the other: blobs/ETAG, snapshots/COMMIT/PATH as relative links to blobs,
// refs/REVISION, and locks in .locks/ that both take.
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
  std::filesystem::path part(const std::string& etag) const;  // of a blob that is not whole
  std::filesystem::path lock(const std::string& etag) const;

  // The file of a snapshot leads to a blob that is there.
  bool has_file(const std::string& commit, const std::string& path) const;
  void link_file(const std::string& commit, const RemoteFile& file) const;  // throws IoError
  // Removes a file of a snapshot and the blob behind it.
  void forget_file(const std::string& commit, const std::string& path) const;
  // Nothing where `revision` is the commit itself. Throws IoError.
  void write_ref(const std::string& revision, const std::string& commit) const;
  void make_folders(const std::string& commit) const;  // throws IoError

 private:
  std::filesystem::path cache_;
  std::filesystem::path folder_;  // models--org--name
};

// Held by one process at a time, huggingface_hub's processes included. Blocks: `while_waiting` is
// called a few times a second; what it throws ends the wait.
class FileLock {
 public:
  FileLock(const std::filesystem::path& path, const std::function<void()>& while_waiting);

 private:
  Descriptor file_;
};

// A blob while it is fetched: a file that grows, and the hash of what it holds. What is there when
// the process ends is where the next one goes on.
class BlobPart {
 public:
  // Reads what is there already. Throws IoError.
  BlobPart(std::filesystem::path path, const RemoteFile& file);

  int64_t size_bytes() const { return size_bytes_; }
  void write(int64_t begin, std::string_view bytes);  // begin before the end: goes back to there
  void restart();
  // True: the bytes are the file's and stand on the disk. Ends the hash.
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

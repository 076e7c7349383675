// SPDX-License-Identifier: Apache-2.0
//
// Writes the files of one snapshot and records their sizes and checksums without reading them back:
// bytes are counted and hashed on their way to the kernel. Driven by SnapshotStore::save. One
// thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/io/safetensors.h"

namespace convoy::io {

struct FileRecord {
  int64_t bytes = 0;
  uint32_t crc32c = 0;
};

class SnapshotWriter {
 public:
  // `folder` must be visible only to the writers of this snapshot.
  explicit SnapshotWriter(std::filesystem::path folder);

  // `name` is relative to the folder; for "adapter/config.json" its subfolder is made. The file is
  // fsynced when write() or write_tensors() returns. Both throw IoError, and StateError for a name
  // that was used before.
  void write(const std::string& name, std::string_view bytes);
  void write_tensors(const std::string& name, std::vector<TensorSource> tensors,
                     const Metadata& metadata = {{"format", "pt"}});
  // Adds a file that another process has written into the folder and fsynced.
  void add_written(const std::string& name, const FileRecord& record);

  const std::filesystem::path& folder() const { return folder_; }
  // Fsyncs the folders, so that the names of the files are as durable as the files. Throws IoError.
  void sync_folders() const;

  const std::map<std::string, FileRecord>& records() const { return records_; }  // by name

 private:
  class File;
  std::filesystem::path new_file(const std::string& name);

  std::filesystem::path folder_;
  std::set<std::filesystem::path> inner_folders_;
  std::map<std::string, FileRecord> records_;
};

}  // namespace convoy::io

// SPDX-License-Identifier: Apache-2.0
//
// The files of a push: their names in the repository, their bytes, and the hub's names for them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/base/descriptor.h"
#include "convoy/data/hub/file_choice.h"

namespace convoy::hub {

struct PushFile {
  std::string path = {};              // inside the repository
  std::filesystem::path source = {};  // empty: the content is `text`
  std::string text = {};
  int64_t size_bytes = 0;
};

// A file whose content is a text that is on no disk.
PushFile file_of_text(std::string path, std::string text);

// The files below `folder` that `choice` leaves, by name; links to files are followed. Folders
// `.git` and `.cache` are left out: the hub refuses them. Throws DataError.
std::vector<PushFile> files_to_push(const std::filesystem::path& folder, const FileChoice& choice);

// The bytes of a file of a push.
class PushBytes {
 public:
  explicit PushBytes(const PushFile& file);  // must outlive it. Throws DataError

  // Writes the bytes from `begin` on, at most `most`, to `into` and returns their number. Throws
  // DataError when the file ends before.
  size_t read(int64_t begin, char* into, size_t most) const;
  std::string read(int64_t begin, int64_t bytes) const;

 private:
  const PushFile& file_;
  Descriptor descriptor_;
};

// Called with the size of each piece that has been hashed. An exception ends the hashing.
using HashedBytes = std::function<void(int64_t bytes)>;

// Lowercase hex. Both stream the file.
std::string sha256_of(
    const PushFile& file, const HashedBytes& hashed = [](int64_t) {});
std::string git_id_of(
    const PushFile& file, const HashedBytes& hashed = [](int64_t) {});

}  // namespace convoy::hub

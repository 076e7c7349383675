// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/hub/push_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/base/utf8.h"
#include "convoy/data/hub/blob_hash.h"

namespace convoy::hub {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kPieceBytes = int64_t{1} << 20;

bool is_left_out(const fs::path& folder_name) {
  return folder_name == ".git" || folder_name == ".cache";
}

// The name with each byte beyond ASCII as \xNN.
std::string shown_name(const std::string& path) {
  std::string shown;
  for (const unsigned char byte : path)
    shown += byte < 0x80 ? std::string(1, static_cast<char>(byte)) : fmt::format("\\x{:02x}", byte);
  return shown;
}

template <class Hash>
void add_file(Hash& hash, const PushFile& file, const HashedBytes& hashed) {
  const PushBytes bytes(file);
  for (int64_t at = 0; at < file.size_bytes; at += kPieceBytes) {
    const std::string piece = bytes.read(at, std::min(kPieceBytes, file.size_bytes - at));
    hash.update(piece);
    hashed(std::ssize(piece));
  }
}

}  // namespace

PushFile file_of_text(std::string path, std::string text) {
  const auto size_bytes = static_cast<int64_t>(text.size());
  return {.path = std::move(path), .text = std::move(text), .size_bytes = size_bytes};
}

std::vector<PushFile> files_to_push(const fs::path& folder, const FileChoice& choice) {
  std::vector<PushFile> found;
  try {
    for (auto entry = fs::recursive_directory_iterator(folder);
         entry != fs::recursive_directory_iterator(); ++entry) {
      std::error_code broken;  // a link to itself
      if (entry->is_directory(broken) && is_left_out(entry->path().filename())) {
        entry.disable_recursion_pending();
        continue;
      }
      const bool is_file = entry->is_regular_file(broken);
      if (!is_file && !entry->is_symlink()) continue;
      const std::string path = entry->path().lexically_relative(folder).generic_string();
      if (chosen_files({path}, choice, [](const std::string&) { return true; }).empty()) continue;
      if (!is_file)
        throw DataError(
            fmt::format("{} is a link to no file: only links to files are pushed", path),
            {.file = entry->path().string(), .hint = "mend the link, or leave it out: --exclude"});
      if (find_invalid_utf8(path))
        throw DataError(
            fmt::format("the hub takes no file name that is not UTF-8: {}", shown_name(path)),
            {.file = folder.string(), .hint = "rename the file"});
      found.push_back({.path = path,
                       .source = entry->path(),
                       .size_bytes = static_cast<int64_t>(entry->file_size())});
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("cannot list {}: {}", folder.string(), error.code().message()),
                    {.file = folder.string(), .hint = "give a folder that can be read"});
  }
  std::sort(found.begin(), found.end(),
            [](const PushFile& left, const PushFile& right) { return left.path < right.path; });
  return found;
}

PushBytes::PushBytes(const PushFile& file) : file_(file) {
  if (file.source.empty()) return;
  descriptor_ = Descriptor(::open(file.source.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor_.open())
    throw DataError(fmt::format("cannot open {}: {}", file.source.string(), std::strerror(errno)),
                    {.file = file.source.string(), .hint = "check that it exists and its rights"});
}

size_t PushBytes::read(int64_t begin, char* into, size_t most) const {
  const auto left = static_cast<size_t>(std::max<int64_t>(file_.size_bytes - begin, 0));
  const size_t wanted = std::min(most, left);
  if (file_.source.empty()) {
    std::memcpy(into, file_.text.data() + begin, wanted);
    return wanted;
  }
  ssize_t got = 0;
  do {
    got = ::pread(descriptor_.get(), into, wanted, begin);
  } while (got < 0 && errno == EINTR);
  if (got <= 0 && wanted > 0)
    throw DataError(
        fmt::format("{}: wanted {} bytes, found an end or an error at byte {}",
                    file_.source.string(), file_.size_bytes, begin),
        {.file = file_.source.string(), .hint = "push when no program writes it any more"});
  return static_cast<size_t>(std::max<ssize_t>(got, 0));
}

std::string PushBytes::read(int64_t begin, int64_t bytes) const {
  std::string whole(static_cast<size_t>(bytes), '\0');
  for (size_t at = 0; at < whole.size();)
    at += read(begin + static_cast<int64_t>(at), whole.data() + at, whole.size() - at);
  return whole;
}

std::string sha256_of(const PushFile& file, const HashedBytes& hashed) {
  Sha256 hash;
  add_file(hash, file, hashed);
  return hash.hex();
}

std::string git_id_of(const PushFile& file, const HashedBytes& hashed) {
  Sha1 hash;
  hash.update(fmt::format("blob {}", file.size_bytes));
  hash.update(std::string_view("\0", 1));
  add_file(hash, file, hashed);
  return hash.hex();
}

}  // namespace convoy::hub

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/page/result_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "convoy/core/base/descriptor.h"

namespace convoy::page {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostBytes = 16 << 20;

std::optional<ResultKind> kind_of(const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".svg" || ending == ".png") return ResultKind::Figure;
  if (ending == ".csv") return ResultKind::Table;
  return std::nullopt;
}

void add_file(const fs::path& file, const std::string& name, std::vector<ResultFile>& found) {
  const auto kind = kind_of(file);
  struct stat status {};
  if (!kind || ::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return;
  found.push_back({.name = name,
                   .kind = *kind,
                   .size_bytes = status.st_size,
                   .changed_seconds = static_cast<double>(status.st_mtim.tv_sec) +
                                      static_cast<double>(status.st_mtim.tv_nsec) * 1e-9});
}

void add_files(const fs::path& folder, const std::string& prefix, std::vector<ResultFile>& found) {
  std::error_code unreadable;
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    if (prefix.empty() && entry.is_directory(unreadable) && !entry.is_symlink(unreadable))
      add_files(entry.path(), name + "/", found);
    else
      add_file(entry.path(), prefix + name, found);
  }
}

}  // namespace

std::vector<ResultFile> result_files(const fs::path& folder) {
  std::vector<ResultFile> found;
  add_files(folder, "", found);
  std::sort(found.begin(), found.end(), [](const ResultFile& left, const ResultFile& right) {
    return std::make_pair(-left.changed_seconds, left.name) <
           std::make_pair(-right.changed_seconds, right.name);
  });
  if (found.size() > kMostResultFiles) found.resize(kMostResultFiles);
  return found;
}

std::optional<std::string> read_result_file(const fs::path& folder, const std::string& name) {
  const std::vector<ResultFile> files = result_files(folder);
  const auto file = std::find_if(files.begin(), files.end(),
                                 [&](const ResultFile& each) { return each.name == name; });
  if (file == files.end() || file->size_bytes > kMostBytes) return std::nullopt;
  // O_NOFOLLOW, because the file may have become a link since it was found.
  const Descriptor opened(::open((folder / name).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (opened.get() < 0) return std::nullopt;
  std::string bytes(static_cast<size_t>(file->size_bytes), '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t count = ::read(opened.get(), bytes.data() + size, bytes.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    size += static_cast<size_t>(count);
  }
  bytes.resize(size);
  return bytes;
}

std::string_view type_of_result(const std::string& name) {
  if (name.ends_with(".svg")) return "image/svg+xml";
  return name.ends_with(".png") ? "image/png" : "text/csv; charset=utf-8";
}

}  // namespace convoy::page

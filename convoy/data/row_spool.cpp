// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/row_spool.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "convoy/data/row_formats.h"

namespace convoy::data {
namespace {

constexpr size_t kPendingBytes = size_t{1} << 20;

Descriptor file_without_name(const std::filesystem::path& folder) {
  std::string name = (folder / ".convoy-rows-XXXXXX").string();
  Descriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (!file.open())
    throw IoError(
        fmt::format("could not create a file in {}: {}", folder.string(), std::strerror(errno)),
        {.file = folder.string(), .hint = "check free space and permissions"});
  ::unlink(name.c_str());
  return file;
}

}  // namespace

RowSpool::RowSpool(const std::filesystem::path& folder)
    : folder_(folder),
      file_(file_without_name(folder)),
      compressor_(make_compressor(Compression::Zstd)) {}

void RowSpool::add(const std::string& json) {
  compressor_->add(json, pending_);
  compressor_->add("\n", pending_);
  if (pending_.size() >= kPendingBytes) flush();
}

std::unique_ptr<RowSource> RowSpool::rows() {
  compressor_->finish(pending_);
  flush();
  return open_json_lines(fmt::format("/proc/self/fd/{}", file_.get()));
}

void RowSpool::flush() {
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const ssize_t count = ::write(file_.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0)
      throw IoError(
          fmt::format("could not put rows aside in {}: {}", folder_.string(), std::strerror(errno)),
          {.file = folder_.string(), .hint = "check free space"});
    rest.remove_prefix(static_cast<size_t>(count));
  }
  pending_.clear();
}

}  // namespace convoy::data

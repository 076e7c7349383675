// SPDX-License-Identifier: Apache-2.0
//
// Throws the error of a failed file call: no space, no permission.
#pragma once

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "convoy/core/base/error.h"

namespace convoy::io {

// "could not fsync x/y: No space left on device". `code`: errno.
[[noreturn]] inline void throw_file_failure(const char* what, const std::filesystem::path& path,
                                            int code) {
  const bool unknown_call = code == ENOSYS || code == EOPNOTSUPP || code == EXDEV || code == EINVAL;
  throw IoError(
      fmt::format("could not {} {}: {}", what, path.string(), std::strerror(code)),
      {.file = path.string(),
       .hint = unknown_call ? "this file system does not support that: choose another folder"
                            : "check free space and permissions"});
}

}  // namespace convoy::io

// SPDX-License-Identifier: Apache-2.0
//
// The figures and tables beside results that the page may send: files of a few kinds. A request can
// only name files that result_files() has found, so it cannot read any other file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace convoy::page {

enum class ResultKind { Figure, Table };

struct ResultFile {
  std::string name;  // path below the folder: "figures/sweep.svg"
  ResultKind kind = ResultKind::Figure;
  int64_t size_bytes = 0;
  double changed_seconds = 0;  // since 1970
};

// .svg, .png and .csv in the folder and its direct subfolders, newest first, kMostResultFiles at
// most. Skips symbolic links.
inline constexpr size_t kMostResultFiles = 200;
std::vector<ResultFile> result_files(const std::filesystem::path& folder);

// Returns the bytes of a result file. Empty when `name` is not among result_files(), or larger than
// 16 MiB.
std::optional<std::string> read_result_file(const std::filesystem::path& folder,
                                            const std::string& name);

// The MIME type, such as "image/svg+xml".
std::string_view type_of_result(const std::string& name);

}  // namespace convoy::page

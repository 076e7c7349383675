// SPDX-License-Identifier: Apache-2.0
//
// The figures and tables that lie beside results, as the page may hand them out: files of a few
// kinds, named by what was found, so that no request can name another file.
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
  std::string name;  // below the folder, "figures/sweep.svg"
  ResultKind kind = ResultKind::Figure;
  int64_t size_bytes = 0;
  double changed_seconds = 0;  // since 1970
};

// .svg, .png and .csv in the folder and in the folders directly below it, the newest first,
// kMostResultFiles at most. What is reached by a symbolic link is left out.
inline constexpr size_t kMostResultFiles = 200;
std::vector<ResultFile> result_files(const std::filesystem::path& folder);

// Its bytes. Nothing where `name` is none of result_files(), or larger than 16 MiB.
std::optional<std::string> read_result_file(const std::filesystem::path& folder,
                                            const std::string& name);

// "image/svg+xml".
std::string_view type_of_result(const std::string& name);

}  // namespace convoy::page

// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/sources/output_check.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/sources/dataset.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;

fs::path whole(const fs::path& path) { return fs::weakly_canonical(fs::absolute(path)); }

bool is_same(const fs::path& left, const fs::path& right) {
  std::error_code absent;
  return fs::equivalent(left, right, absent) || whole(left) == whole(right);
}

bool lies_in(const fs::path& file, const fs::path& folder) {
  const fs::path inner = whole(file);
  const fs::path outer = whole(folder);
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

// Position of the brace that closes the brace at `open`; npos when there is none.
size_t end_of_braces(const std::string& pattern, size_t open) {
  int depth = 0;
  for (size_t at = open; at < pattern.size(); ++at) {
    depth += pattern[at] == '{';
    depth -= pattern[at] == '}';
    if (depth == 0) return at;
  }
  return std::string::npos;
}

// The patterns that a pattern with braces stands for, as in glob(3): abd and acd for "a{b,c}d".
std::vector<std::string> without_braces(const std::string& pattern) {
  const size_t open = pattern.find('{');
  const size_t close = open == std::string::npos ? open : end_of_braces(pattern, open);
  if (close == std::string::npos) return {pattern};
  std::vector<std::string> all;
  for (const std::string& choice : listed_names(pattern.substr(open + 1, close - open - 1)))
    for (std::string& plain :
         without_braces(pattern.substr(0, open) + choice + pattern.substr(close + 1)))
      all.push_back(std::move(plain));
  return all;
}

bool fits(const fs::path& file, const std::string& pattern) {
  return ::fnmatch(fs::absolute(pattern).lexically_normal().c_str(),
                   fs::absolute(file).lexically_normal().c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
}

[[noreturn]] void refuse(const fs::path& output, const std::string& why) {
  throw ConfigError(fmt::format("the output {}", why),
                    {.file = output.string(), .hint = "name another output"});
}

}  // namespace

void refuse_outputs_among_inputs(const std::vector<fs::path>& outputs, const std::string& named,
                                 const std::vector<fs::path>& inputs) {
  const std::vector<std::string> parts = listed_names(named);
  for (const fs::path& output : outputs) {
    for (const fs::path& input : inputs)
      if (is_same(output, input))
        refuse(output, "is a file of the data set, which it would replace");
    if (fs::is_directory(named) && lies_in(output, named))
      refuse(output,
             fmt::format("is in the data set's folder {} and would become a part of it", named));
    for (const std::string& part : parts)
      for (const std::string& pattern : without_braces(part))
        if (!fs::exists(part) && fits(output, pattern))
          refuse(output,
                 fmt::format("fits the data set's pattern {} and would become a part of it", part));
  }
}

}  // namespace convoy::data

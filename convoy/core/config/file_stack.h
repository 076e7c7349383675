// SPDX-License-Identifier: Apache-2.0
//
// A configuration file with all files that it includes.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "convoy/core/config/document.h"

namespace convoy::config {

class FileStack {
 public:
  // Files that cannot be read are in errors().
  void load(const std::filesystem::path& path);

  // The contents of the files, from the lowest priority to the highest, without `include` and
  // `preset`.
  const std::vector<Node>& trees() const { return trees_; }
  // The files in the order in which a reader meets them: a file, then the files that it includes.
  const std::vector<std::string>& names() const { return names_; }
  // The preset of the highest file that names one; null when none does.
  const Node* preset() const { return preset_ ? &*preset_ : nullptr; }
  const ErrorList& errors() const { return errors_; }
  // False when nothing was loaded, or there is no such file.
  bool is_here() const { return is_here_; }

 private:
  void load_each(const std::filesystem::path& path, const Node* included_by);
  void read(const std::filesystem::path& path, const Node* included_by);
  Node load_with_place(const std::filesystem::path& path, const Node* included_by);
  void load_includes(const Node& tree, const std::filesystem::path& folder);

  ErrorList errors_;
  bool is_here_ = false;
  std::vector<Node> trees_;
  std::vector<std::string> names_;
  std::vector<std::filesystem::path> open_;
  std::optional<Node> preset_;
  int num_includes_ = 0;
};

}  // namespace convoy::config

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/file_stack.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "convoy/core/base/nearby_files.h"

namespace convoy::config {
namespace {

// The limit exists because two files that include each other twice at each level would take
// exponential time.
constexpr int kMostIncludes = 200;

// The file beside the including file; if there is none, the file in the working directory, as in
// SFT-Play.
std::filesystem::path included_file(const std::filesystem::path& folder, const std::string& name) {
  std::error_code ignored;
  const std::filesystem::path beside = folder / name;
  const bool only_here =
      !std::filesystem::exists(beside, ignored) && std::filesystem::exists(name, ignored);
  return only_here ? std::filesystem::path(name) : beside;
}

}  // namespace

void FileStack::load(const std::filesystem::path& path) {
  std::error_code ignored;
  is_here_ = std::filesystem::exists(path, ignored);
  load_each(path, nullptr);
}

void FileStack::load_each(const std::filesystem::path& path, const Node* included_by) {
  names_.push_back(path.string());
  try {
    read(path, included_by);
  } catch (const ConfigError& error) {
    errors_.add(error);
  }
}

void FileStack::read(const std::filesystem::path& path, const Node* included_by) {
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::weakly_canonical(path, ignored);
  const auto above = std::find(open_.begin(), open_.end(), real);
  if (above != open_.end()) {
    std::string chain;
    for (auto file = above; file != open_.end(); ++file) chain += file->string() + " -> ";
    throw included_by->error("circular include: " + chain + real.string(), "include",
                             "take one of these includes out");
  }
  Node tree = load_with_place(path, included_by);
  open_.push_back(real);
  load_includes(tree, path.parent_path());
  open_.pop_back();
  if (const Node* name = tree.find("preset"); name != nullptr && name->kind != NodeKind::Null)
    preset_ = *name;
  std::erase_if(tree.entries, [](const auto& entry) {
    return entry.first == "include" || entry.first == "preset";
  });
  trees_.push_back(std::move(tree));
}

Node FileStack::load_with_place(const std::filesystem::path& path, const Node* included_by) {
  std::error_code ignored;
  if (included_by != nullptr && !std::filesystem::exists(path, ignored))
    throw included_by->error(fmt::format("include: there is no file {}", path.string()), "include",
                             "the path is relative to this file, or to the working directory; " +
                                 unreadable_file_hint(path, ENOENT));
  return load_yaml(path, &errors_);
}

void FileStack::load_includes(const Node& tree, const std::filesystem::path& folder) {
  const Node* include = tree.find("include");
  if (include == nullptr || include->kind == NodeKind::Null) return;
  const std::vector<Node> one = {*include};
  for (const Node& item : include->kind == NodeKind::List ? include->items : one) {
    if (num_includes_ > kMostIncludes) return;
    if (item.kind != NodeKind::Scalar)
      errors_.add(item.error("include: wanted a file or a list of files", "include",
                             "such as include: [base.yaml, more.yaml]"));
    else if (++num_includes_ > kMostIncludes)
      errors_.add(item.error(fmt::format("more than {} includes", kMostIncludes), "include",
                             "write some of these files into one"));
    else
      load_each(included_file(folder, item.text), &item);
  }
}

}  // namespace convoy::config

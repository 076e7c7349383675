// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/imports.h"

#include <fmt/format.h>

#include <system_error>

namespace convoy::config {

std::string ImportedValue::quoted() const {
  if (written.empty() || written == node.text) return node.text;
  return fmt::format("{} ({} {})", written, path, node.text);
}

std::filesystem::path find_named_file(const Node& value, const std::string& key) {
  namespace fs = std::filesystem;
  if (value.kind != NodeKind::Scalar || value.text.empty())
    throw value.error(fmt::format("{}: wanted the path of a file", key), key,
                      fmt::format("such as {}: FILE", key));
  std::error_code ignored;
  const fs::path named = value.text;
  const fs::path beside = fs::path(value.file).parent_path() / named;
  if (fs::exists(beside, ignored)) return beside;
  if (fs::exists(named, ignored)) return named;
  throw value.error(fmt::format("{}: there is no file {}", key, beside.string()), key,
                    beside == named ? "" : fmt::format("nor {}", fs::absolute(named).string()));
}

}  // namespace convoy::config

// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/manifest.h"

#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "convoy-manifest";
constexpr int64_t kVersion = 1;

fs::path manifest_folder(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// The name of `path` for the manifest. Links are not resolved, because links in the hub cache have
// better names than their targets.
std::string name_in(const fs::path& folder, const fs::path& path) {
  const fs::path whole = fs::absolute(path).lexically_normal();
  const bool is_inside =
      whole.parent_path() == fs::absolute(folder / "x").lexically_normal().parent_path();
  return is_inside ? whole.filename().string() : whole.string();
}

Json json_of(const std::vector<FileRecord>& records, const fs::path& folder) {
  Json list = Json::array();
  for (const FileRecord& record : records)
    list.push_back({{"path", name_in(folder, record.path)},
                    {"bytes", record.bytes},
                    {"rows", record.rows < 0 ? Json() : Json(record.rows)},
                    {"sha256", record.sha256}});
  return list;
}

}  // namespace

FileRecord record_of(const WrittenFile& file) {
  return {file.path.string(), file.bytes, file.rows, file.sha256};
}

FileRecord record_of_file(const fs::path& path, int64_t rows) {
  FileRecord record{
      .path = path.string(), .bytes = 0, .rows = rows, .sha256 = sha256_hex_of_file(path)};
  record.bytes = static_cast<int64_t>(fs::file_size(path));
  return record;
}

fs::path manifest_path(const fs::path& output) {
  fs::path path = output;
  return path += ".manifest.json";
}

fs::path publish_manifest(const fs::path& output, const Manifest& manifest) {
  const fs::path path = manifest_path(output);
  const fs::path folder = manifest_folder(path);
  const Json json = {{"format", kFormat},
                     {"version", kVersion},
                     {"program", fmt::format("convoy {}", CONVOY_VERSION)},
                     {"outputs", json_of(manifest.outputs, folder)},
                     {"rows_by_state", manifest.rows_by_state},
                     {"cost", manifest.cost},
                     {"inputs", json_of(manifest.inputs, folder)},
                     {"configuration", manifest.configuration}};
  write_file_atomic(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
  return path;
}

}  // namespace convoy::data

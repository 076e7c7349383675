// SPDX-License-Identifier: Apache-2.0
#include "convoy/data/datasets/manifest.h"

#include <system_error>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/base/hash.h"
#include "convoy/core/io/json_reader.h"

namespace convoy::data {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "convoy-manifest";
constexpr int64_t kVersion = 1;

fs::path manifest_folder(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Links are kept: those of the hub cache have better names than their targets.
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

std::vector<FileRecord> records_of(const io::JsonReader& manifest, const std::string& key) {
  std::vector<FileRecord> records;
  const Json* const list = manifest.find(key);
  if (list == nullptr || !list->is_array()) manifest.fail(key, "wanted a list of files");
  for (const Json& item : *list) {
    if (!item.is_object()) manifest.fail(key, "wanted a list of objects");
    const io::JsonReader record(item, manifest.place());
    records.push_back({.path = record.require_string("path"),
                       .bytes = record.require_int("bytes", 0, INT64_MAX),
                       .rows = record.int_or("rows", -1, -1, INT64_MAX),
                       .sha256 = record.require_string("sha256")});
  }
  return records;
}

// The fault of the file; empty when there is none.
std::string fault_of(const FileRecord& record, const fs::path& path) {
  std::error_code code;
  const auto bytes = fs::file_size(path, code);
  if (code) return fmt::format("{}: {}", path.string(), code.message());
  if (static_cast<int64_t>(bytes) != record.bytes)
    return fmt::format("{}: has {} bytes, wanted {}", path.string(), bytes, record.bytes);
  const std::string hash = sha256_hex_of_file(path);
  if (hash != record.sha256)
    return fmt::format("{}: its SHA-256 is {}, wanted {}", path.string(), hash, record.sha256);
  return {};
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

Manifest read_manifest(const fs::path& path) {
  const io::JsonReader reader(io::read_json_file(path), path.string());
  if (reader.string_or("format", "") != kFormat)
    throw DataError("the file is no manifest of a run", {.file = path.string()});
  reader.require_int("version", kVersion, kVersion);
  return {.inputs = records_of(reader, "inputs"),
          .outputs = records_of(reader, "outputs"),
          .rows_by_state = reader.require_object("rows_by_state").value(),
          .configuration = reader.require_object("configuration").value(),
          .cost = reader.require_object("cost").value()};
}

std::vector<std::string> verify_manifest(const fs::path& path) {
  const Manifest manifest = read_manifest(path);
  std::vector<std::string> faults;
  for (const auto* records : {&manifest.outputs, &manifest.inputs})
    for (const FileRecord& record : *records)
      if (std::string fault = fault_of(record, manifest_folder(path) / record.path); !fault.empty())
        faults.push_back(std::move(fault));
  return faults;
}

}  // namespace convoy::data

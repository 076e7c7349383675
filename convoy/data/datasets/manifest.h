// SPDX-License-Identifier: Apache-2.0
//
// A record of a run's inputs, outputs and cost, beside its output as OUTPUT.manifest.json. With it
// a user can check that the files are the run's.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/data/datasets/formats/row_writer.h"

namespace convoy::data {

struct FileRecord {
  std::string path;
  int64_t bytes = 0;
  int64_t rows = -1;  // -1 = not counted
  std::string sha256;
};

struct Manifest {
  std::vector<FileRecord> inputs = {};
  std::vector<FileRecord> outputs = {};
  nlohmann::ordered_json rows_by_state =
      nlohmann::ordered_json::object();  // number of outcomes by name: {"ok": 990, "truncated": 10}
  nlohmann::ordered_json configuration = nlohmann::ordered_json::object();
  nlohmann::ordered_json cost =
      nlohmann::ordered_json::object();  // cost in tokens, by stage or in total
};

FileRecord record_of(const WrittenFile& file);
// The record of a file; hashes its content. Throws DataError.
FileRecord record_of_file(const std::filesystem::path& path, int64_t rows = -1);

std::filesystem::path manifest_path(const std::filesystem::path& output);

// Writes the manifest atomically, as the last file of a run: a manifest means that its outputs are
// complete. Outputs in the folder of the manifest are named relative to the folder, so that the
// folder may be moved; all other outputs have absolute paths. Returns the path of the manifest.
// Throws IoError.
std::filesystem::path publish_manifest(const std::filesystem::path& output,
                                       const Manifest& manifest);

}  // namespace convoy::data

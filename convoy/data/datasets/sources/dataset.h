// SPDX-License-Identifier: Apache-2.0
//
// Finds a data set by any kind of name: a file, a folder of shards, a pattern or a list of files, a
// Hugging Face hub id in the local cache, or a short name of the catalog. Never fetches, and never
// substitutes another data set for a missing one.
//
//   const Dataset dataset = find_dataset({.name = "AI-MO/NuminaMath-1.5"});
//   const auto rows = open_dataset(dataset, {.first = 1000, .count = 50});
//   while (const auto row = rows->next()) ...  // row->index over the whole set: 1000, 1001, ...
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convoy/data/datasets/formats/row_source.h"
#include "convoy/data/datasets/sources/dataset_catalog.h"

namespace convoy::data {

struct DatasetRequest {
  // An existing path, or else a name such as "gsm8k", "openai/gsm8k", "data/train-*.jsonl.gz", or
  // "a.jsonl,b.jsonl".
  std::string name = {};
  std::string config = {};        // empty: the catalog's config, the only one, or `default`
  std::string split = {};         // empty: `train`, or the only split
  std::string revision = "main";  // revision on the hub: a branch, a tag or a commit
  TextRows text_rows = TextRows::Document;
};

struct Dataset {
  std::string name;                          // the requested name
  const KnownDataset* known = nullptr;       // catalog entry; nullptr without one
  std::string hub_id;                        // empty for local files
  std::string commit;                        // commit of the hub's snapshot
  std::string config;                        // empty for local files
  std::string split;                         // empty for local files
  std::vector<std::filesystem::path> files;  // in the order of their rows; never empty, all exist
  TextRows text_rows = TextRows::Document;   // how plain text files are read
};

// A local folder with a data set, divided into configs and splits.
struct DatasetFolder {
  std::filesystem::path path;
  std::string hub_id;  // empty for a folder named by its path
  // Commit of a snapshot in the hub cache; empty for any other folder.
  std::string commit;
  // Root of a snapshot, which its links must not leave; empty for any other folder.
  std::filesystem::path repository;
};

// The folder that the name means. Empty when the name means a file, or the folder is not on this
// host. Throws DataError.
std::optional<DatasetFolder> find_dataset_folder(const DatasetRequest& request);

// Splits a name at commas into a list. Commas within braces belong to a pattern.
std::vector<std::string> listed_names(const std::string& name);

// Finds the files of a data set. Throws DataError that says what exists instead, and what to do.
Dataset find_dataset(const DatasetRequest& request);

struct RowRange {
  int64_t first = 0;
  int64_t count = -1;  // -1 = to the end
};

// Reads one file after another. The `index` of a row counts from 0 over all files, wherever the
// range begins. Throws DataError; next() throws it when the data set ends before `first`.
std::unique_ptr<RowSource> open_dataset(const Dataset& dataset, RowRange range = {});

// The command that downloads a data set of the hub into the cache: `convoy data fetch ...`.
std::string dataset_download_hint(const std::string& hub_id, const std::string& revision);

// A hash over the bytes of all files in order; for one file it is the file's SHA-256. Throws
// DataError.
std::string dataset_hash(const Dataset& dataset);

}  // namespace convoy::data

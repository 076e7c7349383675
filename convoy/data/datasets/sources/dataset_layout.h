// SPDX-License-Identifier: Apache-2.0
//
// The configs, splits and files of a folder of shards, in the order of their rows. Read from its
// README.md (dataset_card.h), or from the names, as the Hugging Face hub lays data sets out:
// "data/train-00000-of-00005.parquet", "test.jsonl", "main/train-*", "main/train/0000.parquet".
// Files without a split in their name are all `train`, unless other files name a split.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace convoy::data {

struct DatasetSplit {
  std::string name;  // "train", "validation", "test", or as the card says
  // Natural order; empty when the card names files that are not here.
  std::vector<std::filesystem::path> files;
};

struct DatasetConfig {
  std::string name;  // "default" where nothing names it
  bool is_default = false;
  std::vector<DatasetSplit> splits;
};

// Empty when the folder holds no file of rows. Throws DataError.
std::vector<DatasetConfig> dataset_layout(const std::filesystem::path& folder);

// "train", "validation" or "test" for every usual word ("dev", "val", "eval", ...), else the word
// unchanged.
std::string split_named(const std::string& word);

}  // namespace convoy::data

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
  // In natural order. Empty when the card names files that do not exist here.
  std::vector<std::filesystem::path> files;
};

struct DatasetConfig {
  std::string name;  // "default" when nothing names the config
  bool is_default = false;
  std::vector<DatasetSplit> splits;
};

// The configs of a folder. Empty when the folder has no file of rows. Throws DataError.
std::vector<DatasetConfig> dataset_layout(const std::filesystem::path& folder);

// The name of a split: "train", "validation" or "test" for each of their usual words ("dev", "val",
// "eval", ...), else the word unchanged.
std::string split_named(const std::string& word);

}  // namespace convoy::data

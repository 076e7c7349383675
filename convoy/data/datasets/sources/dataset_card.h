// SPDX-License-Identifier: Apache-2.0
//
// Reads the file list in the head of a data set's README.md: `configs` of the Hugging Face hub.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace convoy::data {

struct CardConfig {
  std::string name;
  bool is_default = false;
  std::string folder;  // data_dir; used when no files are named
  // Pairs of a split and a file pattern, relative to the folder of the card.
  std::vector<std::pair<std::string, std::string>> patterns;
};

// The configs of a card. Empty when there is no card, or it names no files. Throws DataError with
// file and line when the list of files is invalid.
std::vector<CardConfig> read_dataset_card(const std::filesystem::path& folder);

// True when the relative path `file` matches a pattern of a card: '*' matches any characters except
// '/', '**' matches any characters.
bool fits_pattern(const std::string& file, const std::string& pattern);

}  // namespace convoy::data

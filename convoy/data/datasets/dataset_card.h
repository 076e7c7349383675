// SPDX-License-Identifier: Apache-2.0
//
// What the head of a data set's README.md says of its files: `configs` of the Hugging Face hub.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace convoy::data {

struct CardConfig {
  std::string name;
  bool is_default = false;
  std::string folder;  // data_dir, where no files are named
  // Split and pattern of its files, relative to the folder of the card.
  std::vector<std::pair<std::string, std::string>> patterns;
};

// Empty where there is no card, or it names no files. Throws DataError with file and line where its
// list of files cannot be understood.
std::vector<CardConfig> read_dataset_card(const std::filesystem::path& folder);

// Whether `file`, relative, fits a pattern of a card: '*' stands for letters other than '/', '**'
// for any.
bool fits_pattern(const std::string& file, const std::string& pattern);

}  // namespace convoy::data

// SPDX-License-Identifier: Apache-2.0
//
// Runs the built `convoy` in a folder of its own and reads back what it wrote.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "files/temporary_folder.h"

namespace convoy::testing {

struct Outcome {
  int status = -1;
  std::string output;  // stdout and stderr
};

// Environment: CONVOY_BIN_DIR, CONVOY_SOURCE_DIR, CONVOY_TEST_DEVICES (as --devices). One thread
// per rank, for the models are tiny.
class ConvoyProgram {
 public:
  Outcome run(const std::string& arguments) const;
  // The figures that `convoy ARGUMENTS` prints with --json. Throws std::runtime_error if it fails.
  nlohmann::json figures(const std::string& arguments) const;

  // A copy of the model folder `family` of tests/golden/train, with the tokenizer.
  std::filesystem::path model(const std::string& family) const;
  // Trains with `config` (its model, data and output are filled in) and returns the rows of its
  // steps. Throws std::runtime_error if it fails.
  std::vector<nlohmann::json> train(const std::string& name, nlohmann::json config,
                                    const std::string& arguments = "") const;
  // `convoy score`, one object per row. Throws std::runtime_error if it fails.
  std::vector<nlohmann::json> score(const std::string& arguments) const;

  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  std::string require(const std::string& arguments) const;

  TemporaryFolder folder_;
};

std::filesystem::path golden_folder();  // tests/golden/train
std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& file);

}  // namespace convoy::testing

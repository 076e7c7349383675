// SPDX-License-Identifier: Apache-2.0
//
// Runs the built `convoy` in a folder of its own and reads the files that it wrote.
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

// Uses CONVOY_BIN_DIR, CONVOY_SOURCE_DIR and CONVOY_TEST_DEVICES (as --devices) of the environment.
// Ranks have one thread each, because the models are tiny.
class ConvoyProgram {
 public:
  Outcome run(const std::string& arguments) const;
  // Returns the figures that `convoy ARGUMENTS --json` prints. Throws std::runtime_error if the
  // command fails.
  nlohmann::json figures(const std::string& arguments) const;

  // Copies the model folder `family` of tests/golden/train, adds the tokenizer, and returns the
  // copy's path.
  std::filesystem::path model(const std::string& family) const;
  // Trains with `config`, to which the model, the data and the output are added. Returns the rows
  // of the steps. Throws std::runtime_error if training fails.
  std::vector<nlohmann::json> train(const std::string& name, nlohmann::json config,
                                    const std::string& arguments = "") const;
  // Runs `convoy score` and returns one object per row. Throws std::runtime_error if it fails.
  std::vector<nlohmann::json> score(const std::string& arguments) const;

  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

 private:
  std::string require(const std::string& arguments) const;

  TemporaryFolder folder_;
};

std::filesystem::path golden_folder();  // tests/golden/train
std::vector<nlohmann::json> read_json_lines(const std::filesystem::path& file);

}  // namespace convoy::testing

// SPDX-License-Identifier: Apache-2.0
//
// What TRL's trainers of preferences say (tests/golden/preferences), and trainings that see all
// rows of a file in each step, dealt in several ways.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parity/convoy_program.h"

namespace convoy::testing {

// TRL sums log-probabilities in fp32, where the last bit of a sum of -128 or less is this large.
inline constexpr double kLastBit = 1.6e-5;

std::filesystem::path trl_folder();
nlohmann::json read_trl_golden(const std::string& file);

// Allows a difference of 1e-5, relative for figures above 1, and of `beside` more.
void expect_close(double found, double wanted, const std::string& what, double beside = 0);
// The stored tensors have the norms and products that a case has.
void expect_weights(const std::filesystem::path& file, const nlohmann::json& wanted);

// A case, for the model of tests/golden/train: all but its task and its reference.
nlohmann::json trl_config(const ConvoyProgram& convoy, const nlohmann::json& golden,
                          const nlohmann::json& one);
// The file that the training of the case `one` makes, in the folder of the run.
std::string trained_file(const nlohmann::json& one);

struct Layout {
  nlohmann::json parallel;
  int ranks;
  int accumulation;
  bool packed = false;
  bool recomputed = false;
};

// Four steps by `config`, whose file has 24 rows or pairs: each step sees all of them, so that
// blocks and rows make the same global batch.
std::vector<nlohmann::json> train_in_layout(const ConvoyProgram& convoy, const std::string& name,
                                            nlohmann::json config, const Layout& layout);
void expect_same_figures(const std::vector<nlohmann::json>& found,
                         const std::vector<nlohmann::json>& wanted,
                         const std::vector<std::string>& figures, const Layout& layout);

}  // namespace convoy::testing

// SPDX-License-Identifier: Apache-2.0
//
// Has the values of TRL's preference trainers (tests/golden/preferences), and trainings that see
// all rows of a file in each step, in several layouts.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "parity/convoy_program.h"

namespace convoy::testing {

// TRL sums log-probabilities in fp32. For sums of -128 or less, the last bit is this large.
inline constexpr double kLastBit = 1.6e-5;

std::filesystem::path trl_folder();
nlohmann::json read_trl_golden(const std::string& file);

// Allows a difference of 1e-5, which is relative for figures above 1, plus `beside`.
void expect_close(double found, double wanted, const std::string& what, double beside = 0);
// Returns how far TRL's own figure in fp32 may be from the one in fp64 that a case has.
double rounding_of(const nlohmann::json& one, const std::string& figure);
// Expects that the stored tensors have the norms and products of the case.
void expect_weights(const std::filesystem::path& file, const nlohmann::json& one);

// Returns the configuration of a case for the model of tests/golden/train, without its task and its
// reference.
nlohmann::json trl_config(const ConvoyProgram& convoy, const nlohmann::json& golden,
                          const nlohmann::json& one);
// Returns the name of the weight file that training the case `one` writes into the run folder.
std::string trained_file(const nlohmann::json& one);

struct Layout {
  nlohmann::json parallel;
  int ranks;
  int accumulation;
  bool packed = false;
  bool recomputed = false;
};

// Trains four steps by `config`, whose file has 24 rows or pairs. Each step has all of them, so
// blocks and rows form the same global batch.
std::vector<nlohmann::json> train_in_layout(const ConvoyProgram& convoy, const std::string& name,
                                            nlohmann::json config, const Layout& layout);
void expect_same_figures(const std::vector<nlohmann::json>& found,
                         const std::vector<nlohmann::json>& wanted,
                         const std::vector<std::string>& figures, const Layout& layout);

}  // namespace convoy::testing

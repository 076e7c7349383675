// SPDX-License-Identifier: Apache-2.0
//
// A workload for tests of the runner. About one guess in ten is accepted, and its loss is computed
// from its number and the seed. The value of a descent is its seed. Parameters of a cell say how it
// fails.
#pragma once

#include <array>
#include <chrono>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/farm/sweep/workload.h"

namespace convoy::sweep {

class CountingExperiment : public GuessExperiment {
 public:
  CountingExperiment(int64_t seed, uint64_t throws_at) : seed_(seed), throws_at_(throws_at) {}
  Tally run(uint64_t first, uint64_t count) const override {
    Tally tally;
    for (uint64_t guess = first; guess < first + count; ++guess) {
      if (guess == throws_at_) throw NumericError("a bad guess");
      ++tally.guesses;
      const std::array<uint64_t, 2> words = {guess, static_cast<uint64_t>(seed_)};
      const uint64_t word = mix_seed(words);
      if (word % 10 != 0) continue;
      ++tally.accepted;
      const double loss = static_cast<double>(word >> 40) * 0x1p-24;
      tally.loss.add(loss);
      tally.loss_squared.add(loss * loss);
    }
    return tally;
  }
  double expected_rate() const override { return 1e7; }

 private:
  int64_t seed_;
  uint64_t throws_at_;
};

class CountingWorkload : public Workload {
 public:
  std::string name() const override { return "counting"; }
  std::string version() const override { return "1"; }
  std::unique_ptr<GuessExperiment> guesses(const Cell& cell) const override {
    const auto parameters = nlohmann::json::parse(cell.parameters.str());
    std::this_thread::sleep_for(std::chrono::milliseconds(parameters.value("slow_to_make", 0)));
    return std::make_unique<CountingExperiment>(cell.seed,
                                                parameters.value("throws_at", ~uint64_t{0}));
  }
  std::vector<CellOutcome> compute(const std::vector<Cell>& cells) const override {
    std::vector<CellOutcome> outcomes;
    for (const Cell& cell : cells) {
      const auto parameters = nlohmann::json::parse(cell.parameters.str());
      if (parameters.value("memory", false)) throw std::bad_alloc();
      outcomes.push_back({.value = static_cast<double>(cell.seed), .train_loss = 0, .steps = 1});
      if (parameters.value("nan", false)) outcomes.back().value = std::nan("");
    }
    return outcomes;
  }
};

}  // namespace convoy::sweep

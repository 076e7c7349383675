// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_guesses.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "convoy/farm/experiments/ssm/guess_kernels.h"

namespace convoy::experiments {
namespace {

#define CONVOY_INLINE inline __attribute__((always_inline))
#include "convoy/farm/experiments/ssm/guess_arithmetic.inl"

// A vector with one number per guess of a group.
using GroupValues = double __attribute__((vector_size(8 * kGroupGuesses)));
using GroupFloats = float __attribute__((vector_size(4 * kGroupGuesses)));

class SsmGuesses : public sweep::GuessExperiment {
 public:
  SsmGuesses(const SsmProblem& problem, Precision precision, CpuLevel level)
      : problem_(problem), precision_(precision), level_(level), tested_(problem.tested_powers()) {
    const uint32_t all = (1u << problem_.num_powers) - 1;
    test_sums_ = power_sums(level, precision, tested_);
    all_sums_ = power_sums(level, precision, all);
    double scale = 1;
    for (uint32_t at = 0; at < problem_.num_powers; ++at)
      scales_.push_back(scale *= problem_.prior_sd);
  }

  sweep::Tally run(uint64_t first, uint64_t count) const override {
    sweep::Tally tally;
    const uint32_t blocks = num_guess_blocks(problem_.student_dim, precision_);
    for_each_table(first, count, [&](uint64_t from, uint64_t part) {
      const AddressTables tables(problem_.key, Stream::Guess, precision_, from, blocks);
      run_within(tables, from & 0xFFFFFFFFu, part, tally);
    });
    return tally;
  }

  double expected_rate() const override {
    // Normals per second of one core at 3 GHz, measured. Each power adds about a tenth of the time.
    const double exact = level_ == CpuLevel::Avx512 ? 2.1e9
                         : level_ == CpuLevel::Avx2 ? 1.4e9
                                                    : 3e7;
    const double normals = precision_ == Precision::Exact ? exact : 1.6 * exact;
    const double slots = std::ceil(problem_.student_dim / 4.0) * 4 + 4;
    return normals / slots / (0.9 + 0.1 * std::popcount(tested_));
  }

 private:
  void run_within(const AddressTables& tables, uint64_t first, uint64_t count,
                  sweep::Tally& tally) const {
    std::vector<uint32_t> accepted;
    accepted.reserve(kBatch + kGroupGuesses);
    for (uint64_t done = 0; done < count; done += kGroupGuesses) {
      const auto lanes = static_cast<uint32_t>(std::min<uint64_t>(kGroupGuesses, count - done));
      uint32_t guesses[kGroupGuesses];
      for (uint32_t g = 0; g < kGroupGuesses; ++g)
        guesses[g] = static_cast<uint32_t>(first + done) + g;
      const uint32_t passed = test(tables, guesses);
      for (uint32_t g = 0; g < lanes; ++g)
        if ((passed >> g) & 1u) accepted.push_back(guesses[g]);
      if (accepted.size() >= kBatch) {
        add_losses(tables, accepted, tally);
        accepted.clear();
      }
    }
    add_losses(tables, accepted, tally);
    tally.guesses += static_cast<int64_t>(count);
  }

  // Computes s_m for a group. Rows of powers outside `mask` are not changed.
  void residuals(const float* sums, uint32_t mask, GroupValues* s) const {
    for (uint32_t at = 0; at < problem_.num_powers; ++at) {
      if (!((mask >> at) & 1u)) continue;
      GroupFloats row;
      std::memcpy(&row, sums + at * kGroupGuesses, sizeof row);
      const GroupValues wide = __builtin_convertvector(row, GroupValues);
      guess_residual(s[at], wide, scales_[at], problem_.target[at]);
    }
  }

  uint32_t test(const AddressTables& tables, const uint32_t* guesses) const {
    float sums[kMaxGuessPower * kGroupGuesses];
    GroupValues s[kMaxGuessPower];
    test_sums_(tables, problem_.student_dim, guesses, sums);
    residuals(sums, tested_, s);
    GroupValues loss = {};
    for (const auto& row : problem_.rows)
      add_squared_row(loss, row.data(), s, tested_, problem_.num_powers);
    const GroupValues mean = loss / problem_.divisor;
    uint32_t passed = 0;
    for (uint32_t g = 0; g < kGroupGuesses; ++g)
      passed |= static_cast<uint32_t>(mean[g] < problem_.parameters.eps_train) << g;
    return passed;
  }

  // Accepted guesses are rare, so they are computed again with all powers.
  void add_losses(const AddressTables& tables, const std::vector<uint32_t>& accepted,
                  sweep::Tally& tally) const {
    for (size_t from = 0; from < accepted.size(); from += kGroupGuesses) {
      const size_t lanes = std::min<size_t>(kGroupGuesses, accepted.size() - from);
      uint32_t guesses[kGroupGuesses] = {};
      std::copy_n(accepted.begin() + static_cast<std::ptrdiff_t>(from), lanes, guesses);
      float sums[kMaxGuessPower * kGroupGuesses];
      GroupValues s[kMaxGuessPower];
      all_sums_(tables, problem_.student_dim, guesses, sums);
      residuals(sums, ~0u, s);
      GroupValues losses = {};
      add_squares(losses, s, problem_.num_powers);
      for (size_t g = 0; g < lanes; ++g) tally.accept(losses[g]);
    }
  }

  static constexpr size_t kBatch = 1024;

  SsmProblem problem_;
  Precision precision_;
  CpuLevel level_;
  uint32_t tested_;
  PowerSums test_sums_ = nullptr;
  PowerSums all_sums_ = nullptr;
  std::vector<double> scales_;  // prior_sd^m
};

}  // namespace

std::unique_ptr<sweep::GuessExperiment> guess_experiment(const SsmProblem& problem,
                                                         Precision precision, CpuLevel level) {
  return std::make_unique<SsmGuesses>(problem, precision, level);
}

}  // namespace convoy::experiments

// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_guesses.h"

#include <algorithm>
#include <cmath>

#include "convoy/farm/experiments/mf/factor_kernels.h"
#include "convoy/farm/experiments/mf/factor_sizes.h"
#include "convoy/farm/experiments/random/address_tables.h"

namespace convoy::experiments {
namespace {

class MfGuesses : public sweep::GuessExperiment {
 public:
  MfGuesses(const MfProblem& problem, MfCheck check, Precision precision, CpuLevel level)
      : problem_(problem),
        sizes_(factor_sizes(problem, check, precision)),
        precision_(precision),
        level_(level),
        kernel_(factor_kernel(level, precision, problem.parameters.gnc_init())) {}

  sweep::Tally run(uint64_t first, uint64_t count) const override {
    sweep::Tally tally;
    FactorMemory memory(sizes_);
    for_each_table(first, count, [&](uint64_t from, uint64_t part) {
      const AddressTables tables(problem_.key, Stream::Guess, precision_, from, sizes_.num_blocks);
      run_within(tables, from & 0xFFFFFFFFu, part, memory, tally);
    });
    return tally;
  }

  double expected_rate() const override {
    // Weights per second of one core at 3 GHz, measured.
    const double weights = level_ == CpuLevel::Avx512 ? 1.6e9
                           : level_ == CpuLevel::Avx2 ? 8e8
                                                      : 2e7;
    return weights / (sizes_.slots_per_block * (sizes_.num_blocks + 1.0));
  }

 private:
  void run_within(const AddressTables& tables, uint64_t first, uint64_t count, FactorMemory& memory,
                  sweep::Tally& tally) const {
    std::vector<float> y(size_t{problem_.num_entries} * kFactorGuesses + kFactorGuesses);
    float* const aligned = aligned_to_lanes(y.data());
    for (uint64_t done = 0; done < count; done += kFactorGuesses) {
      const uint64_t lanes = std::min<uint64_t>(kFactorGuesses, count - done);
      const uint32_t wanted = (1u << lanes) - 1;
      uint32_t passed =
          wanted & kernel_(sizes_, tables, static_cast<uint32_t>(first + done), memory, aligned);
      for (; passed != 0; passed &= passed - 1)
        tally.accept(loss_of(aligned, static_cast<uint32_t>(__builtin_ctz(passed))));
    }
    tally.guesses += static_cast<int64_t>(count);
  }

  double loss_of(const float* y, uint32_t lane) const {
    return problem_.test_loss(rows_of_guess(sizes_, y, lane).data());
  }

  MfProblem problem_;
  FactorSizes sizes_;
  Precision precision_;
  CpuLevel level_;
  FactorKernel kernel_;
};

}  // namespace

std::vector<double> rows_of_guess(const FactorSizes& sizes, const float* y, uint32_t lane) {
  std::vector<double> rows(size_t{sizes.n_rows} * sizes.n_cols);
  for (uint32_t col = 0; col < sizes.n_cols; ++col)
    for (uint32_t row = 0; row < sizes.n_rows; ++row)
      rows[row * sizes.n_cols + col] =
          double{y[size_t{col * sizes.n_rows + row} * kFactorGuesses + lane]};
  return rows;
}

std::unique_ptr<sweep::GuessExperiment> mf_guess_experiment(const MfProblem& problem, MfCheck check,
                                                            Precision precision, CpuLevel level) {
  return std::make_unique<MfGuesses>(problem, check, precision, level);
}

}  // namespace convoy::experiments

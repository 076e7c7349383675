// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cuda/cuda_factors.h"

#include <algorithm>
#include <string>
#include <vector>

#include "convoy/farm/experiments/cell_fields.h"
#include "convoy/farm/experiments/cuda/factor_launch.h"
#include "convoy/farm/experiments/cuda/guess_memory.h"
#include "convoy/farm/experiments/mf/factor_sizes.h"

namespace convoy::experiments::cuda {
namespace {

// The name of the kernel in factor_kernels.cu for these sizes.
std::string kernel_name(const FactorSizes& sizes, Precision precision) {
  const auto is_paper = [](uint32_t units) { return units == kPaperSide; };
  const std::vector<FactorLayer>& layers = sizes.layers;
  const bool is_paper_matrix = is_paper(sizes.n_rows) && is_paper(sizes.n_cols);
  const bool is_square =
      is_paper_matrix && std::all_of(layers.begin(), layers.end(), [&](const FactorLayer& layer) {
        return is_paper(layer.outputs);
      });
  const bool is_pair =
      is_paper_matrix && layers.size() == 2 && layers[0].outputs % sizes.slots_per_block == 0;
  return fmt::format("mf_{}_{}_{}",
                     is_square ? "square"
                     : is_pair ? "pair"
                               : "any",
                     precision == Precision::Exact ? "exact" : "fast",
                     enumerator_word(sizes.prior, mf_prior_words()));
}

// The number of blocks of threads that run at once. The memory for their matrices is at most 1 GiB.
uint64_t blocks_with_memory(const nvidia::Kernel& kernel, uint64_t block_bytes) {
  constexpr uint64_t kMostBytes = uint64_t{1} << 30;
  return std::clamp<uint64_t>(kMostBytes / block_bytes, 1, kernel.resident_blocks);
}

// Halves the number of blocks until their memory fits on the GPU.
Buffer block_memory(const std::shared_ptr<Device>& device, uint64_t blocks, uint64_t block_bytes) {
  for (;; blocks /= 2) {
    try {
      return Buffer(device, blocks * block_bytes);
    } catch (const nvidia::DeviceMemory&) {
      if (blocks == 1) throw;
    }
  }
}

std::vector<double> one_after_another(const std::vector<std::vector<double>>& matrices) {
  std::vector<double> all;
  for (const std::vector<double>& matrix : matrices)
    all.insert(all.end(), matrix.begin(), matrix.end());
  return all;
}

class CudaFactors : public sweep::GuessExperiment {
 public:
  CudaFactors(const MfProblem& problem, MfCheck check, Precision precision,
              std::shared_ptr<Device> device)
      : problem_(problem),
        sizes_(factor_sizes(problem, check, precision)),
        precision_(precision),
        device_(std::move(device)),
        kernel_(DeviceUse(*device_).kernel(kernel_name(sizes_, precision))),
        block_bytes_(kBlockThreads * sizeof(float) *
                     memory_values(matrix_values(), problem.num_entries)),
        slots_(device_, sizes_.num_blocks * sizeof(SlotWords)),
        layers_(filled(device_, sizes_.layers)),
        rows_(filled(device_, sizes_.rows)),
        coefficients_(filled(device_, sizes_.coefficients)),
        truth_(filled(device_, problem.truth)),
        span_(filled(device_, one_after_another(problem.span))),
        sums_(device_, kSumSlots * sizeof(LossSums)),
        memory_(block_memory(device_, blocks_with_memory(kernel_, block_bytes_), block_bytes_)) {}

  sweep::Tally run(uint64_t first, uint64_t count) const override {
    const DeviceUse use(*device_);
    sweep::Tally tally;
    for_each_table(first, count,
                   [&](uint64_t from, uint64_t part) { run_within(use, from, part, tally); });
    return tally;
  }

  double expected_rate() const override {
    // A multiprocessor executes 128 instructions per clock. Making one weight and using it takes
    // about 36 instructions.
    constexpr double kWeightsPerClock = 0.5 * 128 / 36;
    const double weights = sizes_.slots_per_block * (sizes_.num_blocks + 2.0);
    return device_->multiprocessors() * device_->clock_hertz() * kWeightsPerClock / weights;
  }

  std::string gpu() const override { return device_->name(); }

 private:
  uint32_t matrix_values() const { return sizes_.most_units() * sizes_.n_rows; }

  // Runs guesses whose indices have the same upper 32 bits.
  void run_within(const DeviceUse& use, uint64_t first, uint64_t count, sweep::Tally& tally) const {
    const AddressTables tables(problem_.key, Stream::Guess, precision_, first, sizes_.num_blocks);
    write_slots(use, slots_, tables);
    FactorLaunch launch = launch_of(tables);
    const uint64_t threads = memory_.bytes() / block_bytes_ * kBlockThreads;
    sums_.clear(use);
    for (uint64_t done = 0; done < count; done += launch.num_guesses) {
      launch.first_guess = static_cast<uint32_t>(first + done);
      launch.num_guesses = static_cast<uint32_t>(std::min<uint64_t>(kMostGuesses, count - done));
      use.launch(kernel_, std::min<uint64_t>(threads, launch.num_guesses), &launch);
    }
    tally.guesses += static_cast<int64_t>(count);
    add_to_tally(use, sums_, tally);
  }

  FactorLaunch launch_of(const AddressConstants& address) const {
    FactorLaunch launch;
    launch.address = address;
    launch.slots = slots_.as<const SlotWords>();
    launch.layers = layers_.as<const FactorLayer>();
    launch.num_layers = static_cast<uint32_t>(sizes_.layers.size());
    launch.n_rows = sizes_.n_rows;
    launch.n_cols = sizes_.n_cols;
    launch.activation = sizes_.activation;
    launch.negative_slope = sizes_.negative_slope;
    launch.normalize = sizes_.normalize ? 1 : 0;
    launch.softening = sizes_.softening;
    launch.num_rows = static_cast<uint32_t>(sizes_.rows.size());
    launch.rows = rows_.as<const CheckRow>();
    launch.coefficients = coefficients_.as<const float>();
    launch.limit = sizes_.limit;
    launch.num_span = static_cast<uint32_t>(problem_.span.size());
    launch.num_tested = problem_.num_tested;
    launch.truth = truth_.as<const double>();
    launch.span = span_.as<const double>();
    launch.memory = memory_.as<float>();
    launch.matrix_values = matrix_values();
    launch.sums = sums_.as<LossSums>();
    return launch;
  }

  MfProblem problem_;
  FactorSizes sizes_;
  Precision precision_;
  std::shared_ptr<Device> device_;
  const nvidia::Kernel& kernel_;
  uint64_t block_bytes_;
  Buffer slots_, layers_, rows_, coefficients_, truth_, span_, sums_, memory_;
};

}  // namespace

std::unique_ptr<sweep::GuessExperiment> mf_guess_experiment(const MfProblem& problem, MfCheck check,
                                                            Precision precision,
                                                            std::shared_ptr<Device> device) {
  return std::make_unique<CudaFactors>(problem, check, precision, std::move(device));
}

}  // namespace convoy::experiments::cuda

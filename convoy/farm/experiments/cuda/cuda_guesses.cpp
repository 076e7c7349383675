// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/cuda/cuda_guesses.h"

#include <algorithm>
#include <vector>

#include "convoy/farm/experiments/cuda/guess_launch.h"
#include "convoy/farm/experiments/cuda/guess_memory.h"
#include "convoy/farm/experiments/random/address_tables.h"
#include "convoy/farm/experiments/ssm/guess_kernels.h"

namespace convoy::experiments::cuda {
namespace {

static_assert(kLaunchPowers == kMaxGuessPower);

std::string kernel_name(const char* job, Precision precision, uint32_t powers) {
  return fmt::format("ssm_{}_{}_{}", job, precision == Precision::Exact ? "exact" : "fast",
                     powers_of_kernel(powers));
}

// The buffer for the indices of accepted guesses: its size is halved until it fits on the GPU.
Buffer buffer_for_accepted(const std::shared_ptr<Device>& device) {
  for (uint32_t guesses = kMostGuesses;; guesses /= 2) {
    try {
      return Buffer(device, size_t{guesses} * sizeof(uint32_t));
    } catch (const nvidia::DeviceMemory&) {
      if (guesses <= kLeastGuesses) throw;
    }
  }
}

class CudaGuesses : public sweep::GuessExperiment {
 public:
  CudaGuesses(const SsmProblem& problem, Precision precision, std::shared_ptr<Device> device)
      : problem_(problem),
        precision_(precision),
        device_(std::move(device)),
        tested_(problem.tested_powers()),
        num_blocks_(num_guess_blocks(problem.student_dim, precision)),
        test_(DeviceUse(*device_).kernel(kernel_name("test", precision, tested_))),
        losses_(DeviceUse(*device_).kernel(
            kernel_name("losses", precision, (1u << problem.num_powers) - 1))),
        slots_(device_, num_blocks_ * sizeof(SlotWords)),
        rows_(device_, std::max<size_t>(1, problem.rows.size()) * kLaunchPowers * sizeof(double)),
        num_accepted_(device_, sizeof(uint32_t)),
        sums_(device_, kSumSlots * sizeof(LossSums)),
        accepted_(buffer_for_accepted(device_)) {
    std::vector<double> rows;
    for (const auto& row : problem_.rows) {
      rows.insert(rows.end(), row.begin(), row.end());
      rows.resize((rows.size() + kLaunchPowers - 1) / kLaunchPowers * kLaunchPowers);
    }
    rows_.write(DeviceUse(*device_), rows.data(), rows.size() * sizeof(double));
  }

  sweep::Tally run(uint64_t first, uint64_t count) const override {
    const DeviceUse use(*device_);
    sweep::Tally tally;
    for_each_table(first, count,
                   [&](uint64_t from, uint64_t part) { run_within(use, from, part, tally); });
    return tally;
  }

  double expected_rate() const override {
    // A multiprocessor executes 128 instructions per clock. Making one normal and its powers takes
    // about 36 instructions.
    constexpr double kNormalsPerClock = 0.5 * 128 / 36;
    const double slots = problem_.student_dim + 8.0;
    return device_->multiprocessors() * device_->clock_hertz() * kNormalsPerClock / slots;
  }

  std::string gpu() const override { return device_->name(); }

 private:
  // Runs guesses whose indices have the same upper 32 bits.
  void run_within(const DeviceUse& use, uint64_t first, uint64_t count, sweep::Tally& tally) const {
    GuessLaunch launch = launch_of(use, first);
    const uint64_t most = accepted_.bytes() / sizeof(uint32_t);
    sums_.clear(use);
    for (uint64_t done = 0; done < count; done += launch.num_guesses) {
      launch.first_guess = static_cast<uint32_t>(first + done);
      launch.num_guesses = static_cast<uint32_t>(std::min(most, count - done));
      num_accepted_.clear(use);
      use.launch(test_, launch.num_guesses, &launch);
      use.launch(losses_, launch.num_guesses, &launch);
    }
    tally.guesses += static_cast<int64_t>(count);
    add_to_tally(use, sums_, tally);
  }

  GuessLaunch launch_of(const DeviceUse& use, uint64_t first) const {
    const AddressTables tables(problem_.key, Stream::Guess, precision_, first, num_blocks_);
    write_slots(use, slots_, tables);
    GuessLaunch launch;
    launch.address = tables;
    launch.slots = slots_.as<const SlotWords>();
    launch.num_slots = problem_.student_dim;
    launch.tested = tested_;
    launch.num_powers = problem_.num_powers;
    launch.num_rows = static_cast<uint32_t>(problem_.rows.size());
    double scale = 1;
    for (uint32_t at = 0; at < problem_.num_powers; ++at) {
      launch.scales[at] = scale *= problem_.prior_sd;
      launch.targets[at] = problem_.target[at];
    }
    launch.rows = rows_.as<const double>();
    launch.divisor = problem_.divisor;
    launch.eps_train = problem_.parameters.eps_train;
    launch.accepted = accepted_.as<uint32_t>();
    launch.num_accepted = num_accepted_.as<uint32_t>();
    launch.sums = sums_.as<LossSums>();
    return launch;
  }

  SsmProblem problem_;
  Precision precision_;
  std::shared_ptr<Device> device_;
  uint32_t tested_;
  uint32_t num_blocks_;
  const nvidia::Kernel& test_;
  const nvidia::Kernel& losses_;
  Buffer slots_, rows_, num_accepted_, sums_, accepted_;
};

}  // namespace

std::unique_ptr<sweep::GuessExperiment> guess_experiment(const SsmProblem& problem,
                                                         Precision precision,
                                                         std::shared_ptr<Device> device) {
  return std::make_unique<CudaGuesses>(problem, precision, std::move(device));
}

}  // namespace convoy::experiments::cuda

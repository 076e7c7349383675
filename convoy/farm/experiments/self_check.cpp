// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/self_check.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/farm/experiments/ball/ball_workload.h"
#include "convoy/farm/experiments/mf/mf_flags.h"
#include "convoy/farm/experiments/mf/mf_workload.h"
#include "convoy/farm/experiments/random/numbers.h"
#include "convoy/farm/experiments/ssm/ssm_flags.h"
#include "convoy/farm/experiments/ssm/ssm_workload.h"

namespace convoy::experiments {
namespace {

using sweep::Cell;
using sweep::Tally;
using sweep::Workload;

// A deviation this large happens by chance once in 2 million checks.
constexpr double kMostSigmas = 5;

struct Verdict {
  bool passed = false;
  std::string detail;
};

// The cells of published runs: seed 0 has w = (1, 0, 0, 0), seed 3 has w = (1, 1, 1, 1).
std::vector<Cell> published_cells(std::vector<int64_t> dims, std::vector<int64_t> seeds,
                                  bool descents) {
  SsmFlags flags;
  flags.apply_preset("published");
  flags.student_dims = std::move(dims);
  flags.seeds = std::move(seeds);
  flags.gnc = !descents;
  flags.gd = descents;
  std::vector<Cell> cells;
  for (const sweep::PlannedCell& planned : plan_ssm(flags).cells) cells.push_back(planned.cell);
  return cells;
}

std::vector<Cell> factor_cells(const std::string& activation, std::vector<int64_t> widths,
                               int64_t depth, bool descents) {
  MfFlags flags;
  flags.common.activation_word = activation;
  flags.widths = std::move(widths);
  flags.depth = depth;
  flags.seeds = {0};
  flags.gnc = !descents;
  flags.gd = descents;
  flags.prior = false;
  flags.common.gnc_eps_train = 0.05;  // so that some of a few thousand guesses pass
  flags.common.descent.epochs = 2'000;
  std::vector<Cell> cells;
  for (const sweep::PlannedCell& planned : plan_mf(flags).cells) cells.push_back(planned.cell);
  return cells;
}

// Compares with tests/kat_vectors of Random123 1.14.
Verdict check_philox() {
  const PhiloxWords pi = {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
  const bool right =
      philox4x32({}, {0, 0}, 10) == PhiloxWords{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8} &&
      philox4x32(pi, {0xa4093822, 0x299f31d0}, 10) ==
          PhiloxWords{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  return {right, "known answers of Random123"};
}

Verdict check_normals() {
  constexpr uint32_t kSlots = 150;
  constexpr uint64_t kGuesses = 16'000;
  std::vector<float> tile(kSlots * kTileGuesses), wanted(tile.size());
  double sum = 0, squares = 0, fourth = 0, count = 0;
  for (const Precision precision : {Precision::Exact, Precision::Fast})
    for (uint64_t guess = 0; guess < kGuesses; guess += kTileGuesses) {
      const Address address{stream_key(0, 1), Stream::Guess, precision, guess};
      fill_normal_tile(address, kSlots, wanted.data(), CpuLevel::Scalar);
      for (const CpuLevel level : usable_cpu_levels()) {
        fill_normal_tile(address, kSlots, tile.data(), level);
        if (tile != wanted)
          return {false, fmt::format("{} differs from plain code", cpu_level_name(level))};
      }
      for (const float one : wanted) {
        const double square = static_cast<double>(one) * static_cast<double>(one);
        sum += static_cast<double>(one);
        squares += square;
        fourth += square * square;
      }
      count += static_cast<double>(wanted.size());
    }
  const double mean = sum / count, variance = squares / count, kurtosis = fourth / count;
  const bool right = std::abs(mean) < kMostSigmas / std::sqrt(count) &&
                     std::abs(variance - 1) < kMostSigmas * std::sqrt(2 / count) &&
                     std::abs(kurtosis - 3) < kMostSigmas * std::sqrt(96 / count);
  return {right, fmt::format("{:.1f} million: mean {:.1e}, variance {:.5f}, fourth moment {:.4f}",
                             count * 1e-6, mean, variance, kurtosis)};
}

Verdict near(const std::string& what, double found, double wanted, double error) {
  return {std::abs(found - wanted) <= kMostSigmas * error,
          fmt::format("{} {:.5g}, wanted {:.5g}, {:+.1f} standard errors", what, found, wanted,
                      (found - wanted) / error)};
}

Verdict both(const Verdict& left, const Verdict& right) {
  return {left.passed && right.passed, left.detail + "; " + right.detail};
}

// Compares with the published run of 1e9 guesses at dimension 150. The accepted share of seed 0 is
// exact.
Verdict check_published(int64_t seed, double share, double loss) {
  constexpr double kGuesses = 2e6;
  const SsmWorkload workload;
  const Cell cell = published_cells({150}, {seed}, false).front();
  const Tally tally = workload.guesses(cell)->run(0, static_cast<uint64_t>(kGuesses));
  return both(near("passed", static_cast<double>(tally.accepted) / kGuesses, share,
                   std::sqrt(share * (1 - share) / kGuesses)),
              near("loss", tally.mean(), loss, std::hypot(tally.standard_error(), 4e-4)));
}

// Runs Adam from 16 starts. Over 64 starts the mean loss is .0740 and its deviation .0009.
Verdict check_descents() {
  std::vector<Cell> cells = published_cells({150}, {0}, true);
  for (int64_t start = 1; start < 16; ++start) {
    cells.push_back(cells.front());
    cells.back().seed = 4 * start;  // a different start on the same data
  }
  double sum = 0;
  for (const sweep::CellOutcome& outcome : SsmWorkload().compute(cells)) sum += outcome.value;
  return near("mean loss", sum / 16, .0740,
              .0009 * std::hypot(1 / std::sqrt(16), 1 / std::sqrt(64)));
}

Verdict check_balls() {
  const BallWorkload workload;
  Verdict verdict{true, ""};
  for (const int64_t dim : {2, 3, 4}) {
    const Cell cell{
        .method = "points", .seed = 5, .parameters = fmt::format(R"({{"dim":{}}})", dim)};
    const Tally tally = workload.guesses(cell)->run(0, 1'000'000);
    const Verdict one = near(fmt::format("{} dimensions", dim), tally.mean(),
                             workload.reference(cell).curve, tally.standard_error());
    verdict = verdict.detail.empty() ? one : both(verdict, one);
  }
  return verdict;
}

// Compares guesses without the check with the closed form of their mean loss.
Verdict check_prior() {
  const MfWorkload workload;
  Cell cell = factor_cells("Linear", {10}, 2, false).front();
  const double exact = workload.reference(cell).prior_mean;
  cell.method = "prior";
  const Tally tally = workload.guesses(cell)->run(0, 500'000);
  return near("mean loss", tally.mean(), exact, tally.standard_error());
}

std::vector<Cell> cells_for_bits() {
  std::vector<Cell> cells = published_cells({3, 16, 150}, {0, 1, 3}, false);
  for (const char* const activation : {"Linear", "Tanh", "LeakyReLU"})
    for (const int64_t depth : {2, 3})
      for (Cell& cell : factor_cells(activation, {5, 20}, depth, false))
        cells.push_back(std::move(cell));
  return cells;
}

struct Workloads {
  std::unique_ptr<Workload> ssm, mf;
  const Workload& of(const Cell& cell) const {
    return cell.parameters.str().find("student_dim") == std::string::npos ? *mf : *ssm;
  }
};

Workloads workloads_at(Precision precision, CpuLevel level,
                       const std::shared_ptr<cuda::Device>& gpu = nullptr) {
  return {.ssm = std::make_unique<SsmWorkload>(precision, level, gpu),
          .mf = std::make_unique<MfWorkload>(precision, level, gpu)};
}

std::string difference(const Cell& cell, const Tally& found, const Tally& wanted) {
  return fmt::format("{} seed {}: {} instead of {}", cell.parameters.str(), cell.seed, found.json(),
                     wanted.json());
}

// Compares the sums, which are integers, of the same guesses at several levels.
Verdict check_guess_bits(const Workloads& workloads, Precision precision, uint64_t guesses) {
  const Workloads plain = workloads_at(precision, CpuLevel::Scalar);
  int64_t accepted = 0;
  const std::vector<Cell> cells = cells_for_bits();
  for (const Cell& cell : cells) {
    const Tally wanted = plain.of(cell).guesses(cell)->run(1'000, guesses);
    const Tally found = workloads.of(cell).guesses(cell)->run(1'000, guesses);
    if (found != wanted) return {false, difference(cell, found, wanted)};
    accepted += wanted.accepted;
  }
  return {accepted > 0, fmt::format("{} guesses of each of {}, {} passed", guesses,
                                    counted(std::ssize(cells), "cell"), accepted)};
}

Verdict check_split() {
  const Workloads workloads = workloads_at(Precision::Exact, best_cpu_level());
  constexpr uint64_t kGuesses = 100'003;
  for (const Cell& cell : cells_for_bits()) {
    const auto experiment = workloads.of(cell).guesses(cell);
    const Tally whole = experiment->run(0, kGuesses);
    Tally sum;
    for (uint64_t first = 0; first < kGuesses; first += 14'287)
      sum.merge(experiment->run(first, std::min<uint64_t>(14'287, kGuesses - first)));
    if (sum != whole) return {false, difference(cell, sum, whole)};
  }
  return {true, "one range and seven"};
}

Verdict check_descent_bits(const std::shared_ptr<cuda::Device>& gpu) {
  std::vector<Cell> ssm = published_cells({16, 150}, {0, 3}, true);
  const std::vector<Cell> mf = factor_cells("LeakyReLU", {5, 20}, 3, true);
  const Workloads cpu = workloads_at(Precision::Exact, best_cpu_level());
  const Workloads other = workloads_at(Precision::Exact, best_cpu_level(), gpu);
  for (const auto& [cells, wanted, found] :
       {std::tuple(ssm, cpu.ssm->compute(ssm), other.ssm->compute(ssm)),
        std::tuple(mf, cpu.mf->compute(mf), other.mf->compute(mf))})
    for (size_t at = 0; at < cells.size(); ++at)
      if (found[at].value != wanted[at].value || found[at].train_loss != wanted[at].train_loss)
        return {false, fmt::format("{} seed {}: {} instead of {}", cells[at].parameters.str(),
                                   cells[at].seed, found[at].value, wanted[at].value)};
  return {true, counted(std::ssize(ssm) + std::ssize(mf), "descent")};
}

class Checks {
 public:
  explicit Checks(const std::function<void(const CheckOutcome&)>& tell) : tell_(tell) {}

  void run(const std::string& name, const std::function<Verdict()>& check) {
    const auto begin = std::chrono::steady_clock::now();
    const Verdict verdict = check();
    const double seconds = seconds_since(begin);
    outcomes_.push_back({name, verdict.passed, verdict.detail, seconds});
    tell_(outcomes_.back());
  }
  std::vector<CheckOutcome> outcomes() && { return std::move(outcomes_); }

 private:
  const std::function<void(const CheckOutcome&)>& tell_;
  std::vector<CheckOutcome> outcomes_;
};

}  // namespace

std::vector<CheckOutcome> self_check(const std::vector<std::shared_ptr<cuda::Device>>& gpus,
                                     const std::function<void(const CheckOutcome&)>& tell) {
  constexpr uint64_t kOfCpu = 20'000, kOfGpu = 200'000;
  Checks checks(tell);
  checks.run("random words", check_philox);
  checks.run("normals", check_normals);
  checks.run("ssm, w = (1, 0, 0, 0)", [] { return check_published(0, 2.226654e-3, .58366); });
  checks.run("ssm, w = (1, 1, 1, 1)", [] { return check_published(3, 2.452872e-3, .92376); });
  checks.run("ssm, descents", check_descents);
  checks.run("mf, mean of the prior", check_prior);
  checks.run("volumes of balls", check_balls);
  checks.run("bits of every split", check_split);
  for (const Precision precision : {Precision::Exact, Precision::Fast}) {
    const char* const mode = precision == Precision::Exact ? "exact" : "fast";
    for (const CpuLevel level : usable_cpu_levels())
      if (level != CpuLevel::Scalar)
        checks.run(fmt::format("bits of {}, {}", cpu_level_name(level), mode), [&] {
          return check_guess_bits(workloads_at(precision, level), precision, kOfCpu);
        });
    for (const auto& gpu : gpus)
      checks.run(fmt::format("bits of {}, {}", gpu->name(), mode), [&] {
        return check_guess_bits(workloads_at(precision, best_cpu_level(), gpu), precision, kOfGpu);
      });
  }
  for (const auto& gpu : gpus)
    checks.run(fmt::format("descents of {}", gpu->name()), [&] { return check_descent_bits(gpu); });
  return std::move(checks).outcomes();
}

}  // namespace convoy::experiments

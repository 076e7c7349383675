// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ball/ball_workload.h"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>
#include <span>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/cell_fields.h"
#include "convoy/farm/experiments/random/numbers.h"

namespace convoy::experiments {
namespace {

// Increased by every change that alters the numbers of a cell.
constexpr int kBallNumbersVersion = 1;

struct BallParameters {
  int64_t dim = 2;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dim", dim, "dimension of the ball").at_least(1).at_most(BallFlags::kMostDims);
  }
};

BallParameters ball_of(const sweep::Cell& cell) {
  BallParameters parameters;
  read_cell(cell.parameters, "ball", {.list = config::list_fields(parameters)});
  return parameters;
}

// Every random point counts. Its value is 2^dim (the volume of the cube) inside the ball and 0
// outside, so the mean value is the ball's volume.
class BallPoints : public sweep::GuessExperiment {
 public:
  BallPoints(int64_t dim, int64_t seed)
      : dim_(static_cast<size_t>(dim)), key_(stream_key(0, seed)) {}

  sweep::Tally run(uint64_t first, uint64_t count) const override {
    const double cube = std::exp2(static_cast<double>(dim_));
    sweep::Tally tally;
    for (uint64_t guess = first; guess < first + count; ++guess) {
      const double volume = is_inside(guess) ? cube : 0;
      ++tally.guesses;
      ++tally.accepted;
      tally.loss.add(volume);
      tally.loss_squared.add(volume * volume);
    }
    return tally;
  }
  double expected_rate() const override { return 2e7 / static_cast<double>(dim_); }

 private:
  bool is_inside(uint64_t guess) const {
    std::array<float, BallFlags::kMostDims> point = {};
    fill_uniforms({.key = key_, .guess = guess}, 0, std::span(point).first(dim_));
    double square = 0;
    for (size_t at = 0; at < dim_; ++at)
      square += static_cast<double>(point[at]) * static_cast<double>(point[at]);
    return square < 1;
  }

  size_t dim_;
  PhiloxKey key_;
};

class BallWorkloadFlags : public WorkloadFlagsOf<BallFlags> {
 public:
  sweep::SweepPlan plan() const override { return plan_ball(flags_); }
  std::vector<sweep::NamedFile> tables(const sweep::SweepResults&) const override { return {}; }
};

}  // namespace

sweep::SweepPlan plan_ball(const BallFlags& flags) {
  sweep::check_distinct(flags.dims, "dims");
  sweep::check_cell_count(
      static_cast<double>(flags.dims.size()) *
      static_cast<double>(sweep::num_chosen_seeds(flags.seeds, flags.num_seeds)));
  sweep::SweepPlan plan{.label = "ball",
                        .workload = "ball",
                        .mode = "",
                        .version = BallWorkload().version(),
                        .cells = {}};
  const std::vector<int64_t> seeds = seeds_of(flags, 0);
  for (const int64_t dim : flags.dims)
    for (const int64_t seed : seeds) {
      sweep::PlannedCell planned;
      planned.cell = {
          .method = "points", .seed = seed, .parameters = nlohmann::json{{"dim", dim}}.dump()};
      planned.guesses = flags.num_points;
      planned.stop.standard_error = flags.target_standard_error;
      planned.priority = dim;
      plan.cells.push_back(std::move(planned));
    }
  return plan;
}

std::string BallWorkload::version() const {
  return fmt::format("{}-layout{}", kBallNumbersVersion, kRandomLayout);
}

std::unique_ptr<sweep::GuessExperiment> BallWorkload::guesses(const sweep::Cell& cell) const {
  return std::make_unique<BallPoints>(ball_of(cell).dim, cell.seed);
}

std::vector<sweep::CellOutcome> BallWorkload::compute(const std::vector<sweep::Cell>& cells) const {
  if (!cells.empty())
    throw ConfigError(
        fmt::format("workload ball has points only, found method `{}`", cells.front().method),
        {.hint = "leave descents out: this workload guesses points"});
  return {};
}

sweep::ReferenceCurve BallWorkload::reference(const sweep::Cell& cell) const {
  const double half = static_cast<double>(ball_of(cell).dim) / 2;
  return {.curve = std::pow(std::numbers::pi, half) / std::tgamma(half + 1)};
}

WorkloadKind ball_kind() {
  return {.name = "ball",
          .summary = "Sweep volumes of balls: a quick check",
          .usage = "convoy sweep ball [flags]",
          .example = "convoy sweep ball --dims 2 3 --num-seeds 2 --num-points 1e6",
          .first_flags = {"dims", "num-seeds", "seeds", "num-points", "workers", "results-dir",
                          "dry-run"},
          .flags = []() -> std::unique_ptr<WorkloadFlags> {
            return std::make_unique<BallWorkloadFlags>();
          },
          .fields = default_fields<BallFlags>,
          .make = [](const std::string&, std::shared_ptr<cuda::Device>)
              -> std::unique_ptr<sweep::Workload> { return std::make_unique<BallWorkload>(); }};
}

}  // namespace convoy::experiments

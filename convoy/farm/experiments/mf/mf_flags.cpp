// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/mf/mf_flags.h"

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/farm/experiments/cell_fields.h"
#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "convoy/farm/experiments/mf/mf_table.h"
#include "convoy/farm/experiments/mf/mf_theory.h"
#include "convoy/farm/experiments/mf/mf_workload.h"
#include "convoy/farm/experiments/random/stream.h"

namespace convoy::experiments {
namespace {

constexpr int64_t kDefaultWidth = 5, kDefaultDepth = 2;

std::vector<int64_t> axis_of(const MfFlags& flags) {
  if (flags.over_depths()) return flags.depths;
  return flags.widths.empty() ? std::vector<int64_t>{5, 10, 20, 40, 80, 160} : flags.widths;
}

// The entry for one place of the axis. A list of one entry holds for every place.
double entry_of(const std::vector<double>& list, size_t place, size_t count, const char* key) {
  if (list.size() == 1) return list[0];
  if (list.size() < count)
    throw ConfigError(fmt::format("{}: wanted 1 entry, or one for each of the {} values of the "
                                  "axis, found {}",
                                  key, count, list.size()),
                      {.key = key});
  return list[place];
}

MfShortcut shortcut_of(const MfFlags& flags, const MfParameters& parameters) {
  if (flags.shortcut != "auto")
    return enumerator_of<MfShortcut>(flags.shortcut, mf_shortcut_words());
  for (const auto best : {MfShortcut::Bartlett, MfShortcut::Gram})
    if (shortcut_refusal(parameters, best).empty()) return best;
  return MfShortcut::None;
}

// The common parameters, without the parameters that only guesses or only descents use.
MfParameters problem_parameters(const MfFlags& flags) {
  const MfParameters defaults;
  MfParameters problem = flags.common;
  if (problem.activation() != MfActivation::LeakyReLU)
    problem.negative_slope = defaults.negative_slope;
  problem.gnc_eps_train = defaults.gnc_eps_train;
  problem.gnc_init_word = defaults.gnc_init_word;
  problem.gnc_normalize = defaults.gnc_normalize;
  problem.gnc_softening = defaults.gnc_softening;
  problem.descent = defaults.descent;
  return problem;
}

MfParameters guess_parameters(const MfFlags& flags, MfParameters parameters) {
  parameters.gnc_eps_train = flags.common.gnc_eps_train;
  parameters.gnc_init_word = flags.common.gnc_init_word;
  parameters.gnc_normalize = flags.common.gnc_normalize;
  if (parameters.gnc_normalize) parameters.gnc_softening = flags.common.gnc_softening;
  parameters.shortcut_word = enumerator_word(shortcut_of(flags, parameters), mf_shortcut_words());
  return parameters;
}

MfDescent descent_of(const MfFlags& flags, size_t place, size_t count) {
  MfDescent descent = flags.common.descent;
  descent.lr = entry_of(flags.gd_lrs, place, count, "gd_lrs");
  descent.init_scale = entry_of(flags.gd_init_scales, place, count, "gd_init_scales");
  return descent;
}

// Parameters that tables and file names contain are written even if they equal their defaults.
sweep::PlannedCell planned_cell(const std::string& method, const MfParameters& parameters) {
  parameters.check();
  auto object = nlohmann::json::parse(parameters.json());
  object["width"] = parameters.width;
  object["depth"] = parameters.depth;
  object["gt_rank"] = parameters.gt_rank;
  object["activation"] = enumerator_word(parameters.activation(), mf_activation_words());
  object["num_measurements"] = parameters.num_measurements;
  if (method != "gd") object["gnc_init"] = parameters.gnc_init_word;
  if (method == "gnc") object["gnc_eps_train"] = parameters.gnc_eps_train;
  if (method == "gnc") object["shortcut"] = parameters.shortcut_word;
  sweep::PlannedCell planned;
  planned.cell = {.method = method, .parameters = object.dump()};
  planned.priority = parameters.width * parameters.depth;
  return planned;
}

// The cells of one value of the axis. Between seeds they differ only in the seed.
std::vector<sweep::PlannedCell> cells_of_value(const MfFlags& flags, const MfParameters& common,
                                               const MfDescent& descent) {
  std::vector<sweep::PlannedCell> cells;
  if (flags.gnc) {
    MfParameters parameters = guess_parameters(flags, common);
    cells.push_back(planned_cell("gnc", parameters));
    cells.back().guesses = flags.gnc_num_samples;
    cells.back().stop = {.standard_error = flags.target_standard_error,
                         .accepted = flags.target_accepted};
    if (flags.prior && !flags.over_depths() && !has_exact_prior_mean(parameters)) {
      parameters.gnc_eps_train = MfParameters{}.gnc_eps_train;
      cells.push_back(planned_cell("prior", parameters));
      cells.back().guesses = MfFlags::kPriorGuesses;
    }
  }
  if (!flags.gd) return cells;
  MfParameters parameters = common;
  parameters.descent = descent;
  cells.push_back(planned_cell("gd", parameters));
  return cells;
}

std::string too_long(const char* key, size_t entries, size_t values) {
  return fmt::format(
      "{} has {} entries for {} values of the axis: those after the first {} are "
      "ignored",
      key, entries, values, values);
}

}  // namespace

std::vector<std::string> MfFlags::notices() const {
  std::vector<std::string> lines;
  const size_t count = axis_of(*this).size();
  if (!gnc_batch_sizes.empty()) {
    const bool extra = gnc_batch_sizes.size() > 1 && gnc_batch_sizes.size() != count;
    lines.push_back(fmt::format(
        "gnc_batch_sizes is ignored: no result depends on batches{}",
        extra ? fmt::format(" ({} entries for {} values of the axis are read and ignored)",
                            gnc_batch_sizes.size(), count)
              : ""));
  }
  if (gd_lrs.size() > 1 && gd_lrs.size() > count)
    lines.push_back(too_long("gd_lrs", gd_lrs.size(), count));
  if (gd_init_scales.size() > 1 && gd_init_scales.size() > count)
    lines.push_back(too_long("gd_init_scales", gd_init_scales.size(), count));
  if (gd_verbose || gd_print_period != kPrintPeriod)
    lines.emplace_back("gd_verbose and gd_print_period are ignored: descents print nothing");
  if (!over_depths() && !width.is_auto())
    lines.emplace_back("width is ignored when widths is given");
  if (over_depths() && !depth.is_auto())
    lines.emplace_back("depth is ignored when depths is given");
  return lines;
}

sweep::SweepPlan plan_mf(const MfFlags& flags) {
  if (!flags.gnc && !flags.gd)
    throw ConfigError("--no-gnc and --no-gd together leave nothing to compute",
                      {.hint = "leave one of them out"});
  if (!flags.widths.empty() && !flags.depths.empty())
    throw ConfigError("wanted widths or depths, found both",
                      {.key = "depths", .hint = "leave one of --widths and --depths out"});
  const std::vector<int64_t> axis = axis_of(flags);
  sweep::check_distinct(axis, flags.over_depths() ? "depths" : "widths");
  const auto num_seeds = static_cast<double>(sweep::num_chosen_seeds(flags.seeds, flags.num_seeds));
  sweep::check_cell_count(static_cast<double>(axis.size()) * num_seeds *
                          (flags.gnc && flags.gd ? 2 : 1));
  const std::vector<int64_t> seeds = seeds_of(flags, flags.common.sweep_seed);
  sweep::SweepPlan plan{.label = flags.over_depths() ? "mf-depth" : "mf-width",
                        .workload = "mf",
                        .mode = flags.mode,
                        .version = MfWorkload(precision_of(flags.mode)).version(),
                        .cells = {}};
  MfParameters common = problem_parameters(flags);
  for (size_t place = 0; place < axis.size(); ++place) {
    common.width = flags.over_depths() ? flags.width.value.value_or(kDefaultWidth) : axis[place];
    common.depth = flags.over_depths() ? axis[place] : flags.depth.value.value_or(kDefaultDepth);
    const auto cells = cells_of_value(flags, common, descent_of(flags, place, axis.size()));
    for (const int64_t seed : seeds)
      for (sweep::PlannedCell planned : cells) {
        planned.cell.seed = seed;
        plan.cells.push_back(std::move(planned));
      }
  }
  return plan;
}

namespace {

class MfWorkloadFlags : public WorkloadFlagsOf<MfFlags> {
 public:
  sweep::SweepPlan plan() const override { return plan_mf(flags_); }
  SweepPlaces places() const override {
    return {flags_.checkpoint_dir, flags_.figures_dir, flags_.device, flags_.max_gpus};
  }
  std::vector<sweep::NamedFile> tables(const sweep::SweepResults& results) const override {
    return {mf_wide_csv(results, flags_.over_depths() ? "depth" : "width")};
  }
  std::vector<std::string> notices() const override { return flags_.notices(); }
};

}  // namespace

WorkloadKind mf_kind() {
  return {.name = "mf",
          .summary = "Sweep matrix factorisations, over width or depth",
          .usage = "convoy sweep mf [flags]",
          .example =
              "convoy sweep mf --config "
              "examples/sweep/width/width_gt_rank=1_act=Linear_gnc_init=gauss.json",
          .first_flags = {"num-seeds", "seeds", "widths", "depths", "gnc", "gnc-num-samples", "gd",
                          "config", "devices", "workers", "results-dir", "dry-run"},
          .flags = []() -> std::unique_ptr<WorkloadFlags> {
            return std::make_unique<MfWorkloadFlags>();
          },
          .fields = default_fields<MfFlags>,
          .make = [](const std::string& mode,
                     std::shared_ptr<cuda::Device> gpu) -> std::unique_ptr<sweep::Workload> {
            return std::make_unique<MfWorkload>(precision_of(mode), best_cpu_level(),
                                                std::move(gpu));
          },
          .wide_csv =
              [](const sweep::SweepResults& results) {
                return std::vector<sweep::NamedFile>{mf_wide_csv(results)};
              },
          .steps = {.parameter = "gd_epochs", .usual = MfDescent{}.epochs}};
}

}  // namespace convoy::experiments

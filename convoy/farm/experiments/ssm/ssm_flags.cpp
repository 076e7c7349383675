// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/experiments/ssm/ssm_flags.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/farm/experiments/cell_fields.h"
#include "convoy/farm/experiments/random/stream.h"
#include "convoy/farm/experiments/ssm/ssm_data_file.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"
#include "convoy/farm/experiments/ssm/ssm_problem.h"
#include "convoy/farm/experiments/ssm/ssm_shortcuts.h"
#include "convoy/farm/experiments/ssm/ssm_table.h"
#include "convoy/farm/experiments/ssm/ssm_workload.h"

namespace convoy::experiments {
namespace {

// The data of the published runs; entry s belongs to seed s.
constexpr const char* kPublishedData = R"([
  {"alpha": 0.5, "w": [1, 0, 0, 0]}, {"alpha": 0.5, "w": [0.01, 0.01, 0.01, 1]},
  {"alpha": 0.5, "w": [0, 0, 0, 1]}, {"alpha": 0.5, "w": [1, 1, 1, 1]}])";

std::vector<SsmDataEntry> data_entries(const SsmFlags& flags) {
  if (!flags.data_file.empty()) return read_ssm_data(read_file(flags.data_file), flags.data_file);
  if (flags.preset == "published") return read_ssm_data(kPublishedData, "preset published");
  return {};
}

// The parameters have the names that PyTorch's schedulers give them. `gamma` belongs to the chosen
// schedule.
void read_schedule_parameters(const config::OrderedMap<double>& parameters, SsmDescent& descent) {
  for (const auto& [name, value] : parameters) {
    if (name == "step_size") {
      if (value != std::floor(value) || !(value >= 1) || !(value < 0x1p53))
        throw ConfigError(
            fmt::format("--gd-scheduler-params: step_size needs a whole number from 1 on, found {}",
                        value),
            {.hint = "such as --gd-scheduler-params step_size=100"});
      descent.step_size = static_cast<int64_t>(value);
    } else if (name == "step_gamma" ||
               (name == "gamma" && descent.schedule() == SsmSchedule::Step)) {
      descent.step_gamma = value;
    } else if (name == "exp_gamma" || name == "gamma") {
      descent.exp_gamma = value;
    } else if (name == "eta_min" || name == "cosine_eta_min") {
      descent.cosine_eta_min = value;
    } else {
      throw ConfigError(fmt::format("--gd-scheduler-params: unknown name `{}`", name),
                        {.key = "gd_scheduler_params",
                         .hint = "step_size, gamma, step_gamma, exp_gamma, eta_min"});
    }
  }
}

SsmDescent descent_of(const SsmFlags& flags) {
  SsmDescent descent = flags.common.descent;
  read_schedule_parameters(flags.gd_scheduler_params, descent);
  return descent;
}

SsmParameters common_parameters(const SsmFlags& flags) {
  SsmParameters common = flags.common;
  if (flags.preset == "first") {
    common.teacher_mean = 0;
    common.teacher_sd = 1;
    common.prior_sd = 1;
  }
  return common;
}

// The parameters of the axes are written even if they equal their defaults, because tables are made
// from them.
sweep::Cell cell_of(const std::string& method, int64_t seed, const SsmParameters& parameters) {
  auto object = nlohmann::json::parse(parameters.json());
  object["student_dim"] = parameters.student_dim;
  object["teacher_rank"] = parameters.teacher_rank;
  object["sequence_length"] = parameters.sequence_length;
  object["num_sequences"] = parameters.num_sequences;
  if (method == "gnc") object["eps_train"] = parameters.eps_train;
  return {.method = method, .seed = seed, .parameters = object.dump()};
}

SsmShortcut shortcut_of(const SsmFlags& flags, const SsmParameters& parameters, int64_t seed) {
  if (flags.shortcut == "none") return SsmShortcut::None;
  const SsmProblem problem = draw_problem(parameters, seed);
  const SsmShortcut shortcut =
      flags.shortcut == "auto" ? best_shortcut(problem)
                               : enumerator_of<SsmShortcut>(flags.shortcut, ssm_shortcut_words());
  const std::string refusal = shortcut_refusal(problem, shortcut);
  if (!refusal.empty())
    throw ConfigError(fmt::format("--shortcut: {} (seed {})", refusal, seed),
                      {.hint = "--shortcut auto takes it where it can"});
  return shortcut;
}

void add_cells(sweep::SweepPlan& plan, const SsmFlags& flags, int64_t seed,
               SsmParameters parameters) {
  // A descent leaves out parameters that only guesses use. Guesses leave out parameters that only a
  // descent uses.
  if (flags.gnc) {
    parameters.descent = {};
    parameters.shortcut_word =
        enumerator_word(shortcut_of(flags, parameters, seed), ssm_shortcut_words());
    sweep::PlannedCell planned;
    planned.cell = cell_of("gnc", seed, parameters);
    planned.guesses = flags.gnc_num_samples;
    planned.stop = {.standard_error = flags.target_standard_error,
                    .accepted = flags.target_accepted};
    planned.priority = parameters.student_dim;
    plan.cells.push_back(std::move(planned));
  }
  if (!flags.gd) return;
  parameters.eps_train = SsmParameters{}.eps_train;
  parameters.shortcut_word = SsmParameters{}.shortcut_word;
  parameters.descent = descent_of(flags);
  sweep::PlannedCell planned;
  planned.cell = cell_of("gd", seed, parameters);
  planned.priority = parameters.student_dim;
  plan.cells.push_back(std::move(planned));
}

}  // namespace

void SsmFlags::apply_preset(const std::string& name) {
  preset = name;
  if (name == "published") {
    num_seeds = 4;
  } else if (name == "first") {
    teacher_ranks = {2};
    student_dims = {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    common.num_sequences = 3;
    common.sequence_length = 3;
    common.eps_train = 1e-3;
    gnc_num_samples = 100'000'000;
    common.descent.lr = 1e-2;
    common.descent.epochs = 100'000;
  } else {
    throw ConfigError(fmt::format("--preset: unknown `{}`", name), {.hint = "published, first"});
  }
}

std::vector<std::string> SsmFlags::notices() const {
  std::vector<std::string> lines;
  if (gnc_batch_size != kBatchSize)
    lines.emplace_back("--gnc-batch-size is ignored: no result depends on batches");
  if (checkpoint_interval != kCheckpointInterval)
    lines.emplace_back("--checkpoint-interval is ignored: every finished range is stored at once");
  if (!resume_from_checkpoint.empty())
    lines.emplace_back("--resume-from-checkpoint is ignored: the same command always continues");
  return lines;
}

std::vector<std::string> ssm_warnings(const SsmFlags& flags) {
  // From this dimension on a warning is given: the response of a teacher with a rank above 1 grows
  // with the dimension, while the sum of the squares of a guess stays near 1.
  constexpr int64_t kLargeDim = 32;
  const bool ranks = std::any_of(flags.teacher_ranks.begin(), flags.teacher_ranks.end(),
                                 [](int64_t rank) { return rank > 1; });
  const bool large = std::any_of(flags.student_dims.begin(), flags.student_dims.end(),
                                 [](int64_t dim) { return dim >= kLargeDim; });
  const bool has_data = !flags.data_file.empty() || flags.preset == "published";
  std::vector<std::string> lines;
  if (flags.gnc && ranks && large)
    lines.emplace_back(
        "few or no guesses can be expected to pass with teachers of rank 2 or more at large "
        "student dimensions");
  if (has_data && ranks)
    lines.emplace_back(
        "alpha in the data describes a teacher of rank 1; teachers of rank 2 or more are drawn "
        "from the seed and use only the data's sequences");
  return lines;
}

sweep::SweepPlan plan_ssm(const SsmFlags& flags) {
  if (!flags.gnc && !flags.gd)
    throw ConfigError("--no-gnc without --gd leaves nothing to compute",
                      {.hint = "leave --no-gnc out, or add --gd"});
  const auto num_seeds = static_cast<double>(sweep::num_chosen_seeds(flags.seeds, flags.num_seeds));
  sweep::check_cell_count(
      static_cast<double>(flags.student_dims.size() * flags.teacher_ranks.size()) * num_seeds *
      (flags.gnc && flags.gd ? 2 : 1));
  const std::vector<int64_t> seeds = seeds_of(flags, flags.common.sweep_seed);
  sweep::check_distinct(flags.student_dims, "student_dims");
  sweep::check_distinct(flags.teacher_ranks, "teacher_ranks");
  const std::vector<SsmDataEntry> entries = data_entries(flags);
  sweep::SweepPlan plan{.label = "ssm",
                        .workload = "ssm",
                        .mode = flags.mode,
                        .version = SsmWorkload(precision_of(flags.mode)).version(),
                        .cells = {}};
  for (const int64_t rank : flags.teacher_ranks)
    for (const int64_t dim : flags.student_dims)
      for (const int64_t seed : seeds) {
        SsmParameters parameters = common_parameters(flags);
        parameters.student_dim = dim;
        parameters.teacher_rank = rank;
        if (!entries.empty()) {
          const SsmDataEntry& entry = entries[static_cast<size_t>(seed) % entries.size()];
          if (rank == 1) parameters.alpha = entry.alpha;
          parameters.w = entry.w;
        }
        add_cells(plan, flags, seed, parameters);
      }
  // Invalid cells are reported before the store is made.
  for (const sweep::PlannedCell& planned : plan.cells)
    if (planned.cell.seed == seeds.front()) SsmParameters::parse(planned.cell.parameters);
  return plan;
}

namespace {

class SsmWorkloadFlags : public WorkloadFlagsOf<SsmFlags> {
 public:
  void start_over() override {
    const std::string preset = flags_.preset;
    flags_ = {};
    if (!preset.empty()) flags_.apply_preset(preset);
  }
  sweep::SweepPlan plan() const override { return plan_ssm(flags_); }
  SweepPlaces places() const override {
    return {flags_.checkpoint_dir, flags_.figures_dir, flags_.device, flags_.max_gpus};
  }
  std::vector<sweep::NamedFile> tables(const sweep::SweepResults& results) const override {
    return ssm_wide_csv(results);
  }
  std::vector<std::string> notices() const override { return flags_.notices(); }
  std::vector<std::string> warnings() const override { return ssm_warnings(flags_); }
  std::string flag_without_value() const override { return "resume_from_checkpoint"; }
};

}  // namespace

WorkloadKind ssm_kind() {
  return {.name = "ssm",
          .summary = "Sweep diagonal state-space models",
          .usage = "convoy sweep ssm [flags]",
          .example =
              "convoy sweep ssm --seeds 0 1 2 3 --student-dims 150 300 --gnc-num-samples 1e8 --gd",
          .first_flags = {"num-seeds", "seeds", "student-dims", "teacher-ranks", "gnc",
                          "gnc-num-samples", "gd", "config", "devices", "workers", "results-dir",
                          "dry-run"},
          .flags = []() -> std::unique_ptr<WorkloadFlags> {
            return std::make_unique<SsmWorkloadFlags>();
          },
          .fields = default_fields<SsmFlags>,
          .make = [](const std::string& mode,
                     std::shared_ptr<cuda::Device> gpu) -> std::unique_ptr<sweep::Workload> {
            return std::make_unique<SsmWorkload>(precision_of(mode), best_cpu_level(),
                                                 std::move(gpu));
          },
          .wide_csv = ssm_wide_csv,
          .steps = {.parameter = "gd_epochs", .usual = SsmDescent{}.epochs}};
}

}  // namespace convoy::experiments

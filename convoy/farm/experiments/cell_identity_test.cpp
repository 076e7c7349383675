// SPDX-License-Identifier: Apache-2.0
//
// The identities of stored cells are hashes of the texts below. If a text changed by one letter, no
// store would find its results, so these texts must never change.
#include <gtest/gtest.h>

#include <iterator>
#include <sstream>

#include "convoy/core/config/flags.h"
#include "convoy/farm/experiments/mf/mf_parameters.h"
#include "convoy/farm/experiments/registry.h"
#include "convoy/farm/experiments/ssm/ssm_parameters.h"

namespace convoy::experiments {
namespace {

using Texts = std::vector<std::string>;

// Reads the flags twice, as `convoy sweep` does: the second time over the defaults of a preset.
Texts cells_of_flags(const std::string& workload, const std::string& line) {
  std::istringstream words(line);
  const Texts arguments(std::istream_iterator<std::string>{words},
                        std::istream_iterator<std::string>{});
  const auto flags = find_workload(workload)->flags();
  config::parse_flags({flags->section()}, arguments);
  flags->start_over();
  config::parse_flags({flags->section()}, arguments);
  Texts texts;
  for (const sweep::PlannedCell& planned : flags->plan().cells)
    texts.push_back(planned.parameters());
  return texts;
}

TEST(CellIdentity, OfBalls) {
  EXPECT_EQ(cells_of_flags("ball", "--dims 2 --seeds 0"),
            Texts{R"({"cell":{"dim":2},"guesses":1000000,"method":"points","seed":0})"});
  EXPECT_EQ(cells_of_flags("ball", "--dims 3 --seeds 7 --num-points 1e3"),
            Texts{R"({"cell":{"dim":3},"guesses":1000,"method":"points","seed":7})"});
}

TEST(CellIdentity, OfFactorisationsWithDefaults) {
  EXPECT_EQ(
      cells_of_flags("mf", "--widths 5 --seeds 0"),
      (Texts{R"({"cell":{"activation":"Linear","depth":2,"gnc_eps_train":0.01,"gnc_init":"gauss",)"
             R"("gt_rank":1,"num_measurements":15,"shortcut":"none","width":5},)"
             R"("guesses":100000000,"method":"gnc","seed":0})",
             R"({"cell":{"activation":"Linear","depth":2,"gt_rank":1,"num_measurements":15,)"
             R"("width":5},"method":"gd","seed":0})"}));
}

TEST(CellIdentity, OfFactorisationsWithEveryParameter) {
  const char* const line =
      "--depths 3 --width 40 --seeds 2 --sweep-seed 3 --n-rows 6 --n-cols 4 --gt-rank "
      "2 --gt-norm 0.5 --completion --num-measurements 10 --activation LeakyReLU "
      "--negative-slope 0.25 --gnc-num-samples 1000 --target-accepted 7 "
      "--gnc-eps-train 0.125 --gnc-init unif --gnc-normalize --gnc-softening 0.001 "
      "--gd-lrs 0.5 --gd-epochs 5000 --gd-init-scales 0.25 --gd-log-period 50 "
      "--gd-momentum 0.75 --no-gd-apply-momentum";
  EXPECT_EQ(
      cells_of_flags("mf", line),
      (Texts{R"({"cell":{"activation":"LeakyReLU","completion":true,"depth":3,)"
             R"("gnc_eps_train":0.125,"gnc_init":"unif","gnc_normalize":true,)"
             R"("gnc_softening":0.001,"gt_norm":0.5,"gt_rank":2,"n_cols":4,"n_rows":6,)"
             R"("negative_slope":0.25,"num_measurements":10,"shortcut":"none","sweep_seed":3,)"
             R"("width":40},"guesses":1000,"method":"gnc","seed":2,"target_accepted":7})",
             R"({"cell":{"activation":"LeakyReLU","completion":true,"depth":3,)"
             R"("gd_apply_momentum":false,"gd_epochs":5000,"gd_init_scale":0.25,)"
             R"("gd_log_period":50,"gd_lr":0.5,"gd_momentum":0.75,"gt_norm":0.5,"gt_rank":2,)"
             R"("n_cols":4,"n_rows":6,"negative_slope":0.25,"num_measurements":10,)"
             R"("sweep_seed":3,"width":40},"method":"gd","seed":2})"}));
}

TEST(CellIdentity, OfFactorisationsWithAShortcutAndAPrior) {
  EXPECT_EQ(
      cells_of_flags("mf",
                     "--widths 40 --depth 3 --activation Tanh --shortcut auto --seeds 1 --no-gd "
                     "--gnc-eps-train 0.5"),
      (Texts{R"({"cell":{"activation":"Tanh","depth":3,"gnc_eps_train":0.5,"gnc_init":"gauss",)"
             R"("gt_rank":1,"num_measurements":15,"shortcut":"gram","width":40},)"
             R"("guesses":100000000,"method":"gnc","seed":1})",
             R"({"cell":{"activation":"Tanh","depth":3,"gnc_init":"gauss","gt_rank":1,)"
             R"("num_measurements":15,"shortcut":"gram","width":40},)"
             R"("guesses":1000000,"method":"prior","seed":1})"}));
}

TEST(CellIdentity, OfStateSpaceModelsWithDefaults) {
  EXPECT_EQ(cells_of_flags("ssm", "--student-dims 150 --seeds 0 --gd"),
            (Texts{R"({"cell":{"eps_train":1e-05,"num_sequences":1,"sequence_length":5,)"
                   R"("student_dim":150,"teacher_rank":1},)"
                   R"("guesses":100000000,"method":"gnc","seed":0})",
                   R"({"cell":{"num_sequences":1,"sequence_length":5,"student_dim":150,)"
                   R"("teacher_rank":1},"method":"gd","seed":0})"}));
}

TEST(CellIdentity, OfStateSpaceModelsWithEveryDescent) {
  const char* const line =
      "--preset published --student-dims 12 --seeds 1 --sweep-seed 3 --gd "
      "--gnc-num-samples 1000 --target-standard-error 0.25 --eps-train 0.001 "
      "--no-calc-loss-only-on-last-output --w-that-minimizes-loss --gd-lr 0.5 "
      "--gd-epochs 500 --gd-init-scale 0.25 --gd-optimizer gd --gd-scheduler step "
      "--step-size 7 --step-gamma 0.5 --exp-gamma 0.75 --cosine-eta-min 0.125 "
      "--gd-init-type near_one";
  EXPECT_EQ(
      cells_of_flags("ssm", line),
      (Texts{R"({"cell":{"alpha":0.5,"calc_loss_only_on_last_output":false,"eps_train":0.001,)"
             R"("num_sequences":1,"sequence_length":5,"student_dim":12,"sweep_seed":3,)"
             R"("teacher_rank":1,"w":[[0.01,0.01,0.01,1.0]],"w_that_minimizes_loss":true},)"
             R"("guesses":1000,"method":"gnc","seed":1,"target_standard_error":0.25})",
             R"({"cell":{"alpha":0.5,"calc_loss_only_on_last_output":false,)"
             R"("cosine_eta_min":0.125,"exp_gamma":0.75,"gd_epochs":500,"gd_init_scale":0.25,)"
             R"("gd_init_type":"near_one","gd_lr":0.5,"gd_optimizer":"gd","gd_scheduler":"step",)"
             R"("num_sequences":1,"sequence_length":5,"step_gamma":0.5,"step_size":7,)"
             R"("student_dim":12,"sweep_seed":3,"teacher_rank":1,"w":[[0.01,0.01,0.01,1.0]],)"
             R"("w_that_minimizes_loss":true},"method":"gd","seed":1})"}));
}

TEST(CellIdentity, OfStateSpaceModelsWithAShortcutAndAPrior) {
  EXPECT_EQ(cells_of_flags("ssm", "--preset first --student-dims 3 --seeds 0 --shortcut auto"),
            Texts{R"({"cell":{"eps_train":0.001,"num_sequences":3,"prior_sd":1.0,)"
                  R"("sequence_length":3,"shortcut":"two_randoms","student_dim":3,)"
                  R"("teacher_mean":0.0,"teacher_rank":2,"teacher_sd":1.0},)"
                  R"("guesses":100000000,"method":"gnc","seed":0})"});
}

// No flag sets these parameters, which hold data.
TEST(CellIdentity, OfDataInTheCell) {
  const std::string mf = R"({"measurements":[[1.0,0.0,0.5],[2.0,0.0,0.0]],"n_cols":3,"n_rows":1,)"
                         R"("num_measurements":2,"truth":[1.0,2.0,-0.1]})";
  EXPECT_EQ(MfParameters::parse(mf).json(), mf);
  const std::string ssm =
      R"({"alpha":-0.3,"num_sequences":2,"sequence_length":3,"w":[[1.0,2.0],[0.0,1e-07]],)"
      R"("w2_that_maximizes_loss":true})";
  EXPECT_EQ(SsmParameters::parse(ssm).json(), ssm);
}

}  // namespace
}  // namespace convoy::experiments

// SPDX-License-Identifier: Apache-2.0
//
// `convoy train`: its name, help and flags.
#include "convoy/apps/front/command.h"
#include "convoy/apps/front/train/train_job.h"
#include "convoy/apps/front/train/train_line.h"
#include "convoy/core/settings/har_flags.h"
#include "convoy/launch/supervisor/launch_flags.h"

namespace convoy::apps {
namespace {

int run_train(Context& context, const std::vector<std::string>& arguments) {
  return run_train_job(context, read_train_line(context, arguments));
}

}  // namespace

Command train_command() {
  return {
      .name = "train",
      .summary = "Fine-tune a model on rows, on one rank or many",
      .usage = "convoy train CONFIG.yaml [key=value ...] [--ranks N] [--resume auto|never|PATH]",
      .examples =
          "convoy train run.yaml --ranks 2\n"
          "convoy train run.yaml train.batch_size=2 train.learning_rate=1e-4 --run-dir runs/a\n"
          "convoy train runs/a/config.yaml --run-dir runs/a --resume auto\n"
          "convoy train run.yaml --nnodes 2 --rdzv-endpoint node0:29500 --ranks 4 --run-dir "
          "runs/a",
      .flags = {flags_of<TrainFlags>("Run"), flags_of<launch::HostRankFlags>("Ranks"),
                flags_of<launch::NodeFlags>("Nodes"),
                flags_of<settings::HarFlags>("Settings by the names of the activity guide")},
      .first_flags = {"ranks", "devices", "model", "data", "run-dir", "resume", "preset", "dry-run",
                      "nnodes", "rdzv-endpoint", "deepspeed", "tensorboard"},
      .run = run_train,
      .group = HelpGroup::TrainAndUse};
}

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
//
// The command line of `convoy train`, and the one that continues the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/apps/front/command.h"
#include "convoy/core/config/field.h"
#include "convoy/core/settings/train_imports.h"
#include "convoy/core/settings/train_settings.h"
#include "convoy/launch/supervisor/job_setup.h"
#include "convoy/launch/supervisor/launch_flags.h"

namespace convoy::apps {

// Name of the subfolder for the rounds in a run folder of `task: rejection`.
inline constexpr const char* kRoundsFolder = "rounds";

struct TrainFlags : launch::DeviceFlags {
  std::string config;
  std::string model;
  std::string data;
  std::string resume;
  std::string output_dir;
  std::string preset;
  std::string deepspeed;
  std::string accelerate_config;
  bool tensorboard = false;
  bool tensorboard_stays = false;
  int64_t tensorboard_port = 6006;
  double device_interval = 5;
  std::string profile_steps;
  bool deterministic = false;
  bool dry_run = false;
  bool placement = false;
  config::NameList force_stamp;

  template <class Visitor>
  void fields(Visitor& visit) {
    DeviceFlags::fields(visit);
    visit("config", config, "the configuration; the same as the word without a flag");
    visit("model", model, "folder or hub id of the model; sets model.name");
    visit("data", data, "file or data set of the training rows; sets data.train_path")
        .alias("dataset");
    visit("resume", resume,
          "auto, never, a run folder or one of its checkpoints; sets "
          "train.resume_from_checkpoint");
    visit("output_dir", output_dir, "run folder; sets train.output_dir").flag("run_dir");
    visit("preset", preset, "start from this preset (`convoy config presets`)");
    visit("deepspeed", deepspeed, "DeepSpeed's JSON file; sets train.deepspeed")
        .alias("deepspeed_config");
    visit("accelerate_config", accelerate_config,
          "file that `accelerate config` wrote; sets accelerate");
    visit("tensorboard", tensorboard,
          "start TensorBoard with the run and end it with it; needs Python's tensorboard");
    visit("tensorboard_stays", tensorboard_stays,
          "like --tensorboard, but for all runs beside this one, and it stays when the run ends");
    visit("tensorboard_port", tensorboard_port, "port of --tensorboard").at_least(1).at_most(65535);
    visit("device_interval", device_interval,
          "seconds between samples of GPUs and host in devices.csv of the run folder; 0 = off")
        .at_least(0)
        .at_most(86'400);
    visit("profile_steps", profile_steps,
          "steps to trace, such as 10:15 (both included), for `convoy profile report RUN`; sets "
          "logging.profile_steps");
    visit("deterministic", deterministic,
          "make a repeated run on GPUs bit-exact; sets train.deterministic");
    visit("dry_run", dry_run, "check everything, print the plan and stop");
    visit("placement", placement,
          "print where each rank would run, without reading model and rows, and stop");
    visit("force_stamp", force_stamp,
          "let this field of the checkpoint's stamp differ; may be given more than once");
  }
};

struct TrainInvocation {
  TrainFlags flags;
  launch::SetupRequest request;
  std::string multi_gpu;               // value of HarFlags::multi_gpu
  bool har_data = false;               // --data-dir is given
  std::vector<std::string> rest;       // configuration and key=value pairs
  settings::TrainDocuments documents;  // content of `rest`
};

// Throws ConfigError only for errors of the command line. The result's `documents` hold the errors
// of the configuration.
TrainInvocation read_train_line(Context& context, const std::vector<std::string>& arguments);

// True for a word of `rest` that is not a key=value pair.
bool is_config_file(const std::string& word);

// The flags that place the run's ranks.
std::vector<std::string> rank_words(const TrainInvocation& of);

// The command that resumes the run. It names the run's configuration, which holds the settings, and
// repeats the flags for ranks and nodes. A node without rank 0 may lack that configuration, so it
// repeats its own command.
std::string command_to_go_on(const TrainInvocation& of, const settings::TrainSettings& train,
                             const std::filesystem::path& folder);

}  // namespace convoy::apps

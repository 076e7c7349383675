// SPDX-License-Identifier: Apache-2.0
//
// What a run says about itself before it starts and when it has ended.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "convoy/base/log.h"
#include "convoy/checkpoint/checkpoint.h"
#include "convoy/data/batch_plan.h"
#include "convoy/data/encode_splits.h"
#include "convoy/recipes/loaded_model.h"
#include "convoy/settings/train_settings.h"
#include "convoy/telemetry/run_folder.h"
#include "convoy/telemetry/training_log.h"
#include "convoy/train/train_loop.h"

namespace convoy::recipes {

// Model, data, masks, batch and steps, a line each.
void report_plan(const Log& log, const settings::TrainSettings& settings, const LoadedModel& base,
                 const data::EncodedSplits& splits, const data::BatchPlan& plan,
                 const std::vector<nn::NamedTensor>& trainable, const std::string& dtype);

// What every run's log has in common. `tensorboard_folder`: unless the environment names another.
telemetry::TrainingLogOptions training_log_options(const settings::TrainSettings& settings,
                                                   const std::filesystem::path& tensorboard_folder,
                                                   int64_t steps_per_epoch,
                                                   const checkpoint::Progress& start,
                                                   const Log& log);

// Says why a run ended before its last step, if it ran out of patience.
void report_early_stop(const Log& log, const settings::TrainingSettings& train,
                       const train::LoopResult& result);

telemetry::RunEnd run_end(train::LoopEnd end);

std::map<std::string, std::string> data_hashes(const data::EncodedSplits& splits);  // by split

// run.json of this run. `hosts`: one per node; `device_kind`: what every rank computes on.
telemetry::RunIdentity run_identity(const settings::TrainSettings& settings,
                                    const std::string& config_yaml,
                                    std::map<std::string, std::string> data_hashes,
                                    const checkpoint::Stamp& stamp, std::vector<std::string> hosts,
                                    int64_t world_size, const std::string& device_kind,
                                    const checkpoint::Progress& start);

// metrics.json: the training log's figures and the final status that SFT-Play's scripts read.
nlohmann::json final_metrics(nlohmann::json figures, const settings::TrainSettings& settings,
                             const data::BatchPlan& plan, const checkpoint::Progress& progress);

}  // namespace convoy::recipes

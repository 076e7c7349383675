// SPDX-License-Identifier: Apache-2.0
//
// The phases of a round of task rejection, each as the settings of the command that runs it, and
// the files of a round. Plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "convoy/apps/front/process/process_config.h"
#include "convoy/core/settings/train_settings.h"

namespace convoy::apps {

// The workers of generation and the ranks of training.
struct RoundWorkers {
  int64_t count = 1;
  std::string devices = "cpu";  // or cuda
  int64_t threads = 0;          // the value of workers.threads
};

class RejectionPhases {
 public:
  // `folder`: the run folder.
  RejectionPhases(settings::TrainSettings train, std::filesystem::path folder,
                  RoundWorkers workers);

  std::filesystem::path folder_of(int64_t round) const;
  std::filesystem::path generate_folder(int64_t round) const;
  std::filesystem::path train_folder(int64_t round) const;
  std::filesystem::path evaluate_folder(int64_t round) const;
  std::filesystem::path samples_file(int64_t round) const;  // every sample with its verdict
  std::filesystem::path rows_file(int64_t round) const;     // rows that the round trains on
  std::filesystem::path answers_file(int64_t round) const;  // answers to data.val_path's problems
  // Path of the adapter or model of a trained round, relative to the run folder.
  std::filesystem::path result_of(int64_t round) const;

  // Sets `config` to generate solutions of the problems in data.train_path with the model of the
  // previous round.
  void settle_generate(int64_t round, ProcessConfig& config) const;
  // Sets `config` to generate the greedy answers of the round's model to the problems in
  // data.val_path. Round 0 has the model as it starts.
  void settle_evaluate(int64_t round, ProcessConfig& config) const;
  // The settings, as key=value, in which the training on `rows` differs from the run's settings.
  std::vector<std::string> train_words(int64_t round, const std::filesystem::path& rows) const;

  bool trains_all() const { return train_.tuning.mode == "full"; }

 private:
  struct RoundModel {
    std::string name;
    std::string adapter;
  };

  RoundModel model_after(int64_t round) const;
  settings::ProcessSettings process_settings(const RoundModel& model) const;

  settings::TrainSettings train_;
  std::filesystem::path folder_;
  RoundWorkers workers_;
};

}  // namespace convoy::apps

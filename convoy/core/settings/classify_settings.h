// SPDX-License-Identifier: Apache-2.0
//
// Task classify: data, network and loss of sensor windows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::settings {

struct ClassifySettings {
  std::string data_dir;
  double val_ratio = 0.1;
  std::string pooling = "flatten";
  std::vector<int64_t> widths = {64, 128, 256};
  std::vector<int64_t> kernel_sizes = {5, 5, 3};
  std::string encoder_path;
  std::string freeze_encoder = "auto";
  std::vector<int64_t> hidden_dims = {512};
  double dropout = 0.1;
  double label_smoothing = 0.1;
  int64_t num_workers = 4;

  bool freezes_encoder() const {
    return freeze_encoder == "true" || (freeze_encoder == "auto" && !encoder_path.empty());
  }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("data_dir", data_dir, "folder that holds train and test, in the layout of UCI HAR");
    visit("val_ratio", val_ratio,
          "share of the training windows held out for validation, by subject where they are known; "
          "0 = none; a folder val overrides it")
        .at_least(0)
        .at_most(0.9);
    visit("pooling", pooling,
          "how channels are combined: one encoder processes each, and their features are "
          "concatenated (flatten), averaged, or the first's; joint: it processes all together")
        .one_of({"flatten", "average", "first", "joint"})
        .alias("mode");
    visit("widths", widths, "channels out of each stage of the encoder").at_least(1);
    visit("kernel_sizes", kernel_sizes, "kernel size of each stage in rows, odd").at_least(1);
    visit("encoder_path", encoder_path,
          "encoder to start from: a run's model folder, one of its checkpoints, or a .safetensors "
          "file");
    visit("freeze_encoder", freeze_encoder,
          "do not train the encoder; auto = when encoder_path is given")
        .one_of({"auto", "true", "false"});
    visit("hidden_dims", hidden_dims, "widths of the head's layers before the last").at_least(1);
    visit("dropout", dropout, "dropout after each of the head's layers before the last")
        .at_least(0)
        .at_most(0.99);
    visit("label_smoothing", label_smoothing, "share of each target spread over all classes")
        .at_least(0)
        .at_most(0.99);
    visit("num_workers", num_workers, "files that each rank reads at a time; 0 = 1").at_least(0);
  }
};

}  // namespace convoy::settings

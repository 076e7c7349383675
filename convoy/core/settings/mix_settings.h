// SPDX-License-Identifier: Apache-2.0
//
// Several data sets in one run, drawn by weight: `datasets` and `mix` of a configuration. Plain
// data.
#pragma once

#include <string>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::settings {

inline constexpr const char* kDatasetsHelp =
    "data sets of task mixed: a list of {path, type: cpt or chat, weight, name, val_path or "
    "val_ratio, schema}";

// One entry of `datasets`.
struct MixedDataset {
  std::string name;      // for logs and figures; empty in the file: dataset-1, ...
  std::string path;      // like data.train_path
  std::string val_path;  // like data.val_path
  double val_ratio = 0;  // without val_path: share of the rows that is held out
  std::string task;      // "pretrain" (cpt: text, all of it learnt) or "sft" (chat)
  std::string schema = "auto";
  double weight = 1;  // share of the rows drawn; weights need not sum to 1
};

struct MixSettings {
  std::string stop = "all_exhausted";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("stop", stop,
          "end an epoch when every data set was read once (smaller ones repeat), or when the first "
          "one ends")
        .one_of({"all_exhausted", "first_exhausted"})
        .alias("stopping_strategy");
  }
};

// Throws ConfigError with the key at fault: an unknown name, a missing path, a weight of 0, one
// name twice.
std::vector<MixedDataset> mixed_datasets(const config::JsonList& list);

}  // namespace convoy::settings

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/classify/signal_data.h"

#include <fmt/ranges.h>  // LibTorch's fmt declares fmt::join here

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/signals/signal_classes.h"
#include "convoy/data/datasets/signals/split_remarks.h"
#include "convoy/data/datasets/signals/uci_har.h"

namespace convoy::recipes {
namespace {

void require_like_train(const data::SignalWindows& windows, const data::SignalWindows& train,
                        const std::string& folder) {
  if (windows.channel_names != train.channel_names)
    throw DataError(
        fmt::format("wanted the channels of train ({}), found {}",
                    fmt::join(train.channel_names, ", "), fmt::join(windows.channel_names, ", ")),
        {.file = folder, .hint = "give test the same files as train, one for each channel"});
  if (windows.window_rows != train.window_rows)
    throw DataError(fmt::format("wanted windows of {} rows as in train, found {}",
                                train.window_rows, windows.window_rows),
                    {.file = folder, .hint = "cut the windows of test as those of train were cut"});
}

}  // namespace

SignalData load_signal_data(const settings::TrainSettings& settings) {
  const settings::ClassifySettings& classify = settings.classify;
  const std::string& folder = classify.data_dir;
  const int64_t workers = std::max<int64_t>(1, classify.num_workers);
  SignalData data;
  data.train = data::read_signal_split(folder, "train", workers);
  const data::SignalClasses classes = data::read_signal_classes(folder, data.train);
  data.class_names = classes.names;
  const auto number = [&](data::SignalWindows& windows, const char* split) {
    data::number_classes(windows, classes, fmt::format("{}/{}/y_{}.txt", folder, split, split));
  };
  number(data.train, "train");
  const auto read_more = [&](const char* split) {
    data::SignalWindows windows = data::read_signal_split(folder, split, workers);
    require_like_train(windows, data.train, folder + "/" + split);
    number(windows, split);
    return windows;
  };
  if (data::has_signal_split(folder, "test")) data.test = read_more("test");
  double held_share = 0;
  if (data::has_signal_split(folder, "val")) {
    data.validation = read_more("val");
  } else if (classify.val_ratio > 0) {
    held_share = classify.val_ratio;
    std::tie(data.train, data.validation) =
        data::hold_out(data.train, held_share, static_cast<uint64_t>(settings.seed));
  }
  data.remarks = data::split_remarks({.train = data.train,
                                      .validation = data.validation,
                                      .test = data.test,
                                      .class_names = data.class_names,
                                      .held_share = held_share});
  return data;
}

}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/signal_data.h"

#include <fmt/ranges.h>  // join lies here in the fmt of LibTorch

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/data/datasets/signals/uci_har.h"

namespace convoy::recipes {
namespace {

void require_like_train(const data::SignalWindows& windows, const data::SignalWindows& train,
                        const std::string& folder) {
  if (windows.channel_names != train.channel_names)
    throw DataError(
        fmt::format("wanted the channels of train ({}), found {}",
                    fmt::join(train.channel_names, ", "), fmt::join(windows.channel_names, ", ")),
        {.file = folder});
  if (windows.window_rows != train.window_rows)
    throw DataError(fmt::format("wanted windows of {} rows as in train, found {}",
                                train.window_rows, windows.window_rows),
                    {.file = folder});
}

void require_known_classes(const data::SignalWindows& windows, int64_t num_classes,
                           const std::string& file) {
  for (size_t window = 0; window < windows.classes.size(); ++window)
    if (windows.classes[window] >= num_classes)
      throw DataError(fmt::format("wanted a class of 1 to {}, found {}", num_classes,
                                  windows.classes[window] + 1),
                      {.file = file, .line = static_cast<int64_t>(window) + 1});
}

}  // namespace

SignalData load_signal_data(const settings::TrainSettings& settings) {
  const settings::ClassifySettings& classify = settings.classify;
  const std::string& folder = classify.data_dir;
  const int64_t workers = std::max<int64_t>(1, classify.num_workers);
  SignalData data;
  data.train = data::read_signal_split(folder, "train", workers);
  data.class_names = data::read_class_names(
      folder, 1 + *std::max_element(data.train.classes.begin(), data.train.classes.end()));
  const auto label_file = [&folder](const char* split) {
    return fmt::format("{}/{}/y_{}.txt", folder, split, split);
  };
  require_known_classes(data.train, data.num_classes(), label_file("train"));
  const auto read_more = [&](const char* split) {
    data::SignalWindows windows = data::read_signal_split(folder, split, workers);
    require_like_train(windows, data.train, folder + "/" + split);
    require_known_classes(windows, data.num_classes(), label_file(split));
    return windows;
  };
  if (data::has_signal_split(folder, "test")) data.test = read_more("test");
  if (data::has_signal_split(folder, "val")) {
    data.validation = read_more("val");
  } else if (classify.val_ratio > 0) {
    std::tie(data.train, data.validation) =
        data::hold_out(data.train, classify.val_ratio, static_cast<uint64_t>(settings.seed));
  }
  return data;
}

}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/epoch_history.h"

#include <algorithm>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"

namespace convoy::train {
namespace {

constexpr double kLargest = 1e300;

io::Json to_json(const EpochRecord& record) {
  io::Json json = {{"epoch", record.epoch},
                   {"train_loss", record.train_loss},
                   {"train_accuracy", record.train_accuracy},
                   {"learning_rate", record.learning_rate}};
  if (record.val_loss) json["val_loss"] = *record.val_loss;
  if (record.val_accuracy) json["val_accuracy"] = *record.val_accuracy;
  return json;
}

EpochRecord record_from_json(const io::Json& value, const std::string& place) {
  const io::JsonReader json(value, place);
  return {.epoch = json.require_int("epoch", 1, INT64_MAX),
          .train_loss = json.require_double("train_loss", -kLargest, kLargest),
          .train_accuracy = json.require_double("train_accuracy", 0, 1),
          .learning_rate = json.require_double("learning_rate", 0, kLargest),
          .val_loss = json.optional_double("val_loss", -kLargest, kLargest),
          .val_accuracy = json.optional_double("val_accuracy", 0, 1)};
}

}  // namespace

void EpochHistory::add(const StepOutcome& step) {
  loss_sum_ += step.loss * static_cast<double>(step.rows);
  rows_ += step.rows;
  hits_ += step.hits;
  learning_rate_ = step.learning_rate;
  total_rows_ += step.rows;
  total_seconds_ += step.seconds;
}

double EpochHistory::samples_per_second() const {
  return total_seconds_ > 0 ? static_cast<double>(total_rows_) / total_seconds_ : 0;
}

const EpochRecord& EpochHistory::close(int64_t epoch, const std::optional<Evaluation>& evaluation) {
  const auto rows = static_cast<double>(std::max<int64_t>(1, rows_));
  EpochRecord record{.epoch = epoch,
                     .train_loss = loss_sum_ / rows,
                     .train_accuracy = static_cast<double>(hits_) / rows,
                     .learning_rate = learning_rate_};
  if (evaluation) {
    record.val_loss = evaluation->loss;
    record.val_accuracy = evaluation->others.at("accuracy");
  }
  epochs_.push_back(record);
  loss_sum_ = 0;
  rows_ = 0;
  hits_ = 0;
  return epochs_.back();
}

io::Json EpochHistory::to_json() const {
  io::Json epochs = io::Json::array();
  for (const EpochRecord& record : epochs_) epochs.push_back(train::to_json(record));
  return {{"epochs", std::move(epochs)},
          {"loss_sum", loss_sum_},
          {"rows", rows_},
          {"hits", hits_},
          {"learning_rate", learning_rate_},
          {"total_rows", total_rows_},
          {"total_seconds", total_seconds_}};
}

EpochHistory EpochHistory::from_json(const io::Json& value, const std::string& place) {
  const io::JsonReader json(value, place);
  EpochHistory history;
  const io::Json* const epochs = json.find("epochs");
  if (epochs == nullptr || !epochs->is_array()) json.fail("epochs", "wanted a list");
  for (const io::Json& record : *epochs) history.epochs_.push_back(record_from_json(record, place));
  history.loss_sum_ = json.require_double("loss_sum", -kLargest, kLargest);
  history.rows_ = json.require_int("rows", 0, INT64_MAX);
  history.hits_ = json.require_int("hits", 0, INT64_MAX);
  history.learning_rate_ = json.require_double("learning_rate", 0, kLargest);
  history.total_rows_ = json.require_int("total_rows", 0, INT64_MAX);
  history.total_seconds_ = json.require_double("total_seconds", 0, kLargest);
  return history;
}

}  // namespace convoy::train

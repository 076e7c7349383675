// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/classify/classify_report.h"

#include <fmt/ranges.h>  // LibTorch's fmt declares fmt::join here

#include <algorithm>

#include "convoy/apps/recipes/training/effective_batch.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/base/files.h"
#include "convoy/core/charts/matrix_plot.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/pictures/picture.h"
#include "convoy/core/telemetry/progress.h"
#include "convoy/train/loop/train_loop.h"

namespace convoy::recipes {
namespace {

int64_t elements(const std::vector<nn::NamedTensor>& parameters) {
  int64_t sum = 0;
  for (const nn::NamedTensor& parameter : parameters) sum += parameter.value.numel();
  return sum;
}

std::string count(int64_t number) { return telemetry::count_text(static_cast<double>(number)); }

constexpr int64_t kMostNamedClasses = 12;
constexpr const char* kResultsFile = "training_results.json";
// A matrix of more classes than this is written as the list of its cells that are not 0.
constexpr int64_t kMostWrittenClasses = 1'000;

std::vector<std::vector<int64_t>> rows_of(const evaluate::ConfusionMatrix& matrix) {
  std::vector<std::vector<int64_t>> rows;
  for (int64_t truth = 0; truth < matrix.num_classes(); ++truth) {
    rows.emplace_back();
    for (int64_t predicted = 0; predicted < matrix.num_classes(); ++predicted)
      rows.back().push_back(matrix.count(truth, predicted));
  }
  return rows;
}

io::Json history_json(const train::EpochHistory& history) {
  io::Json json = io::Json::object();
  for (const char* const name : {"train_loss", "train_acc", "val_loss", "val_acc", "learning_rate"})
    json[name] = io::Json::array();
  const auto or_null = [](const std::optional<double>& value) {
    return value ? io::Json(*value) : io::Json();
  };
  for (const train::EpochRecord& record : history.epochs()) {
    json["train_loss"].push_back(record.train_loss);
    json["train_acc"].push_back(record.train_accuracy);
    json["val_loss"].push_back(or_null(record.val_loss));
    json["val_acc"].push_back(or_null(record.val_accuracy));
    json["learning_rate"].push_back(record.learning_rate);
  }
  return json;
}

io::Json class_json(const evaluate::ClassificationFigures& figures,
                    const std::vector<std::string>& names) {
  io::Json json = io::Json::array();
  for (size_t one = 0; one < names.size(); ++one) {
    const evaluate::ClassFigures& of_class = figures.classes[one];
    json.push_back({{"name", names[one]},
                    {"precision", of_class.precision},
                    {"recall", of_class.recall},
                    {"f1", of_class.f1},
                    {"windows", of_class.support}});
  }
  return json;
}

// Every setting by its path.
io::Json settings_json(const settings::TrainSettings& settings) {
  settings::TrainSettings listed = settings;
  io::Json json = io::Json::object();
  const config::Section list = config::list_fields(listed);
  config::for_each_field(list, "", [&](const std::string& path, const config::Field& field) {
    json[path] = io::Json(config::value_json(field));
  });
  return json;
}

// The epoch of the best step, and the accuracy of its evaluation.
void add_best(io::Json& json, const ClassifyResults& results, bool by_accuracy) {
  json["best_val_acc"] = nullptr;
  json["best_epoch"] = nullptr;
  if (!results.progress.best_metric) return;
  const int64_t epoch =
      (results.progress.best_step + results.steps_per_epoch - 1) / results.steps_per_epoch;
  json["best_epoch"] = epoch;
  if (by_accuracy) {
    json["best_val_acc"] = *results.progress.best_metric;
    return;
  }
  for (const train::EpochRecord& record : results.history.epochs())
    if (record.epoch == epoch && record.val_accuracy) json["best_val_acc"] = *record.val_accuracy;
}

void add_test(io::Json& json, const train::WindowFigures& test, const SignalData& data) {
  const evaluate::ClassificationFigures figures = evaluate::classification_figures(test.confusion);
  json["test_acc"] = figures.accuracy;
  json["test_loss"] = test.loss();
  json["test_macro_f1"] = figures.macro_f1;
  json["test_weighted_f1"] = figures.weighted_f1;
  json["classes"] = class_json(figures, data.class_names);
  if (data.num_classes() <= kMostWrittenClasses) {
    json["confusion_matrix"] = rows_of(test.confusion);
    return;
  }
  json["confusion_matrix"] = nullptr;
  json["confusion_cells"] = io::Json::array();  // true class, predicted class, windows
  for (const auto& [pair, windows] : test.confusion.counts())
    json["confusion_cells"].push_back({pair.first, pair.second, windows});
}

void write_pictures(const std::filesystem::path& folder, const train::WindowFigures& test,
                    const SignalData& data, const Log& log) {
  if (data.num_classes() > evaluate::kMostShownClasses) {
    log.info(fmt::format("no confusion_matrix.png of {} classes: it shows {} at most; {} holds it",
                         data.num_classes(), evaluate::kMostShownClasses, kResultsFile));
    return;
  }
  const charts::MatrixPlot plot{
      .title = fmt::format("{} of {} test windows right", test.confusion.correct(),
                           test.confusion.total()),
      .row_label = "true class",
      .column_label = "predicted class",
      .names = data.class_names,
      .counts = rows_of(test.confusion)};
  const std::string svg = charts::matrix_svg(plot);
  for (const char* const name : {"confusion_matrix.svg", "confusion_matrix.png"})
    if (pictures::can_draw(log, name))
      write_file_atomic(folder / name, pictures::picture_for(name, svg));
  pictures::warn_of_boxes(log, "confusion_matrix.png", svg);
}

}  // namespace

void report_classify_plan(const Log& log, const settings::TrainSettings& settings,
                          const SignalData& data, const nn::SignalClassifier& model,
                          const data::EpochOrder& order, const std::string& dtype) {
  log.info(fmt::format("windows: {} to train, {} to validate, {} to test; {} of {}, {}{}",
                       data.train.num_windows, data.validation.num_windows, data.test.num_windows,
                       counted(data.train.window_rows, "row"),
                       counted(data.train.num_channels(), "channel"),
                       counted(data.num_classes(), "class", "classes"),
                       data.num_classes() > kMostNamedClasses
                           ? ""
                           : fmt::format(" ({})", fmt::join(data.class_names, ", "))));
  for (const std::string& remark : data.remarks) log.warning(remark);
  if (data.validation.num_windows == 0)
    log.warning("no validation windows: no best model, no early stop (classify.val_ratio)");
  log.info(fmt::format(
      "model: encoder ({}{}) and head, {} parameters, {} of them train; products "
      "in {}",
      settings.classify.pooling, model.encoder_is_frozen() ? ", frozen" : "",
      count(elements(model.parameters())), count(elements(model.trained_parameters())), dtype));
  report_batch(log, settings.train, order, "window");
}

void write_classify_results(const std::filesystem::path& folder, const ClassifyResults& results,
                            const settings::TrainSettings& settings, const SignalData& data,
                            const Log& log) {
  io::Json json = io::Json::object();
  add_best(json, results, settings.train.larger_is_better());
  json["test_acc"] = nullptr;
  json["test_loss"] = nullptr;
  if (results.test) add_test(json, *results.test, data);
  json["total_time_minutes"] = results.seconds / 60;
  json["samples_per_second"] = results.history.samples_per_second();
  json["history"] = history_json(results.history);
  json["config"] = settings_json(settings);
  write_file_atomic(folder / kResultsFile, json.dump(2) + "\n");
  if (!results.test) return;
  write_pictures(folder, *results.test, data, log);
  log.info("test, true classes down, predicted ones across:\n" +
           evaluate::classification_table(results.test->confusion, data.class_names));
}

}  // namespace convoy::recipes

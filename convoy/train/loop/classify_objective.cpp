// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/classify_objective.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <cstring>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/train/loop/evaluation_turns.h"

namespace convoy::train {
namespace {

// The model's result for one window.
struct WindowAnswer {
  float loss = 0;
  int32_t predicted = 0;
};

at::Tensor gathered_values(const data::SignalWindows& windows, const std::vector<int64_t>& rows) {
  at::Tensor x_NLC =
      at::empty({static_cast<int64_t>(rows.size()), windows.window_rows, windows.num_channels()});
  float* to = x_NLC.mutable_data_ptr<float>();
  for (const int64_t row : rows) {
    const std::span<const float> from = windows.window(row);
    to = std::copy(from.begin(), from.end(), to);
  }
  return x_NLC;
}

at::Tensor gathered_classes(const data::SignalWindows& windows, const std::vector<int64_t>& rows) {
  at::Tensor classes_N = at::empty({static_cast<int64_t>(rows.size())}, at::kLong);
  int64_t* to = classes_N.mutable_data_ptr<int64_t>();
  for (const int64_t row : rows) *to++ = windows.classes[static_cast<size_t>(row)];
  return classes_N;
}

at::Tensor smoothed_loss(const at::Tensor& scores, const at::Tensor& classes_N, double smoothing,
                         at::Reduction::Reduction reduction) {
  constexpr int64_t kNoIgnoredClass = -100;
  return at::cross_entropy_loss(scores, classes_N, {}, reduction, kNoIgnoredClass, smoothing);
}

std::vector<WindowAnswer> answers(const nn::SignalClassifier& model,
                                  const data::SignalWindows& windows,
                                  const std::vector<int64_t>& rows,
                                  const ClassifyOptions& options) {
  const at::NoGradGuard no_grad;
  const at::Tensor scores = model.scores(gathered_values(windows, rows).to(model.device()),
                                         {.training = false, .bf16 = options.bf16}, {});
  const at::Tensor losses =
      smoothed_loss(scores, gathered_classes(windows, rows).to(model.device()),
                    options.label_smoothing, at::Reduction::None)
          .cpu();
  const at::Tensor predicted = scores.argmax(1).cpu();
  std::vector<WindowAnswer> found;
  for (size_t index = 0; index < rows.size(); ++index)
    found.push_back({losses.const_data_ptr<float>()[index],
                     static_cast<int32_t>(predicted.const_data_ptr<int64_t>()[index])});
  return found;
}

// A rank without windows joins the pass of the others if the pass is collective.
void attend_pass(const nn::SignalClassifier& model, const data::SignalWindows& windows,
                 const ClassifyOptions& options) {
  if (model.residency() == nullptr || !model.residency()->is_collective()) return;
  answers(model, windows, {0}, options);
}

}  // namespace

std::optional<WindowFigures> evaluate_windows(const nn::SignalClassifier& model,
                                              const data::SignalWindows& windows,
                                              const ClassifyOptions& options, comm::Group& group,
                                              const std::function<bool()>& stop_requested) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t batch_size = options.eval_batch_size;
  std::vector<WindowAnswer> own;
  StopQuestion stop(group, stop_requested);
  for (int64_t turn = 0; turn < num_turns(windows.num_windows, batch_size, group); ++turn) {
    const std::vector<int64_t> rows = rows_of_turn(turn, batch_size, windows.num_windows, group);
    if (rows.empty()) {
      attend_pass(model, windows, options);
    } else {
      const std::vector<WindowAnswer> found = answers(model, windows, rows, options);
      own.insert(own.end(), found.begin(), found.end());
    }
    if (stop.ask_after(turn)) return std::nullopt;
  }
  const std::vector<std::string> all = group.all_gather_bytes(std::string_view(
      reinterpret_cast<const char*>(own.data()), own.size() * sizeof(WindowAnswer)));
  WindowFigures figures{.confusion = evaluate::ConfusionMatrix(model.spec().num_classes)};
  for (int64_t row = 0; row < windows.num_windows; ++row) {
    WindowAnswer answer;
    const std::string& theirs = all[static_cast<size_t>(row % group.size())];
    const size_t at = static_cast<size_t>(row / group.size()) * sizeof(WindowAnswer);
    CONVOY_INVARIANT(at + sizeof(WindowAnswer) <= theirs.size(), "window {} has no answer", row);
    std::memcpy(&answer, theirs.data() + at, sizeof(WindowAnswer));
    figures.loss_sum += answer.loss;
    figures.confusion.add(windows.classes[static_cast<size_t>(row)], answer.predicted);
  }
  figures.seconds = seconds_since(start);
  return figures;
}

ClassifyObjective::ClassifyObjective(const nn::SignalClassifier& model,
                                     const data::SignalWindows& windows,
                                     const data::EpochOrder& order,
                                     const data::SignalWindows& validation,
                                     const ClassifyOptions& options, EpochListener listener)
    : model_(model),
      windows_(windows),
      order_(order),
      validation_(validation),
      options_(options),
      listener_(std::move(listener)) {}

ClassifyObjective::Batch ClassifyObjective::prepare(data::StepPosition position, int64_t number,
                                                    int rank) const {
  const std::vector<int64_t> rows = order_.items(position, number, rank);
  const auto rows_of_step = static_cast<int64_t>(order_.global_batch(position).size());
  return {.place = {.position = position,
                    .number = number,
                    .step = {.rows = rows_of_step, .weight = static_cast<double>(rows_of_step)},
                    .has_rows = !rows.empty()},
          .x_NLC = gathered_values(windows_, rows).to(model_.device()),
          .classes_N = gathered_classes(windows_, rows).to(model_.device())};
}

void ClassifyObjective::begin(StepRange steps, int rank) {
  const int64_t accumulation = micro_batches_per_step();
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device().type()).getStream(device());
  batches_.emplace(std::max<int64_t>(0, steps.end - steps.first) * accumulation,
                   [this, steps, rank, accumulation, stream](int64_t index) {
                     const c10::StreamGuard on_stream(stream);
                     const int64_t step = steps.first + index / accumulation;
                     return prepare({step / steps_per_epoch(), step % steps_per_epoch()},
                                    index % accumulation, rank);
                   });
}

MicroBatchPosition ClassifyObjective::take() {
  batch_ = batches_->take();
  return batch_.place;
}

MicroBatchLoss ClassifyObjective::loss(const PassOptions& options) {
  const nn::SignalPass pass{
      .training = true, .keeps_statistics = batch_.place.has_rows, .bf16 = options_.bf16};
  if (!batch_.place.has_rows) {
    const at::Tensor idle = at::zeros({1, windows_.window_rows, windows_.num_channels()},
                                      at::TensorOptions().device(device()));
    return {.sum = model_.scores(idle, pass, options.draw_key).sum() * 0, .hits = {}};
  }
  const at::Tensor scores = model_.scores(batch_.x_NLC, pass, options.draw_key);
  return {
      .sum = smoothed_loss(scores, batch_.classes_N, options_.label_smoothing, at::Reduction::Sum),
      .hits = scores.detach().argmax(1).eq(batch_.classes_N).sum()};
}

std::optional<Evaluation> ClassifyObjective::evaluate(comm::Group& group,
                                                      const std::function<bool()>& stop_requested) {
  const std::optional<WindowFigures> figures =
      evaluate_windows(model_, validation_, options_, group, stop_requested);
  if (!figures) return std::nullopt;
  const evaluate::ClassificationFigures classes =
      evaluate::classification_figures(figures->confusion);
  return Evaluation{.loss = figures->loss(),
                    .rows = validation_.num_windows,
                    .batches = (validation_.num_windows + options_.eval_batch_size - 1) /
                               options_.eval_batch_size,
                    .seconds = figures->seconds,
                    .others = {{"accuracy", classes.accuracy}, {"macro_f1", classes.macro_f1}}};
}

void ClassifyObjective::epoch_done(int64_t epochs, const std::optional<Evaluation>& evaluation) {
  const EpochRecord& record = history_.close(epochs, evaluation);
  if (listener_) listener_(record);
}

}  // namespace convoy::train

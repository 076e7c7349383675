// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/loop/train_loop.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>

#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/machine/device/memory.h"
#include "convoy/machine/device/seed.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/loop/checkpoint_saver.h"
#include "convoy/train/loop/early_stopping.h"
#include "convoy/train/loop/weight_check.h"
#include "convoy/train/optim/clip.h"

namespace convoy::train {
namespace {

using Clock = std::chrono::steady_clock;

// The figures that each rank sends to all others at the end of a step.
struct RankFigures {
  double loss_sum = 0;
  double hits = 0;
  double squares = 0;  // squared norm of the gradients in its shards
  double peak_bytes = 0;
  double held_bytes = 0;
  double reserved_bytes = 0;
  double stop_requested = 0;
  double wait_seconds = 0;
};

// Sums over this rank's micro-batches of a step, on the device.
struct StepSums {
  StepSums(at::Device device, int64_t num_figures)
      : loss(at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device))),
        hits(at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(device))),
        figures(at::zeros({num_figures}, at::TensorOptions().dtype(at::kDouble).device(device))) {}
  at::Tensor loss;
  at::Tensor hits;
  at::Tensor figures;
};

// The figures that the ranks exchange at the end of a step.
struct ExchangedFigures {
  std::vector<RankFigures> ranks = {};
  std::vector<double> others = {};  // the objective's own figures, summed over the ranks
};

// Collective. Sums over ranks in their order, so that every run has the same sums.
std::vector<double> summed_over_ranks(comm::Group& group, const at::Tensor& own) {
  std::vector<int64_t> words(static_cast<size_t>(own.numel()));
  std::memcpy(words.data(), own.const_data_ptr<double>(), words.size() * sizeof(double));
  const std::vector<int64_t> all = comm::exchange_words(group, words);
  std::vector<double> sums(words.size(), 0);
  for (size_t place = 0; place < all.size(); ++place)
    sums[place % sums.size()] += std::bit_cast<double>(all[place]);
  return sums;
}

class Loop {
 public:
  Loop(const LoopParts& parts, const settings::TrainSettings& settings,
       const checkpoint::Progress& start)
      : parts_(parts),
        settings_(settings),
        recompute_(nn::recompute_of(settings.train.gradient_checkpointing)),
        progress_(start),
        steps_per_epoch_(parts.objective.steps_per_epoch()),
        total_steps_(total_steps(settings.train, steps_per_epoch_)),
        saver_(parts, settings.train.async_save),
        saved_step_(start.step) {
    parts.objective.begin({.first = start.step, .end = total_steps_}, parts.strategy.rank());
  }

  LoopResult run();

 private:
  bool at_epoch_end() const {
    return progress_.step % steps_per_epoch_ == 0 || progress_.step == total_steps_;
  }
  bool is_due(const std::string& strategy, int64_t interval) const;
  // The last epoch counts even if the run ends within it.
  int64_t epochs_begun() const {
    return (progress_.step + steps_per_epoch_ - 1) / steps_per_epoch_;
  }
  double epoch() const {
    return static_cast<double>(progress_.step) / static_cast<double>(steps_per_epoch_);
  }

  void train_step();
  StepTotals compute_gradients(StepSums& sums);
  void run_micro_batch(const MicroBatchPosition& micro_batch, StepSums& sums);
  ExchangedFigures exchange_figures(const StepSums& sums);
  double gradient_norm(const std::vector<RankFigures>& ranks) const;
  void require_finite(double loss, double grad_norm) const;
  void update_parameters(double lr, double grad_norm);
  void pass_over_step();
  void count_step(const StepTotals& totals);
  bool evaluation_is_due() const;
  bool evaluate();  // true when the figure is the best so far
  std::optional<LoopEnd> after_step();
  LoopEnd stop_before_step();
  void save(bool is_best, bool ends);

  const LoopParts& parts_;
  const settings::TrainSettings& settings_;
  const nn::Recompute recompute_;
  checkpoint::Progress progress_;
  int64_t steps_per_epoch_;
  int64_t total_steps_;
  std::optional<Evaluation> evaluation_;  // evaluation after the last step
  CheckpointSaver saver_;
  int64_t saved_step_;  // the step of the newest checkpoint
  bool stop_ = false;
  double waited_seconds_ = 0;  // time in collectives until the last report
};

bool Loop::is_due(const std::string& strategy, int64_t interval) const {
  if (strategy == "no") return false;
  if (strategy == "epoch" || interval == 0) return at_epoch_end();
  return progress_.step % interval == 0;
}

// The weight of the whole global batch, so that ranks, accumulation and packing never change a
// loss. A step without weight has a sum of 0.
double divisor_of(const StepTotals& totals) { return totals.weight > 0 ? totals.weight : 1; }

// Adds the losses of this rank's share to `sums`. Nothing waits for the device.
void Loop::run_micro_batch(const MicroBatchPosition& micro_batch, StepSums& sums) {
  const nn::Residency* const residency = parts_.objective.residency();
  if (!micro_batch.has_rows && (residency == nullptr || !residency->is_collective())) return;
  // Micro-batches are numbered over all ranks in the order of the plan, so with another number of
  // ranks the same micro-batch gets the same random numbers.
  const uint64_t key = device::draw_key(
      {.seed = settings_.seed,
       .epoch = micro_batch.position.epoch,
       .step = micro_batch.position.step,
       .micro_batch = micro_batch.number * parts_.strategy.world() + parts_.strategy.rank()});
  parts_.flight.set_phase("forward");
  const MicroBatchLoss loss =
      parts_.objective.loss({.draw_key = key,
                             .recompute = recompute_,
                             .keeps_inputs_on_host = settings_.train.activation_offload == "cpu",
                             .noise_alpha = settings_.train.neftune_noise_alpha});
  parts_.flight.set_phase("backward");
  loss.sum.div(divisor_of(micro_batch.step)).backward();
  sums.loss.add_(loss.sum.detach());
  if (loss.hits.defined()) sums.hits.add_(loss.hits);
  if (loss.figures.defined()) sums.figures.add_(loss.figures);
}

// The norm of the gradients of all parameters, each counted once.
double Loop::gradient_norm(const std::vector<RankFigures>& ranks) const {
  const int owners = parts_.strategy.num_owners();
  if (owners == parts_.strategy.world())  // unrounded
    return std::sqrt(ranks[static_cast<size_t>(parts_.strategy.rank())].squares);
  double sum = 0;
  for (const RankFigures& rank : ranks) sum += rank.squares;
  return std::sqrt(sum / owners);
}

// Runs the micro-batches of a step. Afterwards the shards' gradients are final. Returns the totals
// of the step's global batch.
StepTotals Loop::compute_gradients(StepSums& sums) {
  StepTotals totals;
  const int64_t grad_accum = parts_.objective.micro_batches_per_step();
  for (int64_t number = 0; number < grad_accum; ++number) {
    parts_.flight.set_phase("data");
    const MicroBatchPosition micro_batch = parts_.objective.take();
    totals = micro_batch.step;
    const bool last = number + 1 == grad_accum;
    parts_.strategy.begin_micro_batch(last ? parallel::MicroBatch::Last
                                           : parallel::MicroBatch::More);
    run_micro_batch(micro_batch, sums);
  }
  parts_.flight.set_phase("reduce");
  parts_.strategy.finish_gradients();
  return totals;
}

// Collective. The one wait of a step for its device.
ExchangedFigures Loop::exchange_figures(const StepSums& sums) {
  const at::Tensor squares =
      kernels::sum_of_squares(parallel::gradients_of(parts_.strategy.shards()));
  const at::Tensor figures =
      at::cat({at::stack({sums.loss, sums.hits, squares.to(sums.loss.device())}), sums.figures})
          .cpu();
  RankFigures own;
  own.loss_sum = figures[0].item<double>();
  own.hits = figures[1].item<double>();
  own.squares = figures[2].item<double>();
  const device::RankMemory memory = device::rank_memory(parts_.objective.device());
  own.peak_bytes = static_cast<double>(memory.peak_bytes);
  own.held_bytes = static_cast<double>(memory.held_bytes);
  own.reserved_bytes = static_cast<double>(memory.reserved_bytes);
  own.stop_requested = parts_.stop_requested.load() ? 1 : 0;
  const double waited_seconds = parts_.strategy.group().waited_seconds();
  own.wait_seconds = waited_seconds - waited_seconds_;
  waited_seconds_ = waited_seconds;
  ExchangedFigures exchanged{.ranks = comm::exchange(parts_.strategy.group(), own)};
  const int64_t num_others = sums.figures.numel();
  if (num_others > 0)
    exchanged.others =
        summed_over_ranks(parts_.strategy.group(), figures.narrow(0, 3, num_others).contiguous());
  return exchanged;
}

// The metrics of a step that the ranks' figures hold. `weight`: the weight of the global batch.
telemetry::StepMetrics metrics_of(const std::vector<RankFigures>& ranks, double weight) {
  telemetry::StepMetrics metrics;
  for (const RankFigures& rank : ranks) {
    metrics.loss += rank.loss_sum / weight;
    metrics.rank_losses.push_back(rank.loss_sum / weight * static_cast<double>(ranks.size()));
    metrics.rank_memory_bytes.push_back(static_cast<int64_t>(rank.peak_bytes));
    metrics.rank_held_bytes.push_back(static_cast<int64_t>(rank.held_bytes));
    if (rank.reserved_bytes >= 0)
      metrics.rank_reserved_bytes.push_back(static_cast<int64_t>(rank.reserved_bytes));
    if (ranks.size() > 1) metrics.rank_wait_seconds.push_back(rank.wait_seconds);
  }
  return metrics;
}

void Loop::require_finite(double loss, double grad_norm) const {
  if (std::isfinite(loss) && std::isfinite(grad_norm)) return;
  throw NumericError(fmt::format("loss {} and gradient norm {} at step {}: wanted finite figures",
                                 loss, grad_norm, progress_.step + 1),
                     {.hint = "lower train.learning_rate, or look at the rows of this step",
                      .rank = parts_.strategy.rank(),
                      .step = progress_.step + 1});
}

void Loop::update_parameters(double lr, double grad_norm) {
  parts_.flight.set_phase("optimize");
  saver_.before_update();
  parts_.optimizer.step(lr, optim::clip_coefficient(grad_norm, settings_.train.max_grad_norm));
  parts_.strategy.finish_step();
}

// A step of which nothing is learnt: gradients of zeros would still change weights, by the moments
// of earlier steps and by weight decay.
void Loop::pass_over_step() {
  parts_.optimizer.pass_over_step();
  parts_.strategy.finish_step();
}

void Loop::count_step(const StepTotals& totals) {
  progress_.step += 1;
  progress_.epoch = progress_.step / steps_per_epoch_;
  progress_.tokens_seen += totals.tokens;
  progress_.supervised_tokens_seen += totals.supervised_tokens;
  parts_.flight.set_step(progress_.step);
}

// Collective.
void Loop::train_step() {
  const auto start = Clock::now();
  const double lr = parts_.schedule.at(progress_.step);
  StepSums sums(parts_.objective.device(), parts_.objective.num_figures());
  const StepTotals totals = compute_gradients(sums);
  const ExchangedFigures figures = exchange_figures(sums);
  double hits = 0;
  for (const RankFigures& rank : figures.ranks) {
    hits += rank.hits;
    stop_ = stop_ || rank.stop_requested > 0;
  }
  telemetry::StepMetrics metrics = metrics_of(figures.ranks, divisor_of(totals));
  metrics.grad_norm = gradient_norm(figures.ranks);
  require_finite(metrics.loss, metrics.grad_norm);
  if (totals.weight > 0)
    update_parameters(lr, metrics.grad_norm);
  else
    pass_over_step();
  count_step(totals);
  metrics.seconds = seconds_since(start);
  parts_.objective.step_done({.loss = metrics.loss,
                              .rows = totals.rows,
                              .hits = std::llround(hits),
                              .learning_rate = lr,
                              .seconds = metrics.seconds});
  if (parts_.log == nullptr) return;
  metrics.step = progress_.step;
  metrics.epoch = epoch();
  metrics.learning_rate = lr;
  if (!figures.others.empty()) metrics.others = parts_.objective.step_figures(figures.others);
  metrics.rows = totals.rows;
  metrics.tokens = totals.tokens;
  metrics.supervised_tokens = totals.supervised_tokens;
  metrics.flops = totals.flops;
  const device::RankMemory after = device::rank_memory(parts_.objective.device());
  metrics.memory_bytes = after.held_bytes;
  metrics.peak_memory_bytes = after.peak_bytes;
  parts_.log->step(metrics);
}

bool Loop::evaluation_is_due() const {
  if (!parts_.objective.has_validation()) return false;
  return is_due(settings_.train.eval_strategy, settings_.train.eval_steps) ||
         (progress_.step == total_steps_ && settings_.train.final_eval);
}

bool Loop::evaluate() {
  parts_.flight.set_phase("evaluate");
  parts_.strategy.settle();
  evaluation_ = parts_.objective.evaluate(parts_.strategy.group(),
                                          [this] { return parts_.stop_requested.load(); });
  if (!evaluation_) {
    stop_ = true;
    return false;
  }
  progress_.evaluation_pending = false;
  const double deciding = deciding_figure(*evaluation_, settings_.train);
  if (parts_.log != nullptr)
    parts_.log->evaluation({.step = progress_.step,
                            .epoch = epoch(),
                            .loss = evaluation_->loss,
                            .rows = evaluation_->rows,
                            .batches = evaluation_->batches,
                            .supervised_tokens = evaluation_->supervised_tokens,
                            .seconds = evaluation_->seconds,
                            .others = evaluation_->others,
                            .deciding = deciding});
  // Every rank holds the same reduced figure, so every rank decides the same.
  return record_evaluation(progress_, deciding, settings_.train);
}

// Runs the evaluation and the checkpoint that are due after a step. Returns how the run ends by
// them, if it does.
std::optional<LoopEnd> Loop::after_step() {
  check_weights_when_due(parts_.strategy, settings_.parallel.check_weights_every, progress_.step);
  bool is_best = false;
  evaluation_.reset();
  // A stop request leaves little time: the state is saved at once, and the run that continues it
  // evaluates first.
  progress_.evaluation_pending = evaluation_is_due();
  if (progress_.evaluation_pending && !stop_) is_best = evaluate();
  if (at_epoch_end()) parts_.strategy.settle();
  if (at_epoch_end() && !progress_.evaluation_pending)
    parts_.objective.epoch_done(epochs_begun(), evaluation_);

  const bool finished = progress_.step == total_steps_;
  std::optional<LoopEnd> end;
  if (stop_ && (!finished || progress_.evaluation_pending))
    end = LoopEnd::Stopped;
  else if (finished)
    end = LoopEnd::Finished;
  else if (out_of_patience(progress_, settings_.train))
    end = LoopEnd::EarlyStopped;

  const bool saves = settings_.train.save_strategy != "no";
  const bool keep_best = is_best && settings_.train.load_best_model_at_end;
  if (stop_ || is_due(settings_.train.save_strategy, settings_.train.save_steps) ||
      (saves && (keep_best || end))) {
    save(is_best, end || stop_);
  }
  return end;
}

void Loop::save(bool is_best, bool ends) {
  parts_.strategy.settle();
  saver_.save(progress_, is_best);
  saved_step_ = progress_.step;
  if (ends) saver_.finish();
  // Rank 0's disk may take longer than a collective.
  if (!settings_.train.async_save || ends) parts_.strategy.group().wait_for_all();
}

// The objective was stopped on every rank while it prepared the next step.
LoopEnd Loop::stop_before_step() {
  if (saved_step_ != progress_.step) save(/*is_best=*/false, /*ends=*/true);
  return LoopEnd::Stopped;
}

LoopResult Loop::run() {
  parts_.flight.set_step(progress_.step);
  std::optional<LoopEnd> end;
  if (progress_.evaluation_pending)
    end = after_step();
  else if (progress_.step < total_steps_ && out_of_patience(progress_, settings_.train))
    end = LoopEnd::EarlyStopped;  // interrupted while it wrote its result: the training had ended
  while (!end && progress_.step < total_steps_) {
    try {
      train_step();
    } catch (const StopRequest&) {
      end = stop_before_step();
      break;
    }
    saver_.poll();
    end = after_step();
  }
  saver_.finish();
  parts_.strategy.settle();
  parts_.flight.set_phase("end");
  // Other ranks must not end their processes while rank 0 still writes: the launcher would wait for
  // rank 0 only a limited time.
  parts_.strategy.group().wait_for_all();
  return {.end = end.value_or(LoopEnd::Finished), .progress = progress_};
}

}  // namespace

int64_t total_steps(const settings::TrainingSettings& settings, int64_t steps_per_epoch) {
  if (settings.steps > 0) return settings.steps;
  return static_cast<int64_t>(
      std::ceil(settings.epochs * static_cast<double>(steps_per_epoch) - 1e-9));
}

LoopResult run_training_loop(const LoopParts& parts, const settings::TrainSettings& settings,
                             const checkpoint::Progress& start) {
  return Loop(parts, settings, start).run();
}

}  // namespace convoy::train

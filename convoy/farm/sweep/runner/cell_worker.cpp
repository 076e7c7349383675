// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/runner/cell_worker.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/farm/sweep/runner/cell_outcome.h"
#include "convoy/farm/sweep/runner/planned_cell.h"
#include "convoy/farm/sweep/runner/range_tally.h"
#include "convoy/farm/sweep/runner/sweep_store.h"
#include "convoy/farm/sweep/runner/task_failure.h"
#include "convoy/farm/workers/worker.h"

namespace convoy::sweep {
namespace {

using Clock = std::chrono::steady_clock;
using jobs::Lease;

// The work of one claim takes about this long: a kill loses at most this time, and a transaction
// costs little in comparison.
constexpr double kClaimSeconds = 1.0;
// Time between checks of the stop request, and between signs of life.
constexpr double kSliceSeconds = 0.25;
// A range is handed in when it is finished; ranges shorter than this are handed in together. So a
// kill loses one range of the worker, and the store gets no more transactions than a disk can sync.
constexpr double kHandInSeconds = 0.05;
constexpr int64_t kMostRangesPerClaim = 1000;
constexpr int64_t kMostUnits = int64_t{1} << 50;

int64_t microseconds_since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin).count();
}

struct Failed {
  jobs::Failure failure;
  TryAgain again = TryAgain::Yes;
};

Failed failure_of(std::exception_ptr error) {
  Failed failed;
  jobs::Failure& failure = failed.failure;
  try {
    std::rethrow_exception(std::move(error));
  } catch (const TaskFailure& known) {
    return {.failure = known.failure(), .again = known.again()};
  } catch (const std::bad_alloc&) {
    failure.kind = "memory";
    failure.message = "out of memory";
  } catch (const Error& known) {
    failure.kind = known.kind();
    failure.message = known.sentence();
  } catch (const std::exception& other) {
    failure.kind = "error";
    failure.message = other.what();
  }
  return failed;
}

class Worker : public workers::WorkSource {
 public:
  Worker(const WorkerOptions& options, const Workload& workload, jobs::JobStore& store)
      : options_(options), workload_(workload), store_(store) {}

  void run() {
    note("process {}", ::getpid());
    workers::LoopOptions loop{.name = options_.name, .stop_wanted = [this] { return ending(); }};
    for (const WorkerGroup& group : options_.groups) loop.groups.push_back(group.number);
    workers::run_loop(loop, *this, store_);
  }

 private:
  bool ending() const { return device_lost_ || options_.stop_wanted(); }

  // Claims from one group after another. The first group holds the guesses; a worker with a GPU
  // leaves it only when it has no open work.
  bool claim() override {
    for (size_t tried = 0; tried < options_.groups.size(); ++tried) {
      group_ = &options_.groups[next_group_];
      next_group_ = (next_group_ + 1) % options_.groups.size();
      leases_ = store_.claim({.group = group_->number,
                              .owner = options_.name,
                              .max_ranges = std::max(cells_together(), ranges_per_claim_),
                              .units_per_range = units_per_range(),
                              .lease = options_.lease});
      // Any worker may hold the last range of a cell, so idle workers check for complete cells.
      if (leases_.empty() && finish_complete(store_, group_->number) == 0) continue;
      if (!options_.gpu.empty()) next_group_ = 0;
      return true;
    }
    return false;
  }

  // A GPU computes many descents at once, each in a block of threads.
  int64_t cells_together() const {
    constexpr int64_t kOfGpu = 16;  // cells per lane of a CPU's vector
    return group_->cells_per_claim * (options_.gpu.empty() ? 1 : kOfGpu);
  }

  void compute() override {
    if (leases_.empty()) return;
    const auto begin = Clock::now();
    std::vector<Lease> cells;
    num_begun_ = 0;
    for (const Lease& lease : leases_) {
      if (ending() || seconds_since(begin) > 1.5 * kClaimSeconds) break;
      ++num_begun_;
      const PlannedCell planned = PlannedCell::parse(lease.parameters);
      if (planned.guesses > 0) {
        guess(lease, planned);
      } else {
        cells.push_back(lease);
      }
      if (cells.size() >= static_cast<size_t>(cells_together())) compute_all(cells);
    }
    compute_all(cells);
    const double each = seconds_since(begin) / static_cast<double>(std::max<size_t>(num_begun_, 1));
    ranges_per_claim_ = std::clamp<int64_t>(std::llround(kClaimSeconds / std::max(each, 1e-6)), 1,
                                            std::min(kMostRangesPerClaim, 8 * ranges_per_claim_));
  }

  void complete(bool /*last*/) override {
    hand_in();
    if (num_begun_ < leases_.size()) store_.release(options_.name);
    leases_.clear();
  }

  void idle() override { options_.tell({.kind = WorkerMessage::Kind::Idle}); }

  int64_t units_per_range() const {
    if (rate_ <= 0) return std::max<int64_t>(options_.first_range_guesses, 1);
    return std::clamp<int64_t>(static_cast<int64_t>(rate_ * kClaimSeconds), 1, kMostUnits);
  }

  void guess(const Lease& lease, const PlannedCell& planned) {
    options_.tell({.kind = WorkerMessage::Kind::Begin, .leases = {lease.number}});
    Clock::time_point begin;
    RangeTally range;
    int64_t done = 0;
    try {
      const GuessExperiment& experiment = experiment_of(lease, planned);
      // The time begins here, because a driver may first compile kernels for seconds.
      begin = Clock::now();
      while (done < lease.count &&
             (done == 0 || (!options_.stop_wanted() && seconds_since(begin) < 2 * kClaimSeconds))) {
        const int64_t slice = std::min(lease.count - done,
                                       slice_guesses(experiment, planned.stop, lease.first + done));
        const auto slice_begin = Clock::now();
        const RangeTally part = run_range(experiment, planned, lease.first + done, slice);
        range.append(part);
        done += slice;
        if (lease.first == 0 && range.stopped(planned.stop)) break;
        tell_computed(slice, part.total().accepted, slice_begin, experiment.expected_rate());
      }
    } catch (...) {
      const Failed failed = failure_of(std::current_exception());
      device_lost_ = failed.failure.kind == "device";
      fail(lease, failed);
      return;
    }
    learn_rate(done, seconds_since(begin));
    range.add_time(microseconds_since(begin));
    const std::string gpu = experiment_->gpu();
    if (!gpu.empty()) range.add_gpu(gpu);
    jobs::Completion completion{
        .lease = lease, .payload = range.text(), .count = done, .result = {}};
    if (lease.first == 0 && done == lease.task_units)
      completion.result = guess_result(planned, range.stopped(planned.stop).value_or(range.total()),
                                       effort(lease, range.microseconds(), gpu));
    pending_guesses_ += done;
    pending_accepted_ += range.total().accepted;
    add(std::move(completion), begin);
    if (planned.stop.any()) {
      // Hand in before any worker computes more of the cell.
      hand_in();
      finish_stopped(store_, {lease});
    }
    note("{} {} seed {}: guesses {} to {}, {} accepted, {:.3g} guesses/s",
         planned.cell.parameters.str(), planned.cell.method, planned.cell.seed, lease.first,
         lease.first + done, range.total().accepted, rate_);
  }

  void tell_computed(int64_t guesses, int64_t accepted, Clock::time_point begin,
                     double expected_rate) const {
    options_.tell({.kind = WorkerMessage::Kind::Computed,
                   .guesses = guesses,
                   .accepted = accepted,
                   .microseconds = microseconds_since(begin),
                   .expected_microseconds =
                       static_cast<int64_t>(static_cast<double>(guesses) / expected_rate * 1e6)});
  }

  // Learns from whole ranges only. If other processes compete for the core, a short pause proves
  // nothing, and a range that is much too long keeps its guesses from other workers.
  void learn_rate(int64_t guesses, double seconds) {
    constexpr double kLeastMeasured = 1e-3;
    const double measured = static_cast<double>(guesses) / std::max(seconds, kLeastMeasured);
    if (seconds < kLeastMeasured && measured < rate_)
      return;  // too short to give more than a lower bound
    rate_ = rate_ > 0 ? std::min(measured, 2 * rate_) : measured;
  }

  // If a cell has a stop rule, its slices end where the rule is checked.
  int64_t slice_guesses(const GuessExperiment& experiment, const StopRule& rule,
                        int64_t first) const {
    const double rate = rate_ > 0 ? rate_ : experiment.expected_rate();
    const int64_t to_rule =
        rule.any() ? checkpoint_begin(checkpoint_block(first) + 1) - first : kMostUnits;
    return std::clamp<int64_t>(static_cast<int64_t>(rate * kSliceSeconds), 1,
                               std::min(to_rule, kMostUnits));
  }

  // Making an experiment may cost more than computing a short range, so the last experiment is
  // kept.
  const GuessExperiment& experiment_of(const Lease& lease, const PlannedCell& planned) {
    if (experiment_task_ != lease.task) {
      // The last experiment is destroyed first, since this experiment may need its memory.
      experiment_task_ = -1;
      experiment_.reset();
      experiment_ = workload_.guesses(planned.cell);
      experiment_task_ = lease.task;
    }
    return *experiment_;
  }

  // Computes all cells and empties `leases`. A cell that failed before is computed alone, so that
  // it cannot make other cells fail.
  void compute_all(std::vector<Lease>& leases) {
    std::vector<Lease> together;
    for (const Lease& lease : leases) {
      if (lease.attempt > 1) {
        compute({lease});
      } else {
        together.push_back(lease);
      }
    }
    leases.clear();
    if (!together.empty()) compute(together);
  }

  void compute(const std::vector<Lease>& leases) {
    if (options_.stop_wanted()) return;  // leases that are not begun are given back
    WorkerMessage message{.kind = WorkerMessage::Kind::Begin};
    std::vector<Cell> cells;
    for (const Lease& lease : leases) {
      message.leases.push_back(lease.number);
      cells.push_back(PlannedCell::parse(lease.parameters).cell);
    }
    options_.tell(message);
    const auto begin = Clock::now();
    std::vector<CellOutcome> outcomes;
    try {
      outcomes = workload_.compute(cells);
    } catch (...) {
      const Failed failed = failure_of(std::current_exception());
      device_lost_ = failed.failure.kind == "device";
      if (device_lost_ || leases.size() == 1) {
        for (const Lease& lease : leases) fail(lease, failed);
        return;
      }
      // Half of the cells need half of the memory. In the end the cell that is too large is alone.
      const auto middle = leases.begin() + static_cast<int64_t>(leases.size() / 2);
      compute({leases.begin(), middle});
      compute({middle, leases.end()});
      return;
    }
    CONVOY_INVARIANT(outcomes.size() == leases.size(), "{} outcomes of {} cells", outcomes.size(),
                     leases.size());
    const int64_t spent = microseconds_since(begin);
    options_.tell({.kind = WorkerMessage::Kind::Computed,
                   .cells = static_cast<int64_t>(leases.size()),
                   .microseconds = spent});
    const int64_t each = spent / static_cast<int64_t>(leases.size());
    for (size_t at = 0; at < leases.size(); ++at)
      hand_in_outcome(leases[at], outcomes[at], each, begin);
    // Other programs are compared with these values from now on, so they are handed in at once.
    if (std::any_of(outcomes.begin(), outcomes.end(),
                    [](const CellOutcome& one) { return std::isfinite(one.at_step); }))
      hand_in();
  }

  void hand_in_outcome(const Lease& lease, const CellOutcome& outcome, int64_t microseconds,
                       Clock::time_point begin) {
    const jobs::Result result = outcome_result(outcome, effort(lease, microseconds, outcome.gpu));
    note("{}: value {} after {} in {:.3g} s", lease.parameters, outcome.value,
         counted(outcome.steps, "step"), static_cast<double>(microseconds) * 1e-6);
    add({.lease = lease, .payload = "", .result = result}, begin);
  }

  Effort effort(const Lease& lease, int64_t microseconds, const std::string& gpu) const {
    return {.microseconds = microseconds,
            .attempts = lease.attempt,
            .device = gpu.empty() ? options_.device : gpu};
  }

  void fail(const Lease& lease, const Failed& failed) {
    const jobs::Failure& failure = failed.failure;
    options_.tell({.kind = WorkerMessage::Kind::Failure,
                   .text = fmt::format("{}: attempt {} failed: {}: {}", lease.parameters,
                                       lease.attempt, failure.kind, failure.message)});
    const std::vector<jobs::RangeFailure> one = {{.lease = lease, .failure = failure}};
    const auto outcomes =
        store_.fail(one, failed.again == TryAgain::Yes ? options_.max_attempts : 1);
    if (outcomes.at(0) == jobs::FailOutcome::TaskFailed)
      options_.tell({.kind = WorkerMessage::Kind::CellFailed, .text = way_of(failure)});
  }

  // `begin`: the time at which the computation began.
  void add(jobs::Completion completion, Clock::time_point begin) {
    if (pending_.empty()) oldest_pending_ = begin;
    pending_.push_back(std::move(completion));
    if (seconds_since(oldest_pending_) >= kHandInSeconds) hand_in();
  }

  void hand_in() {
    if (pending_.empty()) return;
    const auto receipts = store_.complete(pending_, merge_range_payloads);
    WorkerMessage message{.kind = WorkerMessage::Kind::Stored,
                          .guesses = pending_guesses_,
                          .accepted = pending_accepted_};
    for (const jobs::Receipt& receipt : receipts)
      if (receipt.counted && receipt.units_done == receipt.units) ++message.cells;
    pending_.clear();
    pending_guesses_ = pending_accepted_ = 0;
    options_.tell(message);
  }

  template <class... Values>
  void note(fmt::format_string<Values...> text, Values&&... values) const {
    if (options_.notes)
      options_.tell({.kind = WorkerMessage::Kind::Note,
                     .text = fmt::format(text, std::forward<Values>(values)...)});
  }

  const WorkerOptions& options_;
  const Workload& workload_;
  jobs::JobStore& store_;
  const WorkerGroup* group_ = nullptr;  // the group of the last claim
  size_t next_group_ = 0;
  std::vector<Lease> leases_;  // leases of the last claim
  size_t num_begun_ = 0;       // number of leases that are begun
  double rate_ = 0;            // guesses per second
  bool device_lost_ = false;
  int64_t ranges_per_claim_ = 1;
  std::unique_ptr<GuessExperiment> experiment_;
  int64_t experiment_task_ = -1;
  std::vector<jobs::Completion> pending_;
  int64_t pending_guesses_ = 0, pending_accepted_ = 0;  // guesses in the pending ranges
  Clock::time_point oldest_pending_;
};

}  // namespace

void run_worker(const WorkerOptions& options, const Workload& workload, jobs::JobStore& store) {
  Worker(options, workload, store).run();
}

}  // namespace convoy::sweep

// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/supervisor.h"

#include <csignal>

#include "convoy/core/base/error.h"
#include "convoy/machine/processes/reserved_port.h"

namespace convoy::launch {
namespace {

using rendezvous::Assignment;
using rendezvous::AttemptEnd;
using rendezvous::FailureCause;
using rendezvous::NodeLink;
using rendezvous::NodeOffer;
using rendezvous::Notice;
using rendezvous::Turn;

// The other nodes as an attempt's loop uses them.
class LinkedPeers : public Peers {
 public:
  explicit LinkedPeers(NodeLink& link) : link_(link) {}

  int descriptor() const override { return link_.descriptor(); }

  std::optional<PeerOrder> next() override {
    const std::optional<Notice> notice = link_.next();
    if (!notice) return std::nullopt;
    PeerOrder order;
    order.exit_code = notice->exit_code;
    switch (notice->kind) {
      case Notice::Kind::StopForResize:
      case Notice::Kind::StopRequested:
        order.kind = notice->kind == Notice::Kind::StopForResize ? PeerOrder::Kind::Resize
                                                                 : PeerOrder::Kind::Stop;
        order.signal = notice->signal;
        break;
      case Notice::Kind::StopForFailure:
      case Notice::Kind::PeerNodeLost:
        order.sentence = notice->cause.text();
        order.rank = notice->cause.rank;
        order.last_lines = notice->cause.last_lines;
        break;
      case Notice::Kind::ShutDown:
      case Notice::Kind::CoordinatorLost:
      case Notice::Kind::Refused:
        order.sentence = notice->words;
        break;
    }
    return order;
  }

  void report_failure(const RankEnd& end) override { link_.report_failure(cause_of(end)); }
  void report_stop(int signal) override { link_.report_stop_request(signal); }

  static FailureCause cause_of(const RankEnd& end) {
    FailureCause cause;
    cause.exit_code = end.exit_code;
    cause.rank = end.rank;
    cause.sentence = end.sentence;
    cause.last_lines = end_of_text(end.last_lines);
    return cause;
  }

 private:
  // Whole lines, as far as they fit.
  static std::string end_of_text(const std::string& lines) {
    constexpr size_t kMostBytes = 4 << 10;
    if (lines.size() <= kMostBytes) return lines;
    const size_t begin = lines.find('\n', lines.size() - kMostBytes);
    return lines.substr(begin == std::string::npos ? lines.size() - kMostBytes : begin + 1);
  }

  NodeLink& link_;
};

// A convoy-worker that failed before its first step has made none: that is known, and a crash loop
// there must end.
std::optional<int64_t> progress_of(const JobPlan& plan, const LaunchReport& report) {
  if (plan.own_program) return report.progress.value_or(0);
  return report.progress;
}

AttemptEnd end_of(const JobPlan& plan, const LaunchReport& report) {
  AttemptEnd end;
  for (const RankEnd& rank : report.ends)
    if (!rank.still_ran()) end.exit_codes.push_back(rank.exit_code);
  end.progress = progress_of(plan, report);
  end.flights = report.flights;
  if (report.root_cause >= 0)
    end.cause = LinkedPeers::cause_of(report.ends[static_cast<size_t>(report.root_cause)]);
  return end;
}

JobPlace place_of(const JobPlace& known, const Assignment& assignment) {
  JobPlace job = known;
  job.node_rank = assignment.node_rank;
  job.num_nodes = assignment.num_nodes();
  job.first_rank = assignment.first_rank;
  job.world_size = assignment.world_size;
  job.master_address = assignment.master_address;
  job.master_port = assignment.master_port;
  job.restart_count = assignment.attempt;
  return job;
}

LaunchPlan plan_of(const JobPlan& plan, const Assignment& assignment) {
  LaunchPlan attempt = plan.attempt;
  attempt.job = place_of(plan.attempt.job, assignment);
  if (plan.own_program && !assignment.store_address.empty()) {
    attempt.environment["CONVOY_STORE_ADDRESS"] = assignment.store_address;
    attempt.environment["CONVOY_OWN_ADDRESS"] = assignment.own_address;
    attempt.environment[rendezvous::JobToken::kVariable] = plan.join->token.for_worker();
  }
  const NodeOffer* const offer = plan.join ? &plan.join->link.offer : nullptr;
  if (plan.own_program && offer != nullptr && offer->min_nodes < offer->max_nodes)
    attempt.environment["CONVOY_FULL_WORLD_SIZE"] =
        std::to_string(offer->max_nodes * offer->num_local_ranks);
  return attempt;
}

LaunchReport stopped_while_waiting(int signal) {
  LaunchReport report;
  report.stop_signal = signal;
  report.exit_code = 128 + signal;
  return report;
}

// The coordinator's last message decides the exit code; the location of the cause decides whose
// sentence comes first.
LaunchReport concluded(LaunchReport report, const Notice& end) {
  // A stop of this node stays a stop though others succeeded.
  if (end.exit_code != 0 || report.stop_signal == 0) report.exit_code = end.exit_code;
  if (!end.verdict.empty()) report.verdict = end.verdict;
  // Ranks that saved and left on request, here or elsewhere, have not failed.
  if (end.exit_code != 0 && end.exit_code != kStopped && report.root_cause < 0 &&
      !report.peer_failure && report.stop_signal == 0) {
    report.peer_failure.emplace();
    report.peer_failure->exit_code = end.exit_code;
    report.peer_failure->sentence = end.words;
  }
  return report;
}

// Ranks that can not even be started here are the root cause for the other nodes too.
LaunchReport run_attempt(const LaunchPlan& plan, processes::SignalStream& signals, NodeLink& link) {
  LinkedPeers peers(link);
  try {
    return run_ranks(plan, signals, &peers);
  } catch (const Error& error) {
    FailureCause cause;
    cause.exit_code = static_cast<int>(error.code());
    cause.sentence = error.sentence();
    link.report_failure(cause);
    AttemptEnd end;
    end.exit_codes = {cause.exit_code};
    end.cause = std::move(cause);
    link.report_attempt_end(std::move(end));
    throw;
  }
}

// An elastic job may go on without this node; whether it does is no more its business.
bool leaves_when_stopped(const JobPlan& plan) {
  const NodeOffer& offer = plan.join->link.offer;
  return offer.min_nodes < offer.max_nodes && plan.coordinator == nullptr;
}

// Asked to stop while this node waits for the others. True: it leaves now. Once its own ranks have
// ended the others may still be saving, and they need the coordinator that may be here, so the
// first request is only passed on.
bool leaves_while_waiting(const JobPlan& plan, int signal, NodeLink& link, LaunchReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (report.ends.empty() || leaves_when_stopped(plan)) return true;
  if (report.stop_repeats_until) return now >= *report.stop_repeats_until;
  if (report.stop_signal == 0) link.report_stop_request(SIGTERM);
  report.stop_signal = signal;
  report.stop_repeats_until = now + plan.attempt.stop_repeat;
  return false;
}

LaunchReport run_with_others(const JobPlan& plan) {
  processes::SignalStream signals(plan.attempt.stop_signals);
  NodeLink link(plan.join->link, plan.join->token);
  LaunchReport report;
  while (true) {
    const processes::ReservedPort port;
    const Turn turn = link.wait_for_assignment(port.number(), signals.descriptor());
    if (turn.kind == Turn::Kind::Ended) {
      if (turn.end.exit_code == kStopped && report.stop_signal == 0) plan.log.info(turn.end.words);
      return concluded(std::move(report), turn.end);
    }
    if (turn.kind == Turn::Kind::Interrupted) {
      const std::optional<int> signal = signals.next();
      if (!signal || !processes::contains(plan.attempt.stop_signals, *signal)) continue;
      if (!leaves_while_waiting(plan, *signal, link, report)) continue;
      link.leave();
      return stopped_while_waiting(*signal);
    }
    report = run_attempt(plan_of(plan, turn.assignment), signals, link);
    if (report.failed() && plan.tells_failures) plan.log.warning(failure_sentence(report));
    link.report_attempt_end(end_of(plan, report));
    if (report.stop_signal != 0 && leaves_when_stopped(plan)) {
      link.leave();
      return report;
    }
  }
}

LaunchReport run_alone(const JobPlan& plan) {
  processes::SignalStream signals(plan.attempt.stop_signals);
  rendezvous::RestartPolicy policy(plan.restarts);
  LaunchPlan attempt = plan.attempt;
  while (true) {
    attempt.job.restart_count = plan.attempt.job.restart_count + policy.attempt();
    LaunchReport report = run_ranks(attempt, signals, nullptr);
    if (!report.failed() || report.stop_signal != 0 || plan.restarts.max_restarts == 0)
      return report;
    const rendezvous::RestartDecision decision =
        policy.record_failure(report.exit_code, progress_of(plan, report));
    report.exit_code = decision.exit_code;
    if (!decision.restart()) {
      plan.log.warning(fmt::format("no restart: {}", decision.reason));
      return report;
    }
    plan.log.warning(fmt::format("{}; {}", failure_sentence(report), decision.reason));
  }
}

}  // namespace

LaunchReport run_job(const JobPlan& plan) {
  return plan.join ? run_with_others(plan) : run_alone(plan);
}

}  // namespace convoy::launch

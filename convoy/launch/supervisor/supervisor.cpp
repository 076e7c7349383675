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
using rendezvous::JoinOutcome;
using rendezvous::NodeLink;
using rendezvous::NodeOffer;
using rendezvous::Notice;

// The other nodes in the form that the loop of an attempt uses, over a NodeLink.
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
  // The last whole lines that fit into kMostBytes.
  static std::string end_of_text(const std::string& lines) {
    constexpr size_t kMostBytes = 4 << 10;
    if (lines.size() <= kMostBytes) return lines;
    const size_t begin = lines.find('\n', lines.size() - kMostBytes);
    return lines.substr(begin == std::string::npos ? lines.size() - kMostBytes : begin + 1);
  }

  NodeLink& link_;
};

// A convoy-worker that failed before its first step has made no progress. This is 0 and not
// unknown, so that a crash loop ends.
std::optional<int64_t> progress_of(const JobSpec& spec, const LaunchReport& report) {
  if (spec.own_program) return report.progress.value_or(0);
  return report.progress;
}

AttemptEnd end_of(const JobSpec& spec, const LaunchReport& report) {
  AttemptEnd end;
  for (const RankEnd& rank : report.ends)
    if (!rank.still_ran()) end.exit_codes.push_back(rank.exit_code);
  end.progress = progress_of(spec, report);
  end.flights = report.flights;
  if (report.root_cause >= 0)
    end.cause = LinkedPeers::cause_of(report.ends[static_cast<size_t>(report.root_cause)]);
  return end;
}

JobLayout layout_of(const JobLayout& known, const Assignment& assignment) {
  JobLayout job = known;
  job.node_rank = assignment.node_rank;
  job.num_nodes = assignment.num_nodes();
  job.first_rank = assignment.first_rank;
  job.world_size = assignment.world_size;
  job.master_address = assignment.master_address;
  job.master_port = assignment.master_port;
  job.restart_count = assignment.attempt;
  return job;
}

LaunchSpec spec_of(const JobSpec& spec, const Assignment& assignment) {
  LaunchSpec attempt = spec.attempt;
  attempt.job = layout_of(spec.attempt.job, assignment);
  if (spec.own_program && !assignment.store_address.empty()) {
    attempt.environment["CONVOY_STORE_ADDRESS"] = assignment.store_address;
    attempt.environment["CONVOY_OWN_ADDRESS"] = assignment.own_address;
    attempt.environment[rendezvous::JobToken::kVariable] = spec.join->token.for_worker();
  }
  const NodeOffer* const offer = spec.join ? &spec.join->link.offer : nullptr;
  if (spec.own_program && offer != nullptr && offer->min_nodes < offer->max_nodes)
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
  // A stop of this node keeps its exit code even if other nodes succeeded.
  if (end.exit_code != 0 || report.stop_signal == 0) report.exit_code = end.exit_code;
  if (!end.diagnosis.empty()) report.diagnosis = end.diagnosis;
  // Ranks that saved and left on request, here or elsewhere, have not failed.
  if (end.exit_code != 0 && end.exit_code != kStopped && report.root_cause < 0 &&
      !report.peer_failure && report.stop_signal == 0) {
    report.peer_failure.emplace();
    report.peer_failure->exit_code = end.exit_code;
    report.peer_failure->sentence = end.words;
  }
  return report;
}

// Ranks that cannot even be started here are the root cause for the other nodes too.
LaunchReport run_attempt(const LaunchSpec& spec, processes::SignalStream& signals, NodeLink& link) {
  LinkedPeers peers(link);
  try {
    return run_ranks(spec, signals, &peers);
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

// True when this node leaves on a stop request: an elastic job may go on without it.
bool leaves_when_stopped(const JobSpec& spec) {
  const NodeOffer& offer = spec.join->link.offer;
  return offer.min_nodes < offer.max_nodes && spec.coordinator == nullptr;
}

// Handles a stop request while this node waits for the others. True: the node leaves now. After its
// own ranks have ended, ranks of other nodes may still be saving. They need the coordinator, which
// may be here, so the first request is only passed on.
bool leaves_while_waiting(const JobSpec& spec, int signal, NodeLink& link, LaunchReport& report) {
  const auto now = std::chrono::steady_clock::now();
  if (report.ends.empty() || leaves_when_stopped(spec)) return true;
  if (report.stop_repeats_until) return now >= *report.stop_repeats_until;
  if (report.stop_signal == 0) link.report_stop_request(SIGTERM);
  report.stop_signal = signal;
  report.stop_repeats_until = now + spec.attempt.stop_repeat;
  return false;
}

LaunchReport run_with_others(const JobSpec& spec) {
  processes::SignalStream signals(spec.attempt.stop_signals);
  NodeLink link(spec.join->link, spec.join->token);
  LaunchReport report;
  while (true) {
    const processes::ReservedPort port;
    const JoinOutcome outcome = link.wait_for_assignment(port.number(), signals.descriptor());
    if (outcome.kind == JoinOutcome::Kind::Ended) {
      if (outcome.end.exit_code == kStopped && report.stop_signal == 0)
        spec.log.info(outcome.end.words);
      return concluded(std::move(report), outcome.end);
    }
    if (outcome.kind == JoinOutcome::Kind::Interrupted) {
      const std::optional<int> signal = signals.next();
      if (!signal || !processes::contains(spec.attempt.stop_signals, *signal)) continue;
      if (!leaves_while_waiting(spec, *signal, link, report)) continue;
      link.leave();
      return stopped_while_waiting(*signal);
    }
    report = run_attempt(spec_of(spec, outcome.assignment), signals, link);
    if (report.failed() && spec.reports_failures) spec.log.warning(failure_sentence(report));
    link.report_attempt_end(end_of(spec, report));
    if (report.stop_signal != 0 && leaves_when_stopped(spec)) {
      link.leave();
      return report;
    }
  }
}

LaunchReport run_alone(const JobSpec& spec) {
  processes::SignalStream signals(spec.attempt.stop_signals);
  rendezvous::RestartPolicy policy(spec.restarts);
  LaunchSpec attempt = spec.attempt;
  while (true) {
    attempt.job.restart_count = spec.attempt.job.restart_count + policy.attempt();
    LaunchReport report = run_ranks(attempt, signals, nullptr);
    if (!report.failed() || report.stop_signal != 0 || spec.restarts.max_restarts == 0)
      return report;
    const rendezvous::RestartDecision decision =
        policy.record_failure(report.exit_code, progress_of(spec, report));
    report.exit_code = decision.exit_code;
    if (!decision.restart()) {
      spec.log.warning(fmt::format("no restart: {}", decision.reason));
      return report;
    }
    spec.log.warning(fmt::format("{}; {}", failure_sentence(report), decision.reason));
  }
}

}  // namespace

LaunchReport run_job(const JobSpec& spec) {
  return spec.join ? run_with_others(spec) : run_alone(spec);
}

}  // namespace convoy::launch

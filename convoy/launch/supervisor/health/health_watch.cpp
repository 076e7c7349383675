// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/health/health_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/launch/supervisor/health/collective_diagnosis.h"
#include "convoy/launch/supervisor/health/flight_text.h"
#include "convoy/launch/supervisor/health/process_state.h"
#include "convoy/launch/supervisor/health/straggler.h"

namespace convoy::launch {
namespace {

using std::chrono::milliseconds;

std::string why_silent(char letter) {
  switch (letter) {
    case 'T':
      return "is stopped (SIGSTOP)";
    case 't':
      return "is held by a debugger";
    case 'D':
      return "waits for a device or disk";
    case 'R':
      return "is running, but not its heartbeat";
    default:
      return "has fallen silent";
  }
}

std::string name_of(const telemetry::RankFlight& flight, pid_t pid) {
  return fmt::format("rank {} (process {})", flight.rank, pid);
}

// The process to watch. The rank may be a script that runs the program which writes heartbeats:
// this program is watched, unless its number means another process here, since it may run in a
// container of its own.
pid_t watched_process(pid_t pid, const telemetry::RankFlight& flight) {
  const auto writer = static_cast<pid_t>(flight.pid);
  if (!flight.attached() || writer == pid) return pid;
  const std::optional<ProcessState> state = read_process_state(writer);
  return state && state->group == pid ? writer : pid;
}

// The start of a time over which a process's use of processors is measured.
struct CpuSample {
  pid_t pid = -1;
  HealthWatch::Clock::time_point time = {};
  double cpu_seconds = 0;
};

std::optional<CpuSample> sample_cpu(pid_t pid, const telemetry::FlightPage& page,
                                    HealthWatch::Clock::time_point now) {
  if (pid <= 0) return std::nullopt;
  const pid_t watched = watched_process(pid, page.read(0));
  const auto state = read_process_state(watched);
  if (!state) return std::nullopt;
  return CpuSample{.pid = watched, .time = now, .cpu_seconds = state->cpu_seconds};
}

std::string use_words(const std::optional<CpuSample>& since, HealthWatch::Clock::time_point now) {
  if (!since) return "";
  const double passed = std::chrono::duration<double>(now - since->time).count();
  const auto state = read_process_state(since->pid);
  if (!state || passed <= 0) return "";
  return fmt::format(" and uses {:.0f} % of a processor",
                     100 * (state->cpu_seconds - since->cpu_seconds) / passed);
}

}  // namespace

struct HealthWatch::Rank {
  pid_t pid = -1;  // -1: does not run
  int64_t num_beats = 0;
  milliseconds quiet{0};  // time without a beat or stopped; pauses of this launcher do not count
  std::optional<HealthKind> reported = {};
  bool was_straggler = false;
  std::optional<CpuSample> since_wait = {};  // when others began to wait for it
  std::optional<CpuSample> since_window = {};
};

HealthWatch::HealthWatch(const FlightPages& pages, HealthOptions options)
    : pages_(pages), options_(options), ranks_(static_cast<size_t>(pages.size())) {}

HealthWatch::~HealthWatch() = default;

void HealthWatch::started(int local_rank, pid_t pid) {
  ranks_[static_cast<size_t>(local_rank)] = Rank{.pid = pid};
  if (!looked_at_) looked_at_ = Clock::now();
}

void HealthWatch::ended(int local_rank) { ranks_[static_cast<size_t>(local_rank)].pid = -1; }

std::optional<HealthWatch::Clock::time_point> HealthWatch::next_deadline() const {
  const bool any =
      std::any_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) { return rank.pid > 0; });
  if (!any || !looked_at_) return std::nullopt;
  return *looked_at_ + options_.interval;
}

std::vector<HealthNotice> HealthWatch::check(Clock::time_point now) {
  const auto deadline = next_deadline();
  if (!deadline || now < *deadline) return {};
  // Time in which this launcher did not run (the machine slept, it was itself stopped or starved)
  // proves nothing about the ranks, which may not have run either.
  const auto seen =
      std::min(std::chrono::duration_cast<milliseconds>(now - *looked_at_), 2 * options_.interval);
  looked_at_ = now;
  std::vector<HealthNotice> notices;
  for (int local_rank = 0; local_rank < pages_.size(); ++local_rank)
    if (ranks_[static_cast<size_t>(local_rank)].pid > 0) check_rank(local_rank, seen, notices);
  check_slow_ranks(now, notices);
  check_straggler(now, notices);
  return notices;
}

void HealthWatch::check_rank(int local_rank, milliseconds seen,
                             std::vector<HealthNotice>& notices) {
  Rank& rank = ranks_[static_cast<size_t>(local_rank)];
  const telemetry::RankFlight flight = pages_.of(local_rank).read(0);
  const bool beats = flight.attached() && !flight.ended;
  if (beats && flight.num_beats != rank.num_beats) {
    rank.num_beats = flight.num_beats;
    recover(rank, flight, notices);
    return;
  }
  const pid_t pid = watched_process(rank.pid, flight);
  const std::optional<ProcessState> state = read_process_state(pid);
  if (!state || state->letter == 'Z' || state->letter == 'X') return;
  if (!beats && state->letter != 'T') {
    recover(rank, flight, notices);
    return;
  }
  rank.quiet += seen;
  if (rank.quiet < options_.silent_after) return;
  HealthNotice notice;
  notice.rank = flight.rank;
  std::string words = why_silent(state->letter);
  if (!beats || state->letter == 't') {
    notice.kind = HealthKind::Stopped;
  } else if (rank.quiet < options_.core_file_limit && is_dumping_core(pid)) {
    notice.kind = HealthKind::CoreFile;
    words = "has crashed and writes its core file";
  }
  if (rank.reported == notice.kind) return;
  rank.reported = notice.kind;
  notice.fatal = notice.kind == HealthKind::Silent;
  notice.sentence = fmt::format("{} {}: {} for {:.1f} s", name_of(flight, pid), words,
                                beats ? "no heartbeat" : "it has not run",
                                std::chrono::duration<double>(rank.quiet).count());
  if (beats && !flight.phase.empty())
    notice.sentence += fmt::format(", in phase '{}'", flight.phase);
  notices.push_back(std::move(notice));
}

void HealthWatch::recover(Rank& rank, const telemetry::RankFlight& flight,
                          std::vector<HealthNotice>& notices) {
  if (rank.reported)
    notices.push_back(
        {.kind = HealthKind::Recovered,
         .rank = flight.rank,
         .sentence = fmt::format("{} goes on after {:.1f} s", name_of(flight, rank.pid),
                                 std::chrono::duration<double>(rank.quiet).count())});
  rank.reported.reset();
  rank.quiet = milliseconds(0);
}

void HealthWatch::check_slow_ranks(Clock::time_point now, std::vector<HealthNotice>& notices) {
  int64_t longest_us = -1;
  for (int local_rank = 0; local_rank < pages_.size(); ++local_rank)
    if (ranks_[static_cast<size_t>(local_rank)].pid > 0)
      longest_us = std::max(longest_us, pages_.of(local_rank).waiting_us());
  const int64_t slow_us = std::chrono::microseconds(options_.slow_after).count();
  if (longest_us < slow_us / 2) {
    for (Rank& rank : ranks_) rank.since_wait.reset();
  } else {
    for (int local_rank = 0; local_rank < pages_.size(); ++local_rank) {
      Rank& rank = ranks_[static_cast<size_t>(local_rank)];
      if (!rank.since_wait) rank.since_wait = sample_cpu(rank.pid, pages_.of(local_rank), now);
    }
  }
  if (episode_ && longest_us < episode_->waited_us) end_episode(notices);
  if (episode_) episode_->waited_us = std::max(episode_->waited_us, longest_us);
  if (episode_)
    check_stuck(now, notices);
  else if (longest_us >= slow_us)
    begin_episode(longest_us, now, notices);
}

// The slow rank may have arrived meanwhile, but at a different collective. Then the job is stuck.
void HealthWatch::check_stuck(Clock::time_point now, std::vector<HealthNotice>& notices) {
  if (episode_->fails_at && now < *episode_->fails_at) return;
  const CollectiveDiagnosis diagnosis = diagnose_collectives(pages_.read());
  if (diagnosis.kind != DiagnosisKind::Differs && diagnosis.kind != DiagnosisKind::Crossed) {
    episode_->fails_at.reset();
    return;
  }
  HealthNotice notice{.kind = HealthKind::Stuck, .rank = diagnosis.ranks.front()};
  notice.fatal = episode_->fails_at.has_value();
  notice.sentence = notice.fatal ? fmt::format(
                                       "ranks cannot go on: they have waited {} for each other in "
                                       "different collectives",
                                       seconds_text(episode_->waited_us))
                                 : diagnosis.text;
  episode_->fails_at = notice.fatal ? Clock::time_point::max() : now + options_.stuck_after;
  notices.push_back(std::move(notice));
}

void HealthWatch::check_straggler(Clock::time_point now, std::vector<HealthNotice>& notices) {
  if (!window_start_) window_start_ = now;
  if (now < *window_start_ + options_.straggler_window) return;
  const auto found = find_straggler(pages_.read(), options_.straggler_window);
  for (int local_rank = 0; found && local_rank < pages_.size(); ++local_rank) {
    Rank& rank = ranks_[static_cast<size_t>(local_rank)];
    if (pages_.of(local_rank).rank() != found->rank || rank.pid <= 0 || rank.was_straggler)
      continue;
    rank.was_straggler = true;
    notices.push_back(
        {.kind = HealthKind::Straggler,
         .rank = found->rank,
         .sentence = fmt::format("rank {} holds the others up{}: it came last to {:.0f} % of {} "
                                 "collectives in {:.0f} s, of "
                                 "which they waited {:.0f} %",
                                 found->rank, use_words(rank.since_window, now),
                                 100 * found->share_last, found->num_collectives,
                                 std::chrono::duration<double>(options_.straggler_window).count(),
                                 100 * found->others_wait_share)});
  }
  window_start_ = now;
  for (int local_rank = 0; local_rank < pages_.size(); ++local_rank) {
    Rank& rank = ranks_[static_cast<size_t>(local_rank)];
    rank.since_window = sample_cpu(rank.pid, pages_.of(local_rank), now);
  }
}

void HealthWatch::begin_episode(int64_t waited_us, Clock::time_point now,
                                std::vector<HealthNotice>& notices) {
  const CollectiveDiagnosis diagnosis = diagnose_collectives(pages_.read());
  episode_ = Episode{.waited_us = waited_us, .ranks = {}, .collective = {}, .fails_at = {}};
  check_stuck(now, notices);
  if (episode_->fails_at) return;
  // A rank on another host, a rank that has ended and a silent rank are not slow.
  if (diagnosis.kind != DiagnosisKind::Missing) return;
  bool some_are_quiet = false;
  episode_->collective =
      fmt::format("{} #{} on group {}", diagnosis.operation, diagnosis.sequence, diagnosis.group);
  for (int local_rank = 0; local_rank < pages_.size(); ++local_rank) {
    const Rank& rank = ranks_[static_cast<size_t>(local_rank)];
    const int number = pages_.of(local_rank).rank();
    if (std::find(diagnosis.ranks.begin(), diagnosis.ranks.end(), number) ==
            diagnosis.ranks.end() ||
        rank.pid <= 0)
      continue;
    if (rank.quiet >= 2 * options_.interval) {
      some_are_quiet = true;
      continue;
    }
    episode_->ranks.push_back(number);
    notices.push_back({.kind = HealthKind::Slow,
                       .rank = number,
                       .sentence = fmt::format("rank {} is slow (it beats{}): {}", number,
                                               use_words(rank.since_wait, now), diagnosis.text)});
  }
  // The next check looks again: on a busy machine a beat may have been late just now.
  if (some_are_quiet && episode_->ranks.empty()) episode_.reset();
}

void HealthWatch::end_episode(std::vector<HealthNotice>& notices) {
  if (!episode_->ranks.empty())
    notices.push_back({.kind = HealthKind::Recovered,
                       .rank = episode_->ranks.front(),
                       .sentence = fmt::format("{} came to {}: the others had waited {}",
                                               rank_list(episode_->ranks), episode_->collective,
                                               seconds_text(episode_->waited_us))});
  episode_.reset();
}

}  // namespace convoy::launch

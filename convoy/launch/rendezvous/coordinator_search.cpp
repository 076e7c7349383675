// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/rendezvous/coordinator_search.h"

#include <poll.h>

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/milliseconds.h"

namespace convoy::rendezvous {
namespace {

constexpr std::chrono::milliseconds kFirstPause{50};
constexpr std::chrono::milliseconds kLongestPause{1'000};
constexpr std::chrono::milliseconds kSearchLimit{5'000};
// A wrong token is retried for this long: the port may still belong to a job that is ending.
constexpr std::chrono::milliseconds kTokenPatience{3'000};

}  // namespace

CoordinatorSearch::CoordinatorSearch(NodeLinkOptions options, JobToken token, TimePoint now)
    : options_(std::move(options)),
      token_(std::move(token)),
      started_(now),
      next_try_(now),
      notice_at_(now + options_.notice_interval),
      pause_(kFirstPause) {}

int CoordinatorSearch::descriptor() const {
  if (try_) return try_->descriptor();
  return lookup_ ? lookup_->descriptor() : -1;
}

short CoordinatorSearch::events() const { return try_ ? try_->events() : short{POLLIN}; }

CoordinatorSearch::TimePoint CoordinatorSearch::wake_at() const {
  if (try_) return try_->deadline();
  return lookup_ ? std::max(next_try_, lookup_since_ + kSearchLimit) : next_try_;
}

std::optional<Channel> CoordinatorSearch::advance(TimePoint now) {
  if (outcome_) return std::nullopt;
  if (!try_ && now >= next_try_) start_try(now);
  if (!try_) return std::nullopt;
  const ClientConnection::State state = try_->advance(now);
  if (state == ClientConnection::State::Proven) {
    Channel channel = try_->take_channel();
    try_.reset();
    return channel;
  }
  if (state == ClientConnection::State::Failed) {
    const Problem problem = try_->problem();
    const std::string words = try_->words();
    try_.reset();
    note_failure(problem, words, now);
  } else if (now >= started_ + options_.join_timeout) {
    note_failure(Problem::Unreachable, "no answer", now);
  }
  return std::nullopt;
}

void CoordinatorSearch::start_try(TimePoint now) {
  if (addresses_.empty() && !addresses_known(now)) return;
  const SocketAddress address = addresses_.back();
  addresses_.pop_back();
  try_.emplace(address, token_, std::min(now + kSearchLimit, started_ + options_.join_timeout));
}

bool CoordinatorSearch::addresses_known(TimePoint now) {
  if (!lookup_) {
    lookup_.emplace(options_.coordinator.host, options_.coordinator.port);
    lookup_since_ = now;
  }
  std::optional<Resolved> resolved = lookup_->result();
  if (!resolved) {
    if (now - lookup_since_ >= kSearchLimit)
      note_failure(Problem::Unreachable,
                   fmt::format("the name {} is still being looked up", options_.coordinator.host),
                   now);
    return false;
  }
  lookup_.reset();
  if (resolved->addresses.empty()) {
    note_failure(Problem::Unreachable,
                 fmt::format("the name {} does not resolve: {}", options_.coordinator.host,
                             resolved->problem),
                 now);
    return false;
  }
  addresses_ = std::move(resolved->addresses);
  std::reverse(addresses_.begin(), addresses_.end());
  return true;
}

void CoordinatorSearch::pause(TimePoint now) {
  if (!addresses_.empty()) {  // the name has another address
    next_try_ = now;
    return;
  }
  next_try_ = now + pause_;
  pause_ = std::min(pause_ * 2, kLongestPause);
}

void CoordinatorSearch::note_failure(Problem problem, const std::string& words, TimePoint now) {
  pause(now);
  if (problem == Problem::Unreachable) {
    hopeless_since_.reset();
    if (now >= started_ + options_.join_timeout)
      return give_up(Notice::Kind::CoordinatorLost, ExitCode::PeerLost,
                     fmt::format("the master at {} was not reached within {:.0f} s: {}", place(),
                                 seconds_of(options_.join_timeout), words));
    if (now < notice_at_) return;
    notice_at_ = now + options_.notice_interval;
    options_.log.warning(
        fmt::format("waiting for the master at {} for {:.0f} s (until {:.0f} s): {}", place(),
                    seconds_of(now - started_), seconds_of(options_.join_timeout), words));
    return;
  }
  if (!hopeless_since_ || last_problem_ != problem) hopeless_since_ = now;
  last_problem_ = problem;
  const bool about_token = problem != Problem::Stranger;
  const auto patience =
      about_token ? std::min(kTokenPatience, options_.stranger_limit) : options_.stranger_limit;
  if (now - *hopeless_since_ < patience) return;
  if (about_token) return give_up(Notice::Kind::Refused, ExitCode::Usage, token_words(problem));
  give_up(Notice::Kind::Refused, ExitCode::Usage,
          fmt::format("the program at {} is not a coordinator of this job: {}; another program "
                      "holds the port, or another version of Convoy",
                      place(), words));
}

std::string CoordinatorSearch::token_words(Problem problem) const {
  const std::string who = problem == Problem::WrongServer
                              ? "does not hold the job token of this node"
                              : "refused the job token of this node";
  const std::string why =
      token_.guessable()
          ? fmt::format(
                "no token is set here, so it comes from the run id `{}`: give every node "
                "the same --rdzv-id, and the same CONVOY_JOB_TOKEN if one has it",
                options_.offer.run_id)
          : std::string("give every node the same CONVOY_JOB_TOKEN");
  return fmt::format("token mismatch: the master at {} {} ({})", place(), who, why);
}

void CoordinatorSearch::retry_later(const Notice& refusal, TimePoint now) {
  if (!hopeless_since_ || last_problem_ != Problem::None) hopeless_since_ = now;
  last_problem_ = Problem::None;
  if (now - *hopeless_since_ >= options_.stranger_limit) {
    outcome_ = refusal;
    return;
  }
  addresses_.clear();
  next_try_ = now + std::min(kLongestPause, options_.stranger_limit / 10);
}

void CoordinatorSearch::give_up(Notice::Kind kind, ExitCode code, const std::string& words) {
  outcome_ = Notice{.kind = kind, .exit_code = static_cast<int>(code), .words = words};
}

}  // namespace convoy::rendezvous

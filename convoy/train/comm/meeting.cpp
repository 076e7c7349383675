// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/train/comm/job_store.h"
#include "convoy/train/comm/passage.h"
#include "convoy/train/comm/threads/thread_team.h"

namespace convoy::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kFailure = "meeting/failure";
// The store is asked again after an eighth of the time waited so far, so that neither a short wait
// is prolonged nor a coordinator kept busy by thousands of ranks.
constexpr std::chrono::milliseconds kShortestPause{1};
constexpr std::chrono::milliseconds kLongestPause{500};

}  // namespace

Meeting::Meeting(RankEnvironment environment, std::chrono::milliseconds reach_timeout,
                 telemetry::FlightWriter* flight)
    : environment_(std::move(environment)), flight_(flight != nullptr ? *flight : unrecorded_) {
  if (size() == 1) return;
  enter("meet").finish([&] { store_ = std::make_shared<JobStore>(environment_, reach_timeout); });
}

std::vector<std::shared_ptr<Meeting>> Meeting::of_threads(const RankEnvironment& process, int count,
                                                          telemetry::FlightWriter& flight) {
  CONVOY_INVARIANT(process.world == 1, "threads as ranks in a job of {} processes", process.world);
  const auto store = std::make_shared<JobStore>();
  const auto team = std::make_shared<ThreadTeam>(count);
  std::vector<std::shared_ptr<Meeting>> meetings;
  for (int rank = 0; rank < count; ++rank) {
    auto meeting = std::make_shared<Meeting>(process, std::chrono::milliseconds(0),
                                             rank == 0 ? &flight : nullptr);
    RankEnvironment& place = meeting->environment_;
    place.rank = place.local_rank = rank;
    place.world = place.local_world = place.full_world = place.replicas = count;
    meeting->store_ = store;
    meeting->team_ = team;
    meetings.push_back(std::move(meeting));
  }
  return meetings;
}

Meeting::~Meeting() = default;

Passage Meeting::enter(std::string_view operation) {
  const telemetry::Collective collective{
      .group = "meeting", .operation = operation, .sequence = sequence_++, .group_size = size()};
  return Passage(flight_, waited_seconds_, rank(), size(), collective);
}

std::string Meeting::next_place() { return fmt::format("meeting/{}", sequence_); }

void Meeting::await(const std::string& key) {
  const auto start = Clock::now();
  while (!store_->keys->check({key})) {
    if (store_->keys->check({kFailure}))
      throw CommError(store_->keys->get_to_str(kFailure), {.rank = rank()});
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    std::this_thread::sleep_for(std::clamp(waited / 8, kShortestPause, kLongestPause));
  }
}

// Rank 0 may keep the store: it must not go, let alone end, before the others have read what is
// there.
void Meeting::leave(const std::string& place) {
  const std::string left = place + "/left";
  if (rank() == 0)
    await(left + "/all");
  else if (store_->keys->add(left, 1) == size() - 1)
    store_->keys->set(left + "/all", std::string("left"));
}

void Meeting::wait_for_all() {
  if (size() == 1) return;
  const std::string place = next_place();
  enter("wait").finish([&] {
    if (store_->keys->add(place, 1) == size())
      store_->keys->set(place + "/all", std::string("here"));
    else
      await(place + "/all");
    leave(place);
  });
}

std::string Meeting::word_of_rank_zero(std::string_view word) {
  if (rank() != 0) return decide({}, {});
  return decide({}, [&](const std::vector<std::string>&) { return std::string(word); });
}

std::string Meeting::decide(std::string_view brought, const Judge& judge) {
  if (size() == 1) return judge({std::string(brought)});
  const std::string place = next_place();
  const auto of_rank = [&](int of) { return fmt::format("{}/rank_{}", place, of); };
  std::string answer;
  enter("decide").finish([&] {
    c10d::Store& keys = *store_->keys;
    if (rank() != 0) {
      keys.set(of_rank(rank()), std::string(brought));
      await(place + "/answer");
      answer = keys.get_to_str(place + "/answer");
      leave(place);
      return;
    }
    std::vector<std::string> all = {std::string(brought)};
    for (int other = 1; other < size(); ++other) {
      await(of_rank(other));
      all.push_back(keys.get_to_str(of_rank(other)));
    }
    answer = judge(all);
    keys.set(place + "/answer", answer);
    leave(place);
  });
  return answer;
}

void Meeting::tell_failure(const std::string& sentence) {
  if (team_) team_->abort();
  if (!store_) return;
  try {
    store_->keys->set(kFailure, fmt::format("rank {} failed: {}", rank(), sentence));
  } catch (const std::exception&) {
    // Ranks that do not receive it lose the store as well.
  }
}

}  // namespace convoy::comm

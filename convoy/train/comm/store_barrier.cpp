// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/store_barrier.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/train/comm/collective_scope.h"
#include "convoy/train/comm/key_value_store.h"
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

StoreBarrier::StoreBarrier(RankEnvironment environment, std::chrono::milliseconds reach_timeout,
                           telemetry::FlightWriter* flight)
    : environment_(std::move(environment)), flight_(flight != nullptr ? *flight : unrecorded_) {
  if (size() == 1) return;
  enter("meet").finish(
      [&] { store_ = std::make_shared<KeyValueStore>(environment_, reach_timeout); });
}

std::vector<std::shared_ptr<StoreBarrier>> StoreBarrier::of_threads(
    const RankEnvironment& process, int count, telemetry::FlightWriter& flight) {
  CONVOY_INVARIANT(process.world == 1, "threads as ranks in a job of {} processes", process.world);
  const auto store = std::make_shared<KeyValueStore>();
  const auto team = std::make_shared<ThreadTeam>(count);
  std::vector<std::shared_ptr<StoreBarrier>> store_barriers;
  for (int rank = 0; rank < count; ++rank) {
    auto store_barrier = std::make_shared<StoreBarrier>(process, std::chrono::milliseconds(0),
                                                        rank == 0 ? &flight : nullptr);
    RankEnvironment& place = store_barrier->environment_;
    place.rank = place.local_rank = rank;
    place.world = place.local_world = place.full_world = place.replicas = count;
    store_barrier->store_ = store;
    store_barrier->team_ = team;
    store_barriers.push_back(std::move(store_barrier));
  }
  return store_barriers;
}

StoreBarrier::~StoreBarrier() = default;

CollectiveScope StoreBarrier::enter(std::string_view operation) {
  const telemetry::Collective collective{.group = numbered_group("meeting", environment_.group),
                                         .operation = operation,
                                         .sequence = sequence_++,
                                         .group_size = size()};
  return CollectiveScope(flight_, waited_seconds_, rank(), size(), collective);
}

std::string StoreBarrier::next_place() { return fmt::format("meeting/{}", sequence_); }

void StoreBarrier::await(const std::string& key) {
  const auto start = Clock::now();
  while (!store_->keys->check({key})) {
    if (store_->keys->check({kFailure}))
      throw CommError(store_->keys->get_to_str(kFailure), {.rank = rank()});
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - start);
    std::this_thread::sleep_for(std::clamp(waited / 8, kShortestPause, kLongestPause));
  }
}

// Rank 0 may hold the store, so it must not go on, and perhaps end, before the other ranks have
// read the values in it.
void StoreBarrier::leave(const std::string& place) {
  const std::string left = place + "/left";
  if (rank() == 0)
    await(left + "/all");
  else if (store_->keys->add(left, 1) == size() - 1)
    store_->keys->set(left + "/all", std::string("left"));
}

void StoreBarrier::wait_for_all() {
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

std::string StoreBarrier::word_of_rank_zero(std::string_view word) {
  if (rank() != 0) return decide({}, {});
  return decide({}, [&](const std::vector<std::string>&) { return std::string(word); });
}

std::string StoreBarrier::decide(std::string_view brought, const Judge& judge) {
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

void StoreBarrier::tell_failure(const std::string& sentence) {
  if (team_) team_->abort();
  if (!store_) return;
  try {
    store_->keys->set(kFailure, fmt::format("rank {} failed: {}", rank(), sentence));
  } catch (const std::exception&) {
    // Ranks that do not receive the failure cannot reach the store either, so their waits end.
  }
}

}  // namespace convoy::comm

// SPDX-License-Identifier: Apache-2.0
//
// Lets the ranks of a job wait for each other without the time limit of collectives: before there
// is a group, and while one of them reads or writes files, which may take hours. The ranks meet in
// the job's key-value store. When a rank dies meanwhile its launcher ends the others. Driven by one
// thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/telemetry/ranks/flight_record_writer.h"
#include "convoy/train/comm/rank_environment.h"

namespace convoy::comm {

struct KeyValueStore;
class CollectiveScope;
class ThreadTeam;

class StoreBarrier {
 public:
  // Blocks until the store is reached, `reach_timeout` at most. With world 1 there is no store.
  // Every wait is written to `flight`, which outlives this; null: waits are not written. Throws
  // CommError, and ConfigError for a wrong token.
  StoreBarrier(RankEnvironment environment, std::chrono::milliseconds reach_timeout,
               telemetry::FlightWriter* flight = nullptr);
  // The barriers of `count` ranks that are threads of this process, by rank. `process`: the
  // environment of the process, of world 1. The waits of rank 0 are written to `flight`, which
  // outlives the barriers; the waits of other ranks are not written.
  static std::vector<std::shared_ptr<StoreBarrier>> of_threads(const RankEnvironment& process,
                                                               int count,
                                                               telemetry::FlightWriter& flight);
  ~StoreBarrier();
  StoreBarrier(const StoreBarrier&) = delete;
  StoreBarrier& operator=(const StoreBarrier&) = delete;

  int rank() const { return environment_.rank; }
  int size() const { return environment_.world; }
  const RankEnvironment& environment() const { return environment_; }

  // Collective. Blocks until every rank is here, however long that takes. Throws CommError when a
  // rank has reported its failure.
  void wait_for_all();
  // Collective. Blocks. Returns rank 0's `word` on every rank. Throws as wait_for_all().
  std::string word_of_rank_zero(std::string_view word);
  // Collective. Blocks. Rank 0 calls `judge` with the texts of all ranks, by rank; every rank
  // returns the answer of `judge`. Throws as wait_for_all(), and on rank 0 the exceptions of
  // `judge`.
  using Judge = std::function<std::string(const std::vector<std::string>& brought)>;
  std::string decide(std::string_view brought, const Judge& judge);

  // Reports that this rank has failed: ranks that wait for it here stop waiting. Never throws.
  void tell_failure(const std::string& sentence);

  // The job's store, for groups that join at this barrier.
  KeyValueStore& store() { return *store_; }
  telemetry::FlightWriter& flight() { return flight_; }
  const std::shared_ptr<ThreadTeam>& team() const { return team_; }  // null: ranks are processes

 private:
  CollectiveScope enter(std::string_view operation);
  std::string next_place();
  void await(const std::string& key);
  void leave(const std::string& place);

  RankEnvironment environment_;
  telemetry::FlightWriter unrecorded_;
  telemetry::FlightWriter& flight_;
  std::atomic<double> waited_seconds_ = 0;
  int64_t sequence_ = 0;  // collectives entered
  std::shared_ptr<KeyValueStore> store_;
  std::shared_ptr<ThreadTeam> team_;
};

}  // namespace convoy::comm

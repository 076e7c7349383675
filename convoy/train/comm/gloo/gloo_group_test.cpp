// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/gloo/gloo_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "convoy/train/comm/key_value_store.h"
#include "convoy/train/comm/store_barrier.h"
#include "ranks/ranks.h"

namespace convoy::comm {
namespace {

using std::chrono::milliseconds;

// A store whose keys arrive one at a time, each after a delay.
class SlowStore : public c10d::PrefixStore {
 public:
  SlowStore(c10::intrusive_ptr<c10d::Store> keys, milliseconds delay)
      : PrefixStore("slow", std::move(keys)), delay_(delay) {}

  std::vector<uint8_t> get(const std::string& key) override {
    std::this_thread::sleep_for(delay_);
    return PrefixStore::get(key);
  }
  bool hasExtendedApi() const override { return false; }

 private:
  milliseconds delay_;
};

// The other ranks finish connecting long before the late rank does, and then have nothing to do;
// rank 0 holds the store. Gloo decides by the addresses which connections do not depend on the late
// rank, so each rank is late once.
RANK_BODY(OneConnectsLate) {
  const auto store_barrier =
      std::make_shared<StoreBarrier>(read_rank_environment(), milliseconds(20'000));
  const bool is_late = store_barrier->rank() == std::atoi(std::getenv("CONVOY_TEST_LATE_RANK"));
  store_barrier->store().keys =
      c10::make_intrusive<SlowStore>(store_barrier->store().keys, milliseconds(is_late ? 200 : 0));
  const auto group = join_group_at(store_barrier, std::chrono::seconds(20));
  EXPECT_EQ(group->size(), 4);
}
TEST(GlooGroup, NoRankEndsWhileAnotherStillConnects) {
  for (int late = 0; late < 4; ++late) {
    testing::RankStart start{.rendezvous = testing::Rendezvous::Tcp};
    start.environment["CONVOY_TEST_LATE_RANK"] = std::to_string(late);
    testing::expect_all_well(testing::start_ranks(4, "OneConnectsLate", start));
  }
}

}  // namespace
}  // namespace convoy::comm

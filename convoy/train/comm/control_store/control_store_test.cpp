// SPDX-License-Identifier: Apache-2.0
//
// Several threads form a Gloo group through a coordinator, over loopback.
#include "convoy/train/comm/control_store/control_store.h"

#include <ATen/ops/full.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <thread>

#include "convoy/core/base/error.h"
#include "convoy/launch/rendezvous/coordinator.h"
#include "convoy/train/comm/gloo/gloo_group.h"

namespace convoy::comm {
namespace {

using namespace std::chrono_literals;

class ControlStoreTest : public ::testing::Test {
 protected:
  ControlStoreTest() : token_(rendezvous::JobToken::from_secret("a secret of sixteen or more")) {
    rendezvous::CoordinatorOptions options;
    options.run_id = "run";
    coordinator_ = std::make_unique<rendezvous::Coordinator>(options, token_,
                                                             rendezvous::listen_on("127.0.0.1", 0));
  }

  rendezvous::KeyValueOptions options(int rank) const {
    return {.store = coordinator_->endpoint(), .run_id = "run", .attempt = 0, .rank = rank};
  }

  rendezvous::JobToken token_;
  std::unique_ptr<rendezvous::Coordinator> coordinator_;
};

TEST_F(ControlStoreTest, IsAStoreAsC10dKnowsIt) {
  const auto store = c10::make_intrusive<ControlStore>(options(0), token_, 2s);
  store->set("key", "value");
  EXPECT_EQ(store->get_to_str("key"), "value");
  EXPECT_EQ(store->clone()->get_to_str("key"), "value");
  EXPECT_EQ(store->add("sum", 3), 3);
  EXPECT_EQ(store->compareSet("key", std::string("value"), std::string("other")), "other");
  EXPECT_TRUE(store->check({"key", "sum"}));
  EXPECT_EQ(store->getNumKeys(), 2);
  EXPECT_TRUE(store->deleteKey("key"));
  EXPECT_THROW(store->wait({"key"}, 50ms), CommError);
}

TEST_F(ControlStoreTest, GlooGroupsMeetAtIt) {
  ::setenv("CONVOY_JOB_TOKEN", token_.for_worker().c_str(), 1);
  constexpr int kRanks = 3;
  std::vector<std::thread> ranks;
  std::vector<float> sums(kRanks);
  for (int rank = 0; rank < kRanks; ++rank)
    ranks.emplace_back([&, rank] {
      RankEnvironment environment;
      environment.rank = rank;
      environment.world = kRanks;
      environment.local_world = 1;  // each rank counts as on a host of its own
      environment.run_id = "run";
      environment.own_address = "127.0.0.1";
      environment.store_address = coordinator_->endpoint().text();
      GlooGroup group(std::make_shared<StoreBarrier>(environment, 20s), 20s);
      at::Tensor tensor = at::full({2}, static_cast<float>(rank + 1));
      group.all_reduce_sum(tensor);
      sums[static_cast<size_t>(rank)] = tensor[1].item<float>();
    });
  for (std::thread& rank : ranks) rank.join();
  ::unsetenv("CONVOY_JOB_TOKEN");
  EXPECT_EQ(sums, (std::vector<float>{6, 6, 6}));
}

}  // namespace
}  // namespace convoy::comm

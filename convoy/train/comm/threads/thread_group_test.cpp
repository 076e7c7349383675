// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/threads/thread_group.h"

#include <gtest/gtest.h>

#include <thread>

#include "convoy/core/base/error.h"

namespace convoy::comm {
namespace {

// Runs `body` as every rank. Returns the error of each rank, by rank.
std::vector<std::string> run_ranks(int count, const std::function<void(Group&)>& body,
                                   std::chrono::seconds timeout = std::chrono::seconds(300)) {
  telemetry::FlightWriter flight;
  const auto store_barriers = StoreBarrier::of_threads({}, count, flight);
  std::vector<std::string> errors(store_barriers.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < store_barriers.size(); ++rank)
    threads.emplace_back([&, rank] {
      const auto group = join_group_at(store_barriers[rank], timeout);
      try {
        body(*group);
      } catch (const std::exception& error) {
        errors[rank] = error.what();
        group->abort();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return errors;
}

void expect_well(int count, const std::function<void(Group&)>& body) {
  for (const std::string& error : run_ranks(count, body)) EXPECT_EQ(error, "");
}

at::Tensor of_rank(int rank, int64_t numel, at::ScalarType dtype = at::kFloat) {
  return at::arange(numel, at::kFloat).mul_(0.1 * (rank + 1)).add_(rank).to(dtype);
}

TEST(ThreadGroup, SumsPairwiseInAFixedOrder) {
  for (const int ranks : {1, 2, 3, 4, 5})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kLong})
      for (const int64_t numel : {1, 3, 1000}) {
        std::vector<at::Tensor> parts;
        for (int rank = 0; rank < ranks; ++rank) parts.push_back(of_rank(rank, numel, dtype));
        while (parts.size() > 1) {
          std::vector<at::Tensor> sums;
          for (size_t left = 0; left < parts.size(); left += 2)
            sums.push_back(left + 1 < parts.size() ? parts[left] + parts[left + 1] : parts[left]);
          parts = sums;
        }
        expect_well(ranks, [&](Group& group) {
          const at::Tensor tensor = of_rank(group.rank(), numel, dtype);
          group.all_reduce_sum(tensor);
          EXPECT_TRUE(tensor.equal(parts[0])) << ranks << " ranks, " << numel << " elements";
        });
      }
}

TEST(ThreadGroup, FindsTheLargestAndTheSmallest) {
  expect_well(3, [](Group& group) {
    const at::Tensor most = of_rank(group.rank(), 6), least = most.clone();
    group.start_all_reduce(most, Reduction::Max)->wait();
    group.start_all_reduce(least, Reduction::Min)->wait();
    EXPECT_TRUE(most.equal(of_rank(2, 6)));
    EXPECT_TRUE(least.equal(of_rank(0, 6)));
    const at::Tensor whole = of_rank(group.rank(), 6), own = at::empty({2});
    group.start_reduce_scatter(whole, own, Reduction::Max)->wait();
    EXPECT_TRUE(own.equal(of_rank(2, 6).narrow(0, 2 * group.rank(), 2)));
  });
}

TEST(ThreadGroup, SeveralAtATimeInAnyMixture) {
  expect_well(3, [](Group& group) {
    const int rank = group.rank();
    for (int repeat = 0; repeat < 50; ++repeat) {
      const at::Tensor first = of_rank(rank, 40), second = of_rank(rank, 7);
      at::Tensor whole = at::empty({9});
      const at::Tensor own = whole.narrow(0, 3 * rank, 3);
      own.fill_(rank);
      const at::Tensor pieces = at::arange(6, at::kFloat).add_(rank);
      const at::Tensor piece = at::empty({2});
      const auto first_sum = group.start_all_reduce_sum(first);
      const auto second_sum = group.start_all_reduce_sum(second);
      const auto gather = group.start_all_gather(own, whole);
      const auto scatter = group.start_reduce_scatter_sum(pieces, piece);
      first_sum->wait();
      second_sum->wait();
      gather->wait();
      scatter->wait();
      EXPECT_TRUE(
          at::allclose(first, of_rank(0, 40) + of_rank(1, 40) + of_rank(2, 40), 1e-6, 1e-6));
      EXPECT_EQ(second[0].item<float>(), 3);
      EXPECT_TRUE(whole.equal(at::arange(3, at::kFloat).repeat_interleave(3)));
      EXPECT_TRUE(piece.equal(3 * (at::arange(2, at::kFloat) + 2 * rank) + 3));
      const at::Tensor word = of_rank(rank, 5);
      group.broadcast(word, 1);
      EXPECT_TRUE(word.equal(of_rank(1, 5)));
      const std::vector<std::string> bytes =
          group.all_gather_bytes(std::string(static_cast<size_t>(rank), 'x'));
      EXPECT_EQ(bytes, (std::vector<std::string>{"", "x", "xx"}));
      EXPECT_TRUE(group.any(rank == 1));
      EXPECT_FALSE(group.any(false));
      group.barrier();
      group.wait_for_all();
    }
  });
}

TEST(ThreadGroup, ItsPartsAreGroupsOfTheirOwn) {
  expect_well(4, [](Group& group) {
    const auto part = group.split(group.rank() % 2, "half");
    EXPECT_EQ(part->size(), 2);
    EXPECT_EQ(part->rank(), group.rank() / 2);
    const at::Tensor sum = at::full({3}, group.rank(), at::kLong);
    part->all_reduce_sum(sum);
    EXPECT_EQ(sum[0].item<int64_t>(), group.rank() % 2 == 0 ? 2 : 4);
    group.barrier();
  });
}

TEST(ThreadGroup, ARankThatFailsEndsTheOthersAtOnce) {
  const auto errors = run_ranks(3, [](Group& group) {
    const at::Tensor tensor = at::ones({4});
    group.all_reduce_sum(tensor);
    if (group.rank() == 1) throw NumericError("planted");
    group.all_reduce_sum(tensor);
  });
  EXPECT_EQ(errors[1], "planted");
  for (const size_t rank : {0, 2})
    EXPECT_NE(errors[rank].find("all_reduce #1 on group replicas (4 x float32) failed: another "
                                "replica has failed"),
              std::string::npos)
        << errors[rank];
}

TEST(ThreadGroup, ARankThatStaysAwayIsNotAwaitedForEver) {
  const auto errors = run_ranks(
      2,
      [](Group& group) {
        if (group.rank() == 0) group.barrier();
      },
      std::chrono::seconds(1));
  EXPECT_NE(errors[0].find("not all replicas came within 1 s"), std::string::npos) << errors[0];
}

TEST(ThreadGroup, DifferentCollectivesAreNotMixed) {
  const auto errors = run_ranks(2, [](Group& group) {
    const at::Tensor left = at::ones({4}), right = at::ones({4});
    const auto first = group.start_all_reduce_sum(left);
    const auto second = group.start_all_reduce_sum(right);
    group.rank() == 0 ? first->wait() : second->wait();
  });
  EXPECT_NE((errors[0] + errors[1]).find("different collectives"), std::string::npos);
}

}  // namespace
}  // namespace convoy::comm

// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/comm/group.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "convoy/core/base/error.h"
#include "load/slowdown.h"
#include "ranks/ranks.h"

namespace convoy::comm {
namespace {

using testing::expect_all_well;
using testing::Rendezvous;
using testing::start_ranks;

std::unique_ptr<Group> join() {
  return join_group(read_rank_environment(), std::chrono::seconds(20));
}

void exercise_reductions(Group& group, at::ScalarType dtype) {
  const int64_t n = group.size();
  std::vector<at::Tensor> brought;
  for (int64_t rank = 0; rank < n; ++rank)
    brought.push_back((at::arange(n * 7, at::kLong) * (rank + 3)).remainder(11).sub(5).to(dtype));
  const at::Tensor all = at::stack(brought);
  for (const Reduction reduction : {Reduction::Sum, Reduction::Max, Reduction::Min}) {
    const at::Tensor wanted = reduction == Reduction::Sum   ? all.sum(0).to(dtype)
                              : reduction == Reduction::Max ? all.amax(0)
                                                            : all.amin(0);
    at::Tensor whole = brought[static_cast<size_t>(group.rank())].clone();
    at::Tensor own = at::empty({7}, dtype);
    group.start_reduce_scatter(whole, own, reduction)->wait();
    EXPECT_TRUE(own.equal(wanted.narrow(0, group.rank() * 7, 7))) << dtype;
    group.start_all_reduce(whole, reduction)->wait();
    EXPECT_TRUE(whole.equal(wanted)) << dtype;
  }
}

// Calls every collective with every dtype that training sends.
void exercise(Group& group) {
  const int64_t n = group.size();
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kLong}) {
    for (const int64_t count : {1, 7, 100'000}) {
      const at::Tensor base = at::arange(count, at::kLong).remainder(13).to(dtype);
      at::Tensor sum = base * (group.rank() + 1);
      group.all_reduce_sum(sum);
      EXPECT_TRUE(sum.equal(base * (n * (n + 1) / 2))) << dtype << " " << count;
      at::Tensor value = base + group.rank();
      group.broadcast(value, static_cast<int>(n) - 1);
      EXPECT_TRUE(value.equal(base + (n - 1))) << dtype << " " << count;
    }
  }
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    for (const int64_t count : {1, 7, 10'000}) {
      const at::Tensor base = at::arange(n * count, at::kLong).remainder(13).to(dtype);
      at::Tensor own = at::empty({count}, dtype);
      group.start_reduce_scatter_sum(base * (group.rank() + 1), own)->wait();
      EXPECT_TRUE(own.equal(base.narrow(0, group.rank() * count, count) * (n * (n + 1) / 2)))
          << dtype << " " << count;
      at::Tensor whole = at::zeros_like(base);
      group.all_gather(base.narrow(0, group.rank() * count, count).clone(), whole);
      EXPECT_TRUE(whole.equal(base)) << dtype << " " << count;
      // The result is the same if the piece is a part of the whole tensor's memory.
      at::Tensor in_place = at::zeros_like(base);
      at::Tensor piece = in_place.narrow(0, group.rank() * count, count);
      piece.copy_(base.narrow(0, group.rank() * count, count));
      group.all_gather(piece, in_place);
      EXPECT_TRUE(in_place.equal(base)) << dtype << " " << count;
    }
  }
  for (const at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong})
    exercise_reductions(group, dtype);
  std::vector<std::string> expected;
  for (int rank = 0; rank < n; ++rank)
    expected.push_back(std::string(static_cast<size_t>(rank) * 1000, 'x') + '\0');
  EXPECT_EQ(group.all_gather_bytes(expected[static_cast<size_t>(group.rank())]), expected);
  EXPECT_EQ(group.all_gather_bytes(""), std::vector<std::string>(static_cast<size_t>(n)));
  EXPECT_TRUE(group.any(group.rank() == n - 1));
  EXPECT_FALSE(group.any(false));
  group.barrier();
}

RANK_BODY(Exercise) {
  const auto group = join();
  ASSERT_EQ(group->size(), read_rank_environment().world);
  ASSERT_EQ(group->rank(), read_rank_environment().rank);
  exercise(*group);
}
TEST(Group, EveryCollectiveOnTwoRanks) { expect_all_well(start_ranks(2, "Exercise")); }
TEST(Group, EveryCollectiveOnThreeRanks) { expect_all_well(start_ranks(3, "Exercise")); }
TEST(Group, TcpStore) {
  expect_all_well(start_ranks(2, "Exercise", {.rendezvous = Rendezvous::Tcp}));
}
TEST(Group, One) {
  const auto group = join_group(RankEnvironment(), std::chrono::seconds(1));
  exercise(*group);
}

// Sums numbers whose rounded sum depends on the order.
RANK_BODY(SumsOfPieces) {
  const auto group = join();
  const auto brought_by = [](int64_t rank) {
    return at::sin(at::arange(3 * 1001, at::kFloat) * static_cast<double>(rank + 1)).exp_();
  };
  at::Tensor own = at::empty({1001});
  group->start_reduce_scatter_sum(brought_by(group->rank()), own)->wait();
  const at::Tensor expected = (brought_by(0) + brought_by(1)) + brought_by(2);
  EXPECT_TRUE(own.equal(expected.narrow(0, 1001 * group->rank(), 1001)));
}
TEST(Group, PiecesAreSummedInTheOrderOfRanks) { expect_all_well(start_ranks(3, "SumsOfPieces")); }

RANK_BODY(Parts) {
  const auto group = join();
  const int color = group->rank() == 1 ? 7 : 0;
  const auto part = group->split(color, "part");
  EXPECT_EQ(part->size(), color == 7 ? 1 : 3);
  EXPECT_EQ(part->rank(), color == 7 ? 0 : std::max(0, group->rank() - 1));
  at::Tensor sum = at::full({5}, group->rank(), at::kLong);
  part->all_reduce_sum(sum);
  EXPECT_EQ(sum[0].item<int64_t>(), color == 7 ? 1 : 0 + 2 + 3);
  part->wait_for_all();
  exercise(*part);
  const auto again = group->split(group->rank() % 2, "pairs");
  exercise(*again);
  exercise(*group);
}
TEST(Group, PartsAreGroupsOfTheirOwn) { expect_all_well(start_ranks(4, "Parts")); }

RANK_BODY(OneOfAPartThrows) {
  const auto group = join();
  const auto part = group->split(group->rank() / 2, "pairs");
  part->barrier();
  if (group->rank() == 3) throw NumericError("planted");
  sleep(1);
  part->barrier();
  group->barrier();
}
TEST(Group, RankThatThrowsEndsItsPartAndTheWhole) {
  const auto results = start_ranks(4, "OneOfAPartThrows");
  EXPECT_EQ(results[3].exit_code, 15) << results[3].output;
  for (const size_t rank : {0, 1, 2}) {
    EXPECT_EQ(results[rank].exit_code, 13) << results[rank].output;
    EXPECT_LT(results[rank].seconds, 12 * testing::slowdown());
  }
}

RANK_BODY(ManyInFlight) {
  const auto group = join();
  std::vector<at::Tensor> tensors;
  std::vector<std::unique_ptr<Work>> works;
  for (int64_t index = 0; index < 40; ++index) {
    tensors.push_back(at::full({1 + 5000 * (index % 5)}, group->rank() + index, at::kFloat));
    works.push_back(group->start_all_reduce_sum(tensors.back()));
  }
  for (size_t index = 0; index < works.size(); ++index) {
    works[index]->wait();
    EXPECT_EQ(tensors[index][0].item<float>(), 2 * static_cast<float>(index) + 1);
  }
}
TEST(Group, CollectivesOverlap) { expect_all_well(start_ranks(2, "ManyInFlight")); }

RANK_BODY(SumRepeats) {
  const auto group = join();
  at::Tensor first;
  for (int repeat = 0; repeat < 20; ++repeat) {
    at::Tensor values = at::sin(at::arange(300'000, at::kFloat) * (group->rank() + 1));
    group->all_reduce_sum(values);
    if (repeat == 0) first = values;
    EXPECT_TRUE(values.equal(first));
  }
}
TEST(Group, SumsAreTheSameBitsEachTime) { expect_all_well(start_ranks(3, "SumRepeats")); }

RANK_BODY(OneThrows) {
  const auto group = join();
  at::Tensor values = at::ones({100'000});
  group->all_reduce_sum(values);
  // Rank 1 leaves during a collective that the other rank never joins.
  const auto pending = group->rank() == 1 ? group->start_all_reduce_sum(at::ones({5})) : nullptr;
  if (group->rank() == 1) throw NumericError("planted");
  sleep(1);
  group->barrier();
}
TEST(Group, RankThatThrowsEndsAtOnceAndItsPeersFollow) {
  const auto results = start_ranks(3, "OneThrows");
  EXPECT_EQ(results[1].exit_code, 15) << results[1].output;
  for (const size_t rank : {0, 2}) {
    EXPECT_EQ(results[rank].exit_code, 13) << results[rank].output;
    EXPECT_LT(results[rank].seconds, 8 * testing::slowdown());
    EXPECT_NE(results[rank].output.find("\"kind\":\"comm\""), std::string::npos);
  }
}

RANK_BODY(OneWritesAfterTheEnd) {
  const auto group = join();
  struct sigaction broken_pipe {};
  sigaction(SIGPIPE, nullptr, &broken_pipe);
  EXPECT_EQ(broken_pipe.sa_handler, SIG_DFL);  // the program's handler was not changed
  std::vector<std::unique_ptr<Work>> under_way;
  for (int index = 0; index < 20; ++index)
    under_way.push_back(group->start_all_reduce_sum(at::ones({1'000'000})));
  group->abort();
  EXPECT_THROW(group->all_reduce_sum(at::ones({1'000'000})), CommError);
}
TEST(Group, WritesToAClosedConnectionAreErrorsNotSignals) {
  expect_all_well(start_ranks(2, "OneWritesAfterTheEnd"));
}

RANK_BODY(OneDies) {
  const auto group = join();
  if (group->rank() == 1) kill(getpid(), SIGKILL);
  at::Tensor values = at::ones({100'000});
  group->all_reduce_sum(values);
}
TEST(Group, PeersOfAKilledRankFail) {
  const auto results = start_ranks(2, "OneDies");
  EXPECT_EQ(results[1].exit_code, 128 + SIGKILL);
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
  EXPECT_LT(results[0].seconds, 8 * testing::slowdown());
}

RANK_BODY(OneIsSilent) {
  const auto group = join_group(read_rank_environment(), std::chrono::seconds(2));
  if (group->rank() == 1) sleep(6);
  group->barrier();
}
TEST(Group, SilentPeerIsFoundByTheTimeout) {
  const auto results = start_ranks(2, "OneIsSilent");
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
  EXPECT_LT(results[0].seconds, 6 * testing::slowdown());
}

RANK_BODY(NeverComes) {
  if (read_rank_environment().rank == 1) return;
  join_group(read_rank_environment(), std::chrono::seconds(2));
}
TEST(Group, MissingRankIsFoundByTheTimeout) {
  EXPECT_EQ(start_ranks(2, "NeverComes")[0].exit_code, 13);
}

RANK_BODY(ListensOnLoopbackOnly) {
  const auto group = join();
  int listening = 0;
  for (int descriptor = 0; descriptor < 256; ++descriptor) {
    int accepts = 0;
    socklen_t length = sizeof(accepts);
    if (getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &length) != 0 || !accepts)
      continue;
    ++listening;
    sockaddr_in address{};
    length = sizeof(address);
    ASSERT_EQ(getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length), 0);
    EXPECT_EQ(address.sin_family, AF_INET);
    EXPECT_EQ(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
  }
  EXPECT_GE(listening, 1);
  group->barrier();
}
TEST(Group, ListensOnLoopbackOnly) { expect_all_well(start_ranks(2, "ListensOnLoopbackOnly")); }

class Environment : public ::testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT"}) unsetenv(name);
  }
};

TEST_F(Environment, PlainProcessIsAWorldOfOne) {
  const RankEnvironment environment = read_rank_environment();
  EXPECT_EQ(environment.world, 1);
  EXPECT_TRUE(environment.one_host());
  EXPECT_TRUE(environment.error_file.empty());
}

TEST_F(Environment, HalfOrWrongIsRefused) {
  setenv("RANK", "0", 1);
  EXPECT_THROW(read_rank_environment(), ConfigError);
  setenv("WORLD_SIZE", "2", 1);
  EXPECT_EQ(read_rank_environment().world, 2);
  for (const char* wrong : {"2", "-1", "1x", "99999999999"}) {
    setenv("RANK", wrong, 1);
    EXPECT_THROW(read_rank_environment(), ConfigError) << wrong;
  }
  setenv("RANK", "1", 1);
  setenv("MASTER_PORT", "70000", 1);
  EXPECT_THROW(read_rank_environment(), ConfigError);
}

}  // namespace
}  // namespace convoy::comm

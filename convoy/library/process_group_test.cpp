// SPDX-License-Identifier: Apache-2.0
#include "convoy/library/process_group.h"

#include <gtest/gtest.h>
#include <torch/data/dataloader.h>
#include <torch/data/datasets/tensor.h>
#include <torch/serialize.h>

#include <csignal>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "convoy/core/base/error.h"
#include "convoy/library/ddp.h"
#include "convoy/library/network_test.h"
#include "convoy/library/sampler.h"
#include "files/temporary_folder.h"
#include "load/slowdown.h"

namespace convoy::detail {
namespace {

RANK_BODY(LibraryGroup) {
  const auto group = init();
  const int size = group->size(), rank = group->rank();
  for (const at::ScalarType dtype :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kInt, at::kLong}) {
    at::Tensor sum = at::ones({3, 2}, dtype).t() * (rank + 1);  // not contiguous
    group->all_reduce(sum);
    EXPECT_TRUE(sum.equal(at::full({2, 3}, size * (size + 1) / 2, dtype))) << dtype;
    const at::Tensor all_values =
        (at::arange(size, at::kLong).unsqueeze(1) * at::arange(-2, 5, at::kLong)).to(dtype);
    at::Tensor most = all_values[rank].clone(), least = most.clone();
    group->all_reduce(most, Reduce::Max);
    EXPECT_TRUE(most.equal(all_values.amax(0))) << dtype;
    group->all_reduce(least, Reduce::Min);
    EXPECT_TRUE(least.equal(all_values.amin(0))) << dtype;
    // The dimensions are [this rank, the rank that gets the row, row].
    const at::Tensor rows =
        all_values.view({size, 1, 7}) + at::arange(size, at::kLong).view({1, size, 1}).to(dtype);
    for (const auto& [reduce, wanted] :
         std::vector<std::pair<Reduce, at::Tensor>>{{Reduce::Sum, rows.sum(0).to(dtype)},
                                                    {Reduce::Max, rows.amax(0)},
                                                    {Reduce::Min, rows.amin(0)}})
      EXPECT_TRUE(group->reduce_scatter(rows[rank], reduce).equal(wanted[rank])) << dtype;
    at::Tensor value = at::full({5}, rank, dtype);
    group->broadcast(value, size - 1);
    EXPECT_TRUE(value.equal(at::full({5}, size - 1, dtype))) << dtype;
    const at::Tensor all = group->all_gather(at::full({2}, rank, dtype));
    EXPECT_TRUE(all.select(1, 1).equal(at::arange(size, at::kLong).to(dtype))) << dtype;
  }
  at::Tensor mean = at::full({}, rank, at::kFloat).requires_grad_();
  group->all_reduce(mean, Reduce::Mean);
  EXPECT_FLOAT_EQ(mean.item<float>(), static_cast<float>(size - 1) / 2);
  // Tests a transposed tensor whose rows have two dimensions, and rows of a single number.
  const at::Tensor turned =
      at::arange(6.0 * size).view({2, 3, size}).permute({2, 1, 0}) * (rank + 1);
  EXPECT_TRUE(group->reduce_scatter(turned, Reduce::Mean)
                  .allclose(turned[rank] / (rank + 1) * (static_cast<double>(size + 1) / 2)));
  EXPECT_EQ(group->reduce_scatter(at::ones({size})).sizes().size(), 0U);
  EXPECT_EQ(group->all_gather_bytes(std::string(static_cast<size_t>(rank), 'x')).back().size(),
            static_cast<size_t>(size - 1));
  group->barrier();
  EXPECT_EQ(group->local_rank(), rank);
  EXPECT_TRUE(group->device().is_cpu());
  EXPECT_THROW(group->broadcast(mean, size), ConfigError);
  EXPECT_THROW(group->all_reduce(at::ones({1}, at::kLong), Reduce::Mean), ConfigError);
  EXPECT_THROW(group->reduce_scatter(at::ones({size + 1})), ConfigError);
  EXPECT_THROW(group->reduce_scatter(at::ones({})), ConfigError);
}
TEST(ProcessGroup, One) { expect_all_well(start_ranks(1, "LibraryGroup")); }
TEST(ProcessGroup, Three) { expect_all_well(start_ranks(3, "LibraryGroup")); }

RANK_BODY(AllTypes) {
  const auto group = init();
  const int rank = group->rank();
  for (const at::ScalarType dtype :
       {at::kBool, at::kByte, at::kChar, at::kShort, at::kComplexFloat, at::kComplexDouble}) {
    const at::Tensor own = at::arange(rank, 3 + rank).to(dtype);
    const at::Tensor all = group->all_gather(own);
    EXPECT_TRUE(all[rank].equal(own)) << dtype;
    EXPECT_TRUE(all[0].equal(at::arange(3).to(dtype))) << dtype;
    at::Tensor value = own.clone();
    group->broadcast(value, 1);
    EXPECT_TRUE(value.equal(at::arange(1, 4).to(dtype))) << dtype;
    const bool is_complex = dtype == at::kComplexFloat || dtype == at::kComplexDouble;
    EXPECT_THROW(group->all_reduce(value, is_complex ? Reduce::Max : Reduce::Sum), ConfigError)
        << dtype;
  }
  at::Tensor turned =
      at::complex(at::ones({2}), at::full({2}, static_cast<float>(rank + 1))).conj();
  group->all_reduce(turned);
  EXPECT_TRUE(turned.resolve_conj().equal(at::complex(at::full({2}, 2.0F), at::full({2}, -3.0F))));
  EXPECT_TRUE(
      group->reduce_scatter(turned).equal(at::complex(at::full({}, 4.0F), at::full({}, -6.0F))));
  group->all_reduce(turned, Reduce::Mean);
  EXPECT_TRUE(turned.resolve_conj().equal(at::complex(at::full({2}, 2.0F), at::full({2}, -3.0F))));
}
TEST(ProcessGroup, MovesAllTypesAndAddsUpComplexNumbers) {
  expect_all_well(start_ranks(2, "AllTypes"));
}

// The ranks make two different calls at the same time, chosen by CONVOY_TEST_CALL.
RANK_BODY(DifferentCalls) {
  std::_Exit(run_rank([] {
    const auto group = init({.timeout = std::chrono::seconds(20)});
    const bool first = group->rank() == 0;
    at::Tensor values = at::ones({4}, first ? at::kFloat : at::kInt);
    at::Tensor same = at::ones({4});
    at::Tensor turned = at::ones(first ? at::IntArrayRef{2, 2} : at::IntArrayRef{4});
    switch (std::atoi(std::getenv("CONVOY_TEST_CALL"))) {
      case 0:
        return group->all_reduce(values);
      case 1:
        return group->broadcast(values);
      case 2:
        group->all_gather(values);
        return;
      case 3:
        return group->broadcast(same, group->rank());
      case 4:
        return first ? group->broadcast(same) : group->all_reduce(same);
      case 5:
        return first ? group->barrier() : group->all_reduce(same);
      case 6:
        if (first)
          group->all_gather_bytes("x");
        else
          group->all_gather(same);
        return;
      case 7:
        return group->all_reduce(turned);
      case 9:
        group->reduce_scatter(first ? same.view({2, 2}) : at::ones({2, 3}), Reduce::Max);
        return;
      case 8:
        return group->all_reduce(same, first ? Reduce::Sum : Reduce::Max);
    }
  }));
}
TEST(ProcessGroup, DifferentCallsAreNamed) {
  const std::vector<std::string> words = {
      "rank 0 all_reduce of Float [4], rank 1 all_reduce of Int [4]",
      "rank 0 broadcast of Float [4] from rank 0, rank 1 broadcast of Int [4] from rank 0",
      "rank 0 all_gather of Float [4], rank 1 all_gather of Int [4]",
      "rank 0 broadcast of Float [4] from rank 0, rank 1 broadcast of Float [4] from rank 1",
      "rank 0 broadcast of Float [4] from rank 0, rank 1 all_reduce of Float [4]",
      "rank 0 barrier, rank 1 all_reduce of Float [4]",
      "rank 0 all_gather_bytes, rank 1 all_gather of Float [4]",
      "rank 0 all_reduce of Float [2, 2], rank 1 all_reduce of Float [4]",
      "rank 0 all_reduce of Float [4], rank 1 all_reduce of Float [4] by Reduce::Max",
      "rank 0 reduce_scatter of Float [2, 2] by Reduce::Max, rank 1 reduce_scatter of Float [2, 3] "
      "by Reduce::Max"};
  for (size_t call = 0; call < words.size(); ++call) {
    testing::RankStart start;
    start.environment["CONVOY_TEST_CALL"] = std::to_string(call);
    for (const auto& result : start_ranks(2, "DifferentCalls", start)) {
      EXPECT_EQ(result.exit_code, 13) << result.output;
      EXPECT_NE(result.output.find(words[call]), std::string::npos) << result.output;
    }
  }
}

RANK_BODY(Works) {
  const auto group = init();
  const int size = group->size(), rank = group->rank();
  const double sum_of_ranks = size * (size - 1) / 2.0;
  std::vector<at::Tensor> brought;
  std::vector<Work> works;
  for (int64_t index = 0; index < 20; ++index) {
    brought.push_back(at::full({3 + 1000 * (index % 4), 2}, static_cast<double>(rank + index)).t());
    works.push_back(
        group->start_all_reduce(brought.back(), index % 2 == 0 ? Reduce::Sum : Reduce::Mean));
  }
  Work gather = group->start_all_gather(at::full({2}, rank, at::kInt));
  Work scatter = group->start_reduce_scatter(at::arange(2.0 * size).view({size, 2}), Reduce::Max);
  at::Tensor between = at::ones({2});
  group->all_reduce(between);
  EXPECT_TRUE(between.equal(at::full({2}, static_cast<float>(size))));
  EXPECT_TRUE(scatter.wait().equal(at::arange(2.0 * rank, 2.0 * rank + 2)));
  EXPECT_TRUE(gather.wait().select(1, 0).equal(at::arange(size, at::kInt)));
  for (size_t index = works.size(); index-- > 0;) {
    const double sum = sum_of_ranks + static_cast<double>(index) * size;
    const at::Tensor found = works[index].wait();
    EXPECT_TRUE(found.is_same(brought[index]));
    EXPECT_TRUE(found.allclose(at::full({}, index % 2 == 0 ? sum : sum / size))) << index;
  }
  EXPECT_THROW(works[0].wait(), ConfigError);
  at::Tensor left = at::ones({4});
  { const Work unwaited = group->start_all_reduce(left); }
  EXPECT_TRUE(left.equal(at::full({4}, static_cast<float>(size))));
}
TEST(Work, CollectivesGoOnMeanwhile) {
  expect_all_well(start_ranks(1, "Works"));
  expect_all_well(start_ranks(3, "Works"));
}

RANK_BODY(DifferentWorks) {
  std::_Exit(run_rank([] {
    const auto group = init({.timeout = std::chrono::seconds(20)});
    at::Tensor values = at::ones({4}, group->rank() == 0 ? at::kFloat : at::kInt);
    Work work = group->start_all_reduce(values);
    if (std::getenv("CONVOY_TEST_WAITS") != nullptr)
      work.wait();
    else {
      const Work unwaited = std::move(work);
    }
    group->barrier();
  }));
}
TEST(Work, DifferentCallsAreNoticed) {
  testing::RankStart waits;
  waits.environment["CONVOY_TEST_WAITS"] = "1";
  for (const auto& result : start_ranks(2, "DifferentWorks", waits)) {
    EXPECT_EQ(result.exit_code, 13) << result.output;
    EXPECT_NE(result.output.find("rank 0 all_reduce of Float [4], rank 1 all_reduce of Int [4]"),
              std::string::npos)
        << result.output;
  }
  for (const auto& result : start_ranks(2, "DifferentWorks"))
    EXPECT_EQ(result.exit_code, 13) << result.output;
}

// c10d's collectives over Convoy's group agree with Convoy's collectives over a group of c10d.
RANK_BODY(BothWays) {
  const auto group = init();
  const int size = group->size(), rank = group->rank();
  const auto c10d_group = group->c10d_group();
  EXPECT_EQ(group->c10d_group(), c10d_group);
  EXPECT_EQ(c10d_group->getRank(), rank);
  EXPECT_EQ(c10d_group->getSize(), size);
  const auto over = ProcessGroup::over(c10d_group);
  EXPECT_EQ(over->rank(), rank);
  EXPECT_EQ(over->local_rank(), rank);
  EXPECT_EQ(over->local_size(), size);
  EXPECT_EQ(over->c10d_group(), c10d_group);
  std::map<Reduce, c10d::ReduceOp::RedOpType> both = {{Reduce::Sum, c10d::ReduceOp::SUM},
                                                      {Reduce::Max, c10d::ReduceOp::MAX},
                                                      {Reduce::Min, c10d::ReduceOp::MIN}};
  for (const auto& [reduce, operation] : both) {
    std::vector<at::Tensor> theirs = {at::sin(at::arange(1000.0) * (rank + 1))};
    at::Tensor ours = theirs[0].clone(), whole = theirs[0].clone();
    c10d::AllreduceOptions options;
    options.reduceOp = operation;
    c10d_group->allreduce(theirs, options)->wait();
    over->all_reduce(ours, reduce);
    group->all_reduce(whole, reduce);
    EXPECT_TRUE(ours.equal(theirs[0]));
    EXPECT_TRUE(whole.equal(theirs[0]));
  }
  const at::Tensor rows = at::arange(3.0 * size).view({size, 3}) * (rank + 1);
  at::Tensor flat = rows.flatten().clone(), row_sum = at::empty({3});
  c10d_group->_reduce_scatter_base(row_sum, flat)->wait();
  EXPECT_TRUE(over->reduce_scatter(rows).allclose(row_sum));
  EXPECT_TRUE(over->reduce_scatter(rows).equal(group->reduce_scatter(rows)));
  EXPECT_TRUE(over->all_gather(rows).equal(group->all_gather(rows)));
  EXPECT_EQ(over->all_gather_bytes(std::to_string(rank)).back(), std::to_string(size - 1));
  at::Tensor value = at::full({2}, rank);
  over->broadcast(value, size - 1);
  EXPECT_TRUE(value.equal(at::full({2}, size - 1)));
  Work work = over->start_all_reduce(value);
  over->barrier();
  EXPECT_EQ(work.wait()[0].item<int64_t>(), size * (size - 1));
  EXPECT_THROW(over->split(0), ConfigError);
  EXPECT_THROW(ProcessGroup::over({}), ConfigError);
  EXPECT_THROW(ProcessGroup::over(c10::make_intrusive<c10d::ProcessGroup>(rank, size)),
               ConfigError);
}
TEST(C10d, GroupsGoInAndOut) {
  expect_all_well(start_ranks(1, "BothWays"));
  expect_all_well(start_ranks(3, "BothWays"));
}

RANK_BODY(TrainsOverC10d) {
  auto own = init();
  const auto group = ProcessGroup::over(own->c10d_group());
  own.reset();
  DistributedDataParallel model(golden_network(*group), group);
  torch::optim::Adam optimizer(model.parameters(), torch::optim::AdamOptions(3e-3));
  expect_curve(curve_of(
                   *group, model, 1, [&] { optimizer.zero_grad(); }, [&] { optimizer.step(); }),
               "ddp_adam");
  FullyShardedDataParallel sharded(golden_network(*group), group);
  torch::optim::AdamW other(sharded.parameters(),
                            torch::optim::AdamWOptions(3e-3).weight_decay(0.1));
  expect_curve(curve_of(
                   *group, sharded, 1, [&] { other.zero_grad(); }, [&] { other.step(); }),
               "fsdp_adamw");
}
TEST(C10d, TrainsAsPyTorch) { expect_all_well(start_ranks(2, "TrainsOverC10d")); }

RANK_BODY(PartsOfAGroup) {
  auto group = init();
  const int rank = group->rank();
  const int color = rank == 1 ? -7 : 3;
  const auto part = group->split(color);
  EXPECT_EQ(part->size(), rank == 1 ? 1 : 4);
  EXPECT_EQ(part->rank(), rank == 1 ? 0 : std::max(0, rank - 1));
  EXPECT_EQ(part->local_rank(), rank);
  at::Tensor sum = at::full({2}, 1.0 * rank);
  part->all_reduce(sum);
  EXPECT_EQ(sum[0].item<float>(), rank == 1 ? 1 : 0 + 2 + 3 + 4);
  const auto pairs = part->split(part->rank() / 2), later = group->split(rank % 2);
  EXPECT_EQ(later->size(), rank % 2 == 0 ? 3 : 2);
  group.reset();  // the parts keep the group alive
  at::Tensor most = at::full({}, 1.0 * rank);
  pairs->all_reduce(most, Reduce::Max);
  const std::vector<float> largest = {2, 1, 2, 4, 4};
  EXPECT_EQ(most.item<float>(), largest[static_cast<size_t>(rank)]);
  const at::Tensor ranks = later->all_gather(at::full({}, 1.0 * rank));
  EXPECT_TRUE(
      ranks.equal(rank % 2 == 0 ? at::tensor({0.0F, 2.0F, 4.0F}) : at::tensor({1.0F, 3.0F})));
  // A wrapper over a part computes the mean of the part's ranks.
  const auto net = std::make_shared<torch::nn::LinearImpl>(1, 1);
  DistributedDataParallel model(net, later);
  model(at::full({1, 1}, 1.0 * rank)).sum().backward();
  EXPECT_FLOAT_EQ(net->weight.grad().item<float>(), 2);
}
TEST(ProcessGroup, PartsAreGroupsOfTheirOwn) {
  expect_all_well(start_ranks(5, "PartsOfAGroup"));
  expect_all_well(start_ranks(5, "PartsOfAGroup", {.rendezvous = testing::Rendezvous::Tcp}));
}

RANK_BODY(RankLeavesAPart) {
  std::_Exit(run_rank([] {
    const auto group = init();
    const auto part = group->split(group->rank() % 2)->split(7);
    if (group->rank() == 2) throw NumericError("planted");
    at::Tensor values = at::ones({3});
    part->all_reduce(values);
    group->barrier();
  }));
}
TEST(ProcessGroup, RankThatLeavesAPartEndsAll) {
  const auto results = start_ranks(4, "RankLeavesAPart");
  EXPECT_EQ(results[2].exit_code, 15) << results[2].output;
  for (const size_t rank : {0, 1, 3}) {
    EXPECT_EQ(results[rank].exit_code, 13) << results[rank].output;
    EXPECT_LT(results[rank].seconds, 50 * testing::slowdown());
  }
  EXPECT_NE(results[0].output.find("on group part 1.0/1.7"), std::string::npos)
      << results[0].output;
}

RANK_BODY(TwoGroups) {
  const auto one = init(), other = init();
  at::Tensor a = at::ones({3}), b = at::ones({5}, at::kLong);
  one->all_reduce(a);
  other->all_reduce(b);
  other->barrier();
  one->broadcast(a);
  EXPECT_EQ(a.sum().item<float>(), 6);
  EXPECT_EQ(b.sum().item<int64_t>(), 10);
}
TEST(ProcessGroup, SecondGroupOfTheSameRanks) {
  expect_all_well(start_ranks(2, "TwoGroups"));
  expect_all_well(start_ranks(2, "TwoGroups", {.rendezvous = testing::Rendezvous::Tcp}));
}

RANK_BODY(GroupsInOtherOrders) {
  const InitOptions options{.timeout = std::chrono::seconds(3)};
  const auto one = init(options), other = init(options);
  at::Tensor values = at::ones({3});
  (one->is_leader() ? one : other)->all_reduce(values);
  (one->is_leader() ? other : one)->all_reduce(values);
}
TEST(ProcessGroup, GroupsInOtherOrdersEndByTheLimit) {
  const auto results = start_ranks(2, "GroupsInOtherOrders");
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
  EXPECT_EQ(results[1].exit_code, 13) << results[1].output;
  EXPECT_NE(results[1].output.find("on group world 2"), std::string::npos) << results[1].output;
}

// A rank without WORLD_SIZE is refused at once, before the time limit.
RANK_BODY(HalfAnEnvironment) {
  unsetenv("WORLD_SIZE");
  std::_Exit(run_rank([] { init(); }));
}
TEST(ProcessGroup, HalfAnEnvironmentIsRefused) {
  const auto results = start_ranks(1, "HalfAnEnvironment");
  EXPECT_EQ(results[0].exit_code, 2) << results[0].output;
  EXPECT_NE(results[0].output.find("RANK and WORLD_SIZE must both be set"), std::string::npos)
      << results[0].output;
}

// The body ends as a main() that returns does: all destructors run, also LibTorch's.
RANK_BODY(OneRankThrows) {
  std::exit(run_rank([] {
    const auto group = init();
    if (group->rank() == 1) throw std::logic_error("my own mistake");
    group->barrier();
  }));
}
TEST(ProcessGroup, RankThatThrowsEndsTheOthers) {
  const auto results = start_ranks(2, "OneRankThrows");
  EXPECT_EQ(results[1].exit_code, 1) << results[1].output;
  EXPECT_NE(results[1].output.find("my own mistake"), std::string::npos) << results[1].output;
  EXPECT_EQ(results[0].exit_code, 13) << results[0].output;
  EXPECT_LT(results[0].seconds, 50 * testing::slowdown());
}

TEST(RunRank, LeavesItsErrorToTheLauncher) {
  const testing::TemporaryFolder folder;
  const std::string file = folder.path() / "error.json";
  setenv("TORCHELASTIC_ERROR_FILE", file.c_str(), 1);
  EXPECT_EQ(run_rank([] { throw DataError("no such row"); }), 10);
  unsetenv("TORCHELASTIC_ERROR_FILE");
  EXPECT_NE(read_file(file).find("no such row"), std::string::npos);
  EXPECT_EQ(run_rank([] {}), 0);
}

// Gloo throws on its own thread if a message has another size than this rank expects.
TEST(RunRank, AnErrorOnGloosThreadIsALostPeer) {
  const auto fail_on_a_thread = [](const char* what) {
    std::exit(run_rank([&] { std::thread([&] { throw std::runtime_error(what); }).join(); }));
  };
  ::testing::GTEST_FLAG(death_test_style) = "threadsafe";
  EXPECT_EXIT(fail_on_a_thread("[enforce fail at gloo/transport/tcp/pair.cc:456] 48 vs 8."),
              ::testing::ExitedWithCode(13), "the ranks call different collectives");
  EXPECT_EXIT(fail_on_a_thread("another error"), ::testing::KilledBySignal(SIGABRT),
              "another error");
}

TEST(DistributedSampler, IndicesArePyTorchs) {
  const io::Json golden = io::parse_json(read_file(golden_folder() / "golden.json"), "golden.json");
  ASSERT_GE(golden.at("sampler").size(), 8U);
  for (const io::Json& each : golden.at("sampler")) {
    const auto by_rank = each.at("indices").get<std::vector<std::vector<size_t>>>();
    for (size_t rank = 0; rank < by_rank.size(); ++rank) {
      DistributedSampler sampler(each.at("rows").get<size_t>(), static_cast<int>(by_rank.size()),
                                 static_cast<int>(rank),
                                 {.shuffle = each.at("shuffle").get<bool>(),
                                  .seed = each.at("seed").get<uint64_t>(),
                                  .drop_last = each.at("drop_last").get<bool>()});
      sampler.set_epoch(each.at("epoch").get<int64_t>());
      EXPECT_EQ(sampler.indices(), by_rank[rank]) << each.dump();
    }
  }
}

std::vector<int64_t> rows_through_loader(DistributedSampler& sampler, int64_t epochs) {
  const at::Tensor rows = at::arange(10, at::kLong);
  auto loader =
      torch::data::make_data_loader(torch::data::datasets::TensorDataset(rows), sampler, 3);
  std::vector<int64_t> seen;
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    sampler.set_epoch(epoch);
    for (const auto& batch : *loader)
      for (const auto& row : batch) seen.push_back(row.data.item<int64_t>());
  }
  return seen;
}

TEST(DistributedSampler, LoaderFollowsTheEpoch) {
  DistributedSampler sampler(10, 3, 1, {.seed = 7});
  const std::vector<int64_t> seen = rows_through_loader(sampler, 2);
  ASSERT_EQ(seen.size(), 8U);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    sampler.set_epoch(epoch);
    const std::vector<size_t> wanted = sampler.indices();
    for (size_t at = 0; at < 4; ++at)
      EXPECT_EQ(seen[static_cast<size_t>(epoch) * 4 + at], static_cast<int64_t>(wanted[at]));
  }
}

TEST(DistributedSampler, GoesOnWhereItWasSaved) {
  DistributedSampler sampler(20, 2, 0);
  sampler.set_epoch(3);
  sampler.reset();
  sampler.next(4);
  torch::serialize::OutputArchive saved;
  sampler.save(saved);
  std::stringstream stream;
  saved.save_to(stream);
  torch::serialize::InputArchive loaded;
  loaded.load_from(stream);
  DistributedSampler other(20, 2, 0);
  other.load(loaded);
  EXPECT_EQ(other.epoch(), 3);
  EXPECT_EQ(other.next(100), sampler.next(100));
  EXPECT_EQ(other.next(1), std::nullopt);
}

TEST(DistributedSampler, RefusesARankThatIsNotThere) {
  EXPECT_THROW(DistributedSampler(10, 2, 2), ConfigError);
}

}  // namespace
}  // namespace convoy::detail

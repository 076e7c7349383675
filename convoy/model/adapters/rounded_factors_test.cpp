// SPDX-License-Identifier: Apache-2.0
//
// Tests the adapters of maps with a common input: their factors in one tensor, and their products
// in one call.
#include "convoy/model/adapters/rounded_factors.h"

#include <gtest/gtest.h>

#include "convoy/model/adapters/lora_linear.h"
#include "convoy/model/adapters/optimizer_step_test.h"
#include "convoy/model/nn/linear.h"
#include "kernel_checks/op_check.h"

namespace convoy::adapters {
namespace {

using convoy::testing::relative_error;
using convoy::testing::sample;
using convoy::testing::Tensors;
using convoy::testing::tolerance;

constexpr uint64_t kMapsDrawKey = 7;
constexpr uint64_t kMapsModuleKey = 12;

// Three adapted maps with a common input, whose adapters can be computed together or one by one.
struct MapsOfOneInput {
  explicit MapsOfOneInput(at::ScalarType dtype, double last_scaling = 1.5, double dropout = 0) {
    const auto factors = std::make_shared<RoundedFactors>();
    leaves = {sample({11, 64}, dtype, 1).requires_grad_()};
    for (int64_t map = 0; map < 3; ++map) {
      const auto seed = static_cast<uint64_t>(10 * map);
      maps.emplace_back("l", sample({16 + 8 * map, 64}, dtype, seed + 2),
                        map == 1 ? sample({16 + 8 * map}, dtype, seed + 3) : at::Tensor());
      leaves.push_back(sample({2 + map, 64}, at::kFloat, seed + 4).requires_grad_());
      leaves.push_back(sample({16 + 8 * map, 2 + map}, at::kFloat, seed + 5).requires_grad_());
      maps.back().set_adapter(std::make_shared<LoraLinear>(
          leaves[leaves.size() - 2], leaves.back(), at::Tensor(), map == 2 ? last_scaling : 1.5,
          Dropout{dropout, kMapsModuleKey}, factors));
    }
  }

  Tensors together(nn::DrawKey key = {}) const {
    return maps[0].adapter()->forward_together({&maps[0], &maps[1], &maps[2]}, leaves[0], key);
  }
  Tensors one_by_one() const {
    Tensors outputs;
    for (const nn::Linear& map : maps) outputs.push_back(map.forward(leaves[0]));
    return outputs;
  }
  // Returns the outputs, then the gradients of x, and of A and B of each map.
  Tensors results(const Tensors& outputs) const {
    Tensors all;
    at::Tensor sum = at::zeros({});
    for (const at::Tensor& output : outputs) {
      all.push_back(output.detach());
      sum = sum + output.to(at::kFloat).square().sum();
    }
    sum.backward();
    for (const at::Tensor& leaf : leaves) {
      all.push_back(leaf.grad());
      leaf.mutable_grad() = at::Tensor();
    }
    return all;
  }

  std::vector<nn::Linear> maps;
  Tensors leaves;  // x; A and B of each map
};

TEST(LoraLinear, MapsOfOneInputTogetherAreTheMapsOneByOne) {
  for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16}) {
    const MapsOfOneInput maps(dtype);
    const Tensors wanted = maps.results(maps.one_by_one());
    const Tensors found = maps.results(maps.together());
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t at = 0; at < wanted.size(); ++at) {
      EXPECT_EQ(found[at].scalar_type(), wanted[at].scalar_type());
      EXPECT_LT(relative_error(found[at], wanted[at]), tolerance(dtype, 64)) << at << dtype;
    }
  }
}

TEST(LoraLinear, MapsThatScaleOrDropApartGoOneByOne) {
  EXPECT_EQ(MapsOfOneInput(at::kFloat).together(kMapsDrawKey).size(), 3U);
  EXPECT_TRUE(MapsOfOneInput(at::kFloat, 2.5).together().empty());
  EXPECT_TRUE(MapsOfOneInput(at::kFloat, 1.5, 0.1).together(kMapsDrawKey).empty());
  EXPECT_EQ(MapsOfOneInput(at::kFloat, 1.5, 0.1).together().size(), 3U) << "nothing is drawn";
}

// After an optimizer's step on one factor, the rounded factors have the changed value.
TEST(RoundedFactors, FollowTheirLeavesAndLieSideBySide) {
  RoundedFactors factors;
  Tensors a, b;
  for (int64_t number = 0; number < 3; ++number) {
    a.push_back(sample({2, 8}, at::kFloat, static_cast<uint64_t>(number)));
    b.push_back(sample({4, 2}, at::kFloat, static_cast<uint64_t>(number) + 9));
    EXPECT_EQ(factors.add(a.back(), b.back()), static_cast<size_t>(number));
  }
  const auto all_a = [&] {
    Tensors all;
    for (size_t number = 0; number < a.size(); ++number)
      all.push_back(factors.of(number, at::kBFloat16).a_RI);
    return all;
  };
  const at::Tensor stacked = stacked_rows(all_a());
  EXPECT_TRUE(stacked.is_alias_of(all_a()[2])) << "no copy";
  EXPECT_TRUE(at::equal(stacked, at::cat(a).to(at::kBFloat16)));
  take_optimizer_step(a[1]);
  EXPECT_TRUE(at::equal(stacked_rows(all_a()), at::cat(a).to(at::kBFloat16)));
  EXPECT_FALSE(at::equal(stacked, at::cat(a).to(at::kBFloat16))) << "graphs hold the old ones";
  const void* const before = all_a()[0].const_data_ptr();
  for (const at::Tensor& leaf : {a[0], a[1], a[2], b[0], b[1], b[2]}) take_optimizer_step(leaf);
  EXPECT_TRUE(at::equal(all_a()[0], a[0].to(at::kBFloat16)));
  for (const at::Tensor& leaf : {a[0], a[1], a[2], b[0], b[1], b[2]}) take_optimizer_step(leaf);
  const void* const after = all_a()[0].const_data_ptr();
  EXPECT_NE(after, before) << "they lay in two pieces";
  for (const at::Tensor& leaf : {a[0], a[1], a[2], b[0], b[1], b[2]}) take_optimizer_step(leaf);
  EXPECT_TRUE(at::equal(all_a()[2], a[2].to(at::kBFloat16)));
  EXPECT_EQ(all_a()[0].const_data_ptr(), after) << "nothing else holds the memory";
  EXPECT_TRUE(at::equal(factors.of(2, at::kFloat).b_OR, b[2])) << "another type";
}

}  // namespace
}  // namespace convoy::adapters

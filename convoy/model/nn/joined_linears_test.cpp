// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/nn/joined_linears.h"

#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/kernels/registry/op_table.h"

namespace convoy::nn {
namespace {

// An adapter that adds a constant. `adds` decides whether it says that it is a sum.
class Constant final : public LinearAdapter {
 public:
  Constant(double value, bool adds) : value_(value), adds_(adds) {}
  at::Tensor forward(const Linear& base, const at::Tensor& x, DrawKey) const override {
    return base.base_forward(x) + value_;
  }
  bool adds() const override { return adds_; }
  void add_to(const at::Tensor& y_TO, const at::Tensor&) const override { y_TO.add_(value_); }
  bool trains() const override { return false; }

 private:
  double value_;
  bool adds_;
};

// Two maps of 32 inputs to 16 and 8 outputs, as they are kept on devices other than a CPU.
class Joined : public ::testing::Test {
 protected:
  Joined() {
    at::manual_seed(5);
    for (const int64_t outputs : {16, 8})
      linears_.emplace_back("of_" + std::to_string(outputs), at::randn({outputs, 32}),
                            at::randn({outputs}));
    x_ = at::randn({3, 32});
  }

  std::vector<at::Tensor> apart() const {
    return {linears_[0].forward(x_), linears_[1].forward(x_)};
  }
  std::vector<at::Tensor> forward() const {
    return joined_.forward({&linears_[0], &linears_[1]}, x_, {});
  }
  void join() { joined_.join({&linears_[0], &linears_[1]}); }
  // Whether the outputs are parts of one product's memory.
  bool are_joined() const {
    const std::vector<at::Tensor> outputs = forward();
    return outputs[0].is_alias_of(outputs[1]);
  }
  void expect_same(const std::vector<at::Tensor>& wanted) const {
    const std::vector<at::Tensor> found = forward();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t part = 0; part < found.size(); ++part)
      EXPECT_TRUE(at::allclose(found[part], wanted[part], 1e-5, 1e-5)) << part;
  }

  const at::NoGradGuard no_grad_;
  const kernels::CpuTableOverride ops_{kernels::aten_op_table()};
  std::vector<Linear> linears_;
  at::Tensor x_;
  JoinedLinears joined_;
};

TEST_F(Joined, AreOneProductOfTheSameValues) {
  const std::vector<at::Tensor> wanted = apart();
  expect_same(wanted);
  EXPECT_FALSE(are_joined());
  join();
  EXPECT_TRUE(are_joined());
  expect_same(wanted);
  join();
  EXPECT_TRUE(are_joined());
}

TEST_F(Joined, HoldEveryWeightOnceAndKeepEachTensor) {
  std::vector<at::Tensor> held, values;
  for (const Linear& linear : linears_)
    for (const NamedTensor& part : linear.parts()) {
      held.push_back(part.value);
      values.push_back(part.value.clone());
    }
  join();
  // Handles that were taken before the join share the joined memory.
  EXPECT_TRUE(held[0].is_alias_of(held[2]) && held[1].is_alias_of(held[3]));
  EXPECT_EQ(held[0].storage().nbytes(), (16 + 8) * 32 * sizeof(float));
  size_t at = 0;
  for (const Linear& linear : linears_)
    for (const NamedTensor& part : linear.parts()) {
      EXPECT_TRUE(part.value.is_same(held[at]) && part.value.is_contiguous()) << part.name;
      EXPECT_TRUE(at::equal(part.value, values[at++])) << part.name;
    }
}

TEST_F(Joined, FollowAWeightThatChanges) {
  join();
  linears_[1].weight().mul_(2);
  linears_[1].weight_changed();
  EXPECT_TRUE(are_joined());
  expect_same(apart());
  linears_[1].weight() = at::randn({8, 32});
  linears_[1].weight_changed();
  EXPECT_FALSE(are_joined());
  expect_same(apart());
}

TEST_F(Joined, GoThroughAdaptersThatAreSums) {
  join();
  linears_[1].set_adapter(std::make_shared<Constant>(3.0, true));
  EXPECT_TRUE(are_joined());
  expect_same(apart());
  linears_[1].set_adapter(std::make_shared<Constant>(3.0, false));
  EXPECT_FALSE(are_joined());
  expect_same(apart());
}

TEST_F(Joined, StayApartWhereOneTrains) {
  linears_[0].weight().requires_grad_(true);
  join();
  EXPECT_FALSE(are_joined());
}

TEST_F(Joined, AreApartForBackward) {
  join();
  x_.requires_grad_(true);
  const at::AutoGradMode records(true);
  const std::vector<at::Tensor> outputs = forward();
  EXPECT_FALSE(outputs[0].is_alias_of(outputs[1]));
  EXPECT_TRUE(outputs[0].requires_grad());
}

TEST_F(Joined, AreOneProductOfCodesWhoseRowsMayFollowEachOther) {
  using kernels::CodeType;
  for (const kernels::BitsandbytesFormat& format :
       std::vector<kernels::BitsandbytesFormat>{{CodeType::Nf4, 64, false},
                                                {CodeType::Fp4, 64, false},
                                                {CodeType::Int8, 64, false},
                                                {CodeType::Nf4, 64, true},
                                                {CodeType::Nf4, 4096, false}}) {
    JoinedLinears joined;
    for (Linear& linear : linears_)
      linear.set_bitsandbytes(
          kernels::encode_weight(at::randn({linear.out_features(), 32}), format));
    const std::vector<at::Tensor> wanted = apart();
    joined.join({&linears_[0], &linears_[1]});
    const std::vector<at::Tensor> found = joined.forward({&linears_[0], &linears_[1]}, x_, {});
    EXPECT_EQ(found[0].is_alias_of(found[1]), !format.nested && format.block == 64);
    for (size_t part = 0; part < found.size(); ++part) {
      EXPECT_TRUE(at::allclose(found[part], wanted[part], 1e-5, 1e-5));
      EXPECT_TRUE(at::equal(linears_[part].forward(x_), wanted[part]));
    }
  }
}

// A quantisation group lies within one row, so the joined codes equal the codes of the separate
// maps.
TEST_F(Joined, AreQuantisedAsOneMap) {
  for (const kernels::IntegerFormat& format :
       std::vector<kernels::IntegerFormat>{{kernels::WeightFormat::Int8},
                                           {kernels::WeightFormat::Int4, 32},
                                           {kernels::WeightFormat::Int4Zero, 32}}) {
    JoinedLinears joined, apart;
    std::vector<Linear> others, linears;
    for (const Linear& linear : linears_)
      for (std::vector<Linear>* list : {&others, &linears})
        list->emplace_back(linear.name(), linear.weight().clone(), linear.bias().clone());
    apart.quantize({&others[0], &others[1]}, format);
    joined.join({&linears[0], &linears[1]});
    joined.quantize({&linears[0], &linears[1]}, format);
    const std::vector<at::Tensor> wanted = apart.forward({&others[0], &others[1]}, x_, {});
    const std::vector<at::Tensor> found = joined.forward({&linears[0], &linears[1]}, x_, {});
    EXPECT_TRUE(found[0].is_alias_of(found[1]));
    EXPECT_FALSE(wanted[0].is_alias_of(wanted[1]));
    for (size_t part = 0; part < found.size(); ++part) {
      EXPECT_TRUE(at::allclose(found[part], wanted[part], 1e-5, 1e-5));
      EXPECT_TRUE(linears[part].is_integer());
    }
    EXPECT_THROW(linears[0].forward(x_), StateError);
  }
}

}  // namespace
}  // namespace convoy::nn

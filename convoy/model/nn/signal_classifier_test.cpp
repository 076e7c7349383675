// SPDX-License-Identifier: Apache-2.0
//
// Compares initial weights, scores and gradients with torch (tests/golden/signals).
#include "convoy/model/nn/signal_classifier.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstdlib>
#include <filesystem>

#include "convoy/core/base/error.h"
#include "convoy/machine/device/stored_tensor.h"

namespace convoy::nn {
namespace {

class SignalGolden : public ::testing::Test {
 protected:
  at::Tensor golden(const std::string& name) const {
    return device::copy_to_tensor(file_.require(name));
  }
  static SignalClassifierSpec spec() {
    return {.encoder = {.num_channels = 9,
                        .window_rows = 40,
                        .pooling = ChannelPooling::Joint,
                        .widths = {8, 16, 24},
                        .kernel_sizes = {5, 5, 3}},
            .hidden = {20},
            .dropout = 0,
            .num_classes = 6};
  }

 private:
  io::SafetensorsFile file_{std::filesystem::path(std::getenv("CONVOY_SOURCE_DIR")) /
                            "tests/golden/signals/network.safetensors"};
};

double difference(const at::Tensor& found, const at::Tensor& wanted) {
  return (found - wanted).abs().max().item<double>();
}

TEST_F(SignalGolden, StartsFromTorchsWeights) {
  const SignalClassifier model(spec(), 42);
  for (const NamedTensor& parameter : model.parameters())
    EXPECT_TRUE(parameter.value.equal(golden("start." + parameter.name))) << parameter.name;
  for (const NamedTensor& buffer : model.buffers())
    EXPECT_TRUE(buffer.value.equal(golden("start." + buffer.name))) << buffer.name;
}

TEST_F(SignalGolden, ScoresAndGradientsAreTorchs) {
  const SignalClassifier model(spec(), 42);
  const at::Tensor x_NLC = golden("x");
  {
    const at::NoGradGuard no_grad;
    EXPECT_LT(difference(model.scores(x_NLC, {}, {}), golden("scores.eval")), 1e-6);
  }
  const at::Tensor scores = model.scores(x_NLC, {.training = true}, {});
  EXPECT_LT(difference(scores.detach(), golden("scores.train")), 2e-6);
  at::cross_entropy_loss(scores, golden("y"), {}, at::Reduction::Mean, -100, 0.1).backward();
  for (const NamedTensor& parameter : model.parameters())
    EXPECT_LT(difference(parameter.value.grad(), golden("gradient." + parameter.name)), 2e-6)
        << parameter.name;
}

at::Tensor sample_windows(int64_t channels) {
  return at::randn({5, 40, channels}, at::detail::createCPUGenerator(3));
}

// The expected features come from the encoder for one channel, applied to each channel.
TEST(SignalClassifier, PoolsChannelsAsItsNamesSay) {
  const at::NoGradGuard no_grad;
  SignalEncoderSpec spec{
      .num_channels = 3, .window_rows = 40, .widths = {4, 6}, .kernel_sizes = {3, 5}};
  const auto encoder_of = [&](int64_t channels, ChannelPooling pooling) {
    SignalEncoderSpec own = spec;
    own.num_channels = channels;
    own.pooling = pooling;
    uint64_t seed = 0;
    return SignalEncoder(
        own,
        [&seed](const std::string&, const std::vector<int64_t>& shape, int64_t) {
          return at::randn(shape, at::detail::createCPUGenerator(++seed));
        },
        at::kCPU);
  };
  const at::Tensor x_NLC = sample_windows(3);
  const SignalEncoder alone = encoder_of(1, ChannelPooling::Joint);
  std::vector<at::Tensor> of_channels;
  for (int64_t channel = 0; channel < 3; ++channel)
    of_channels.push_back(alone.forward(x_NLC.narrow(2, channel, 1), {}, nullptr, 0));
  const auto features = [&](ChannelPooling pooling) {
    const SignalEncoder encoder = encoder_of(3, pooling);
    const at::Tensor found = encoder.forward(x_NLC, {}, nullptr, 0);
    EXPECT_EQ(found.size(1), encoder.features());
    return found;
  };
  EXPECT_LT(difference(features(ChannelPooling::Flatten), at::cat(of_channels, 1)), 1e-5);
  EXPECT_LT(difference(features(ChannelPooling::Average), at::stack(of_channels).mean(0)), 1e-5);
  EXPECT_LT(difference(features(ChannelPooling::First), of_channels[0]), 1e-5);
  EXPECT_EQ(features(ChannelPooling::Joint).sizes(), (std::vector<int64_t>{5, 6}));
}

TEST(SignalClassifier, AFrozenEncoderStaysAsItIs) {
  SignalClassifierSpec spec{.encoder = {.num_channels = 3, .window_rows = 40}, .num_classes = 4};
  SignalClassifier model(spec, 1);
  model.freeze_encoder();
  std::vector<at::Tensor> before;
  for (const NamedTensor& buffer : model.buffers()) before.push_back(buffer.value.clone());
  model.scores(sample_windows(3), {.training = true}, 7).sum().backward();
  for (const NamedTensor& parameter : model.parameters())
    EXPECT_EQ(parameter.value.grad().defined(), parameter.name.starts_with("classifier"))
        << parameter.name;
  for (size_t index = 0; index < before.size(); ++index)
    EXPECT_TRUE(model.buffers()[index].value.equal(before[index]));
  EXPECT_EQ(model.trained_parameters().size(), 4U);
}

TEST(SignalClassifier, DropsOutByItsKeyAlone) {
  const at::NoGradGuard no_grad;
  const SignalClassifier model(
      {.encoder = {.num_channels = 3, .window_rows = 40}, .dropout = 0.5, .num_classes = 4}, 1);
  const at::Tensor x_NLC = sample_windows(3);
  const at::Tensor plain = model.scores(x_NLC, {}, {});
  EXPECT_TRUE(plain.equal(model.scores(x_NLC, {}, {})));
  EXPECT_TRUE(model.scores(x_NLC, {}, 7).equal(model.scores(x_NLC, {}, 7)));
  EXPECT_FALSE(model.scores(x_NLC, {}, 7).equal(model.scores(x_NLC, {}, 8)));
  EXPECT_FALSE(model.scores(x_NLC, {}, 7).equal(plain));
}

TEST(SignalClassifier, RefusesNetworksThatCanNotBe) {
  const auto make = [](const SignalClassifierSpec& spec) { return SignalClassifier(spec, 1); };
  SignalClassifierSpec spec{.encoder = {.num_channels = 3, .window_rows = 40}, .num_classes = 4};
  EXPECT_NO_THROW(make(spec));
  SignalClassifierSpec one_class = spec;
  one_class.num_classes = 1;
  EXPECT_THROW(make(one_class), ConfigError);
  SignalClassifierSpec even = spec;
  even.encoder.kernel_sizes = {5, 4, 3};
  EXPECT_THROW(make(even), ConfigError);
  SignalClassifierSpec uneven = spec;
  uneven.encoder.widths = {8, 8};
  EXPECT_THROW(make(uneven), ConfigError);
  SignalClassifierSpec deep = spec;
  deep.encoder.window_rows = 3;
  EXPECT_THROW(make(deep), ConfigError);
}

}  // namespace
}  // namespace convoy::nn

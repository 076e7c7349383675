// SPDX-License-Identifier: Apache-2.0
#include "convoy/model/models/signal_files.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/device/stored_tensor.h"
#include "files/temporary_folder.h"

namespace convoy::models {
namespace {

namespace fs = std::filesystem;

nn::SignalClassifierSpec small_network(nn::ChannelPooling pooling) {
  return {.encoder = {.num_channels = 3,
                      .window_rows = 16,
                      .pooling = pooling,
                      .widths = {4, 6},
                      .kernel_sizes = {3, 5}},
          .hidden = {8},
          .num_classes = 3};
}

// Returns the text of the error that loading throws.
std::string refusal(nn::SignalClassifier& model, const fs::path& path) {
  try {
    load_signal_encoder(model, path);
  } catch (const DataError& error) {
    return error.sentence();
  }
  return "";
}

class SignalFiles : public ::testing::Test {
 protected:
  SignalFiles() {
    for (const nn::NamedTensor& buffer : saved_.buffers()) at::Tensor(buffer.value).fill_(0.25);
    save_signal_classifier(saved_,
                           signal_config_text(saved_.spec(), {"x", "y", "z"}, {"A", "B", "C"}),
                           folder_ / "run/model");
  }

  testing::TemporaryFolder folder_;
  nn::SignalClassifier saved_{small_network(nn::ChannelPooling::Joint), 1};
};

TEST_F(SignalFiles, AnEncoderComesBackFromFolderRunAndFile) {
  for (const char* const place : {"run/model", "run", "run/model/model.safetensors"}) {
    nn::SignalClassifier loaded(small_network(nn::ChannelPooling::Joint), 2);
    EXPECT_EQ(refusal(loaded, folder_ / place), "");
    const auto wanted = saved_.parameters();
    const auto found = loaded.parameters();
    for (size_t index = 0; index < wanted.size(); ++index)
      EXPECT_EQ(
          found[index].value.equal(wanted[index].value),
          wanted[index].name.starts_with("encoder.") || wanted[index].name.ends_with("norm.weight"))
          << wanted[index].name;
    for (const nn::NamedTensor& buffer : loaded.buffers())
      EXPECT_EQ(buffer.value.min().item<float>(), 0.25F) << buffer.name;
  }
}

TEST_F(SignalFiles, ConfigSaysWhatTheNetworkIs) {
  const auto config = nlohmann::json::parse(read_file(folder_ / "run/model/config.json"));
  EXPECT_EQ(config["architecture"], "signal_classifier");
  EXPECT_EQ(config["pooling"], "joint");
  EXPECT_EQ(config["widths"], (std::vector<int>{4, 6}));
  EXPECT_EQ(config["classes"], (std::vector<std::string>{"A", "B", "C"}));
  EXPECT_EQ(config["channels"], (std::vector<std::string>{"x", "y", "z"}));
}

TEST_F(SignalFiles, RefusesWhatIsNotThisEncoder) {
  nn::SignalClassifier alone(small_network(nn::ChannelPooling::First), 2);
  EXPECT_NE(
      refusal(alone, folder_ / "run").find("encoder.0.conv.weight is 4 x 3 x 3, wanted 4 x 1 x 3"),
      std::string::npos);
  nn::SignalClassifierSpec deeper = small_network(nn::ChannelPooling::Joint);
  deeper.encoder.widths.push_back(4);
  deeper.encoder.kernel_sizes.push_back(3);
  nn::SignalClassifier deep(deeper, 2);
  EXPECT_NE(refusal(deep, folder_ / "run").find("encoder.2.conv.weight is missing"),
            std::string::npos);
  save_signal_classifier(deep, "{}", folder_ / "deep");
  nn::SignalClassifier model(small_network(nn::ChannelPooling::Joint), 2);
  EXPECT_NE(refusal(model, folder_ / "deep").find("encoder.2.norm.running_var is left over"),
            std::string::npos);
  EXPECT_NE(refusal(model, folder_ / "nothing").find("found neither"), std::string::npos);
}

TEST(SignalPooling, NamesComeBack) {
  for (const char* const name : {"flatten", "average", "first", "joint"})
    EXPECT_EQ(channel_pooling_name(parse_channel_pooling(name)), name);
  EXPECT_THROW(parse_channel_pooling("max"), ConfigError);
}

}  // namespace
}  // namespace convoy::models

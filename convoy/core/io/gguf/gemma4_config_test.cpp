// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/io/gguf/gemma4_config.h"

#include <gtest/gtest.h>

#include <functional>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/writer.h"
#include "files/temporary_folder.h"

namespace convoy::gguf {
namespace {

// Three layers as Gemma 4's: two with a window, and one that reads the keys of none.
struct Gemma4Keys {
  std::vector<bool> slides = {true, true, false};
  std::vector<int64_t> kv_heads = {2, 2, 1};
  std::vector<int64_t> ffn = {8, 8, 8};
  int64_t values = 12;
  int64_t shared = 0;
  int64_t rotated = 6;
};

class Gemma4Config : public ::testing::Test {
 protected:
  Gemma4Layers read(const Gemma4Keys& keys) {
    Metadata metadata;
    metadata.truths("gemma4.attention.sliding_window_pattern", keys.slides);
    metadata.numbers("gemma4.attention.head_count_kv", keys.kv_heads);
    metadata.numbers("gemma4.feed_forward_length", keys.ffn);
    metadata.number("gemma4.attention.key_length", 12);
    metadata.number("gemma4.attention.value_length", keys.values);
    metadata.number("gemma4.attention.key_length_swa", 6);
    metadata.number("gemma4.attention.value_length_swa", 6);
    metadata.number("gemma4.attention.shared_kv_layers", keys.shared);
    metadata.number("gemma4.attention.sliding_window", 4);
    metadata.number("gemma4.rope.dimension_count_swa", keys.rotated);
    write_file(folder_ / "x.gguf", metadata, {});
    file_ = std::make_unique<File>(folder_ / "x.gguf");
    return read_gemma4_layers(*file_, 3);
  }
  io::Json config(const Gemma4Keys& keys, bool keys_are_values,
                  const std::vector<float>& divisors) {
    const Gemma4Layers layers = read(keys);
    return gemma4_config(*file_, layers, keys_are_values, divisors, 0);
  }
  static std::string refusal(const std::function<void()>& action) {
    try {
      action();
    } catch (const DataError& error) {
      return error.sentence();
    }
    return "none";
  }

  convoy::testing::TemporaryFolder folder_;
  std::unique_ptr<File> file_;
};

const std::vector<float> kHalf = {1, 1, 1, 1e30f, 1e30f, 1e30f};

TEST_F(Gemma4Config, NamesBothKindsOfLayers) {
  const io::Json found = config({}, true, kHalf);
  EXPECT_EQ(found.at("head_dim"), 6);
  EXPECT_EQ(found.at("global_head_dim"), 12);
  EXPECT_EQ(found.at("num_key_value_heads"), 2);
  EXPECT_EQ(found.at("num_global_key_value_heads"), 1);
  EXPECT_EQ(found.at("attention_k_eq_v"), true);
  EXPECT_EQ(found.at("use_double_wide_mlp"), false);
  EXPECT_EQ(found.at("layer_types"),
            (io::Json{"sliding_attention", "sliding_attention", "full_attention"}));
  EXPECT_EQ(found.at("rope_parameters").at("full_attention").at("partial_rotary_factor"), 0.5);
  EXPECT_TRUE(found.at("final_logit_softcapping").is_null());
}

TEST_F(Gemma4Config, OtherModelsAreRefused) {
  for (const auto& [keys, reason] : std::vector<std::pair<Gemma4Keys, const char*>>{
           {{.slides = {true, false}}, "for each of 3 layers"},
           {{.slides = {false, true, true}}, "the last layer must see all keys"},
           {{.kv_heads = {2, 1, 1}}, "layers of one kind that differ"},
           {{.kv_heads = {2, 2}}, "lists fewer than 3 layers"},
           {{.ffn = {8, 8, 16}}, "only layers that share keys may be wider"},
           {{.ffn = {8, 16, 16}, .shared = 1}, "only layers that share keys may be wider"},
           {{.ffn = {8, 0, 8}}, "0 is no size"},
           {{.values = 10}, "differs from the keys' 12"}})
    EXPECT_NE(refusal([&, &keys = keys] { read(keys); }).find(reason), std::string::npos) << reason;
  EXPECT_EQ(read({.ffn = {8, 8, 16}, .shared = 1}).is_double_wide, true);
  EXPECT_NE(refusal([&] { config({}, false, kHalf); }).find("only where keys are values too"),
            std::string::npos);
  EXPECT_NE(refusal([&] { config({.rotated = 4}, true, kHalf); }).find("only whole heads"),
            std::string::npos);
  for (const auto& [divisors, reason] : std::vector<std::pair<std::vector<float>, const char*>>{
           {{1, 1}, "each of 6 pairs"},
           {{1, 1, 2, 1e30f, 1e30f, 1e30f}, "only whole pairs"},
           {std::vector<float>(6, 1e30f), "leaves no feature"}})
    EXPECT_NE(refusal([&, &divisors = divisors] { config({}, true, divisors); }).find(reason),
              std::string::npos)
        << reason;
}

}  // namespace
}  // namespace convoy::gguf

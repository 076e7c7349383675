// SPDX-License-Identifier: Apache-2.0
//
// Tests predictions of training steps.
#include <gtest/gtest.h>

#include "convoy/core/base/error.h"
#include "files/temporary_folder.h"
#include "predict/predicted_steps_test.h"

namespace convoy::recipes {
namespace {

TEST(BenchPredict, TrainingCountsOfASmallModelAreThoseCountedByHand) {
  const testing::TemporaryFolder folder;
  const std::string config = write_config(folder.path(), kSmall);
  const Json lora = bench_predict(training_of(config, "lora", 3, 50), "cpu");
  const auto launches = launches_by_op(lora);
  EXPECT_EQ(lora["step"], "train");
  EXPECT_EQ(launches.at("_flash_attention_forward"), 2);
  EXPECT_EQ(launches.at("_flash_attention_backward"), 2 * 5) << "heads share keys";
  EXPECT_EQ(launches.at("rms_norm_bf16"), 2 * 2 + 1);
  EXPECT_EQ(launches.at("rms_norm_backward_bf16"), 2 * 2) << "the embedding is frozen";
  EXPECT_EQ(launches.at("gated_activation_backward_bf16"), 2);
  EXPECT_EQ(launches.at("cross_entropy_gradient_bf16"), 1);
  EXPECT_EQ(launches.at("adamw"), 1);
  // A layer has seven maps of four inputs. Each map has two products forward (W and B) and three
  // backward (W, B and its gradient); each input has one forward (A) and two backward (A and its
  // gradient). The embedding's gradients are left out; the head has two products.
  EXPECT_EQ(products_in(launches), 2 * (7 * (2 + 3) + 4 * (1 + 2)) - (3 + 1) + 2);
  EXPECT_EQ(lora["uploads"], 3) << "the batch, the labels and their places";
  EXPECT_EQ(lora["downloads"], 2) << "loss and gradient norm";
  EXPECT_EQ(lora["host_waits"], 2);
  const auto full = launches_by_op(bench_predict(training_of(config, "full", 3, 50), "cpu"));
  EXPECT_EQ(products_in(full), 2 * 7 * 3 + 3);
  EXPECT_EQ(full.at("embedding_dense_backward"), 2);
  const auto qlora = launches_by_op(bench_predict(training_of(config, "qlora", 3, 50), "cpu"));
  EXPECT_EQ(qlora.at("decode_nibbles_bf16"), 2 * 7 * 2 - 3) << "for each product of a weight";
  EXPECT_EQ(products_in(qlora), products_in(launches));
}

// The products of a step agree with the formula. FlashAttention's backward has one more product,
// which computes the scores again.
TEST(BenchPredict, TrainingComputesWhatTheModelNeeds) {
  const testing::TemporaryFolder folder;
  const std::string config = write_config(folder.path(), kSmall);
  const double pairs = 3 * 50 * 51 / 2.0;
  const double scores = 2 * 2.0 * pairs * 64;  // for both layers
  // The adapters of the first queries, keys and values need no gradient of x.
  const double left_out = 2.0 * 3 * 50 * 3 * 16 * 64;
  for (const char* mode : {"lora", "full", "qlora"}) {
    settings::BenchPredictFlags flags = training_of(config, mode, 3, 50);
    const Json result = bench_predict(flags, "cpu");
    const auto flops = result["flops"].get<double>();
    const bool adapts = std::string(mode) != "full";
    EXPECT_NEAR((flops - scores + (adapts ? left_out : 0)) / result["least_flops"].get<double>(),
                1.0, 1e-9)
        << mode;
    EXPECT_NEAR(result["mfu"].get<double>(),
                result["least_flops"].get<double>() /
                    (989.4e12 * 1e-3 * result["predicted_ms"].get<double>()),
                1e-12);
    flags.recompute = true;
    const Json again = bench_predict(flags, "cpu");
    EXPECT_EQ(again["least_flops"], result["least_flops"]);
    EXPECT_GT(again["flops"].get<double>(), 1.1 * flops) << mode;
    EXPECT_LT(again["peak_memory_bytes"], result["peak_memory_bytes"]) << mode;
  }
}

// Counts the launches of forward and backward. These counts are golden too: they may only fall.
TEST(BenchPredict, ALayerOfTrainingIsFewLaunches) {
  const testing::TemporaryFolder folder;
  Sizes sizes = kSmall;
  const auto of_a_layer = [&](const std::string& mode, const std::string& attention) {
    const auto launches_of = [&](int64_t layers) {
      sizes.layers = layers;
      settings::BenchPredictFlags flags =
          training_of(write_config(folder.path(), sizes), mode, 1, 50);
      flags.attention = attention;
      return bench_predict(flags, "cpu")["launches"].get<int64_t>();
    };
    return launches_of(4) - launches_of(3);
  };
  EXPECT_LE(of_a_layer("lora", "flash"), 61);
  EXPECT_LE(of_a_layer("lora", "cudnn"), 59);
  EXPECT_LE(of_a_layer("full", "flash"), 47);
  EXPECT_LE(of_a_layer("full", "cudnn"), 45);
}

// Norms and activations are computed twice, and their outputs are not kept. Products and attention
// are computed once.
TEST(BenchPredict, SelectiveRecomputationKeepsLessAndComputesLittleMore) {
  const testing::TemporaryFolder folder;
  Sizes sizes = kSmall;
  sizes.layers = 12;
  for (const char* mode : {"lora", "full"}) {
    settings::BenchPredictFlags flags =
        training_of(write_config(folder.path(), sizes), mode, 3, 500);
    const auto of = [&](bool selective, bool recompute) {
      flags.selective = selective;
      flags.recompute = recompute;
      return bench_predict(flags, "cpu");
    };
    const Json kept = of(false, false), selective = of(true, false), blocks = of(false, true);
    EXPECT_EQ(selective["recompute"], "selective");
    EXPECT_EQ(selective["flops"], kept["flops"]) << mode;
    EXPECT_LT(selective["peak_memory_bytes"], kept["peak_memory_bytes"]) << mode;
    EXPECT_LT(blocks["peak_memory_bytes"], selective["peak_memory_bytes"]) << mode;
    const auto before = launches_by_op(kept), after = launches_by_op(selective);
    EXPECT_EQ(after.at("gated_activation_bf16"), 2 * before.at("gated_activation_bf16"));
    EXPECT_GE(after.at("rms_norm_bf16"), 2 * before.at("rms_norm_bf16") - 3) << "not the last";
    EXPECT_EQ(after.at("_flash_attention_forward"), before.at("_flash_attention_forward"));
    EXPECT_EQ(products_in(after), products_in(before));
    const double less =
        kept["peak_memory_bytes"].get<double>() - selective["peak_memory_bytes"].get<double>();
    const double planned = kept["planned_memory_bytes"].get<double>() -
                           selective["planned_memory_bytes"].get<double>();
    EXPECT_NEAR(less / planned, 1, 0.15) << mode;
  }
}

TEST(BenchPredict, CudnnsAttentionTakesThePlaceOfFlash) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags =
      training_of(write_config(folder.path(), kSmall), "lora", 3, 50);
  const Json flash = bench_predict(flags, "cpu");
  flags.attention = "cudnn";
  const Json cudnn = bench_predict(flags, "cpu");
  const auto launches = launches_by_op(cudnn);
  EXPECT_FALSE(launches.contains("_flash_attention_forward"));
  EXPECT_EQ(launches.at("_cudnn_attention_forward"), 2) << "rows of one length are a batch";
  EXPECT_EQ(launches.at("_cudnn_attention_backward"), 2 * 3);
  EXPECT_EQ(cudnn["flops"], flash["flops"]);
  EXPECT_LT(cudnn["device_ms"], flash["device_ms"]);
  EXPECT_FALSE(launches.contains("copy") && launches.at("copy") > launches_by_op(flash)["copy"])
      << "tensors go as they lie";
}

TEST(BenchPredict, CudnnsAttentionIsRefusedWhereItTakesNothing) {
  const testing::TemporaryFolder folder;
  Sizes wide = kSmall;
  wide.hidden = 1024;  // the heads have 256 features
  settings::BenchPredictFlags flags = training_of(write_config(folder.path(), wide), "lora", 1, 20);
  flags.attention = "cudnn";
  const auto message_of = [](const std::function<void()>& run) -> std::string {
    try {
      run();
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.location().key, "attention");
      return error.what();
    }
    return "no error";
  };
  EXPECT_NE(message_of([&] { bench_predict(flags, "cpu"); }).find("256 features"),
            std::string::npos);
  write_config(folder.path(), kSmall);
  EXPECT_NE(message_of([&] { measure_step(flags, at::kCPU); }).find("this is a CPU"),
            std::string::npos);
}

// Returns the bytes that a rank sends in each collective.
std::map<std::string, double> link_bytes(const Json& result) {
  std::map<std::string, double> bytes;
  for (const Json& each : result.at("collectives"))
    bytes[each.at("op")] = each.at("link_bytes").get<double>();
  return bytes;
}

// Each of four ranks sends three quarters of the bytes: once to have its piece summed, once to
// gather all pieces.
TEST(BenchPredict, RanksSendWhatTheirStrategyNeeds) {
  const testing::TemporaryFolder folder;
  constexpr Sizes kCut{256, 688, 4, 4, 2, 4096, false};  // every unit is large enough to be cut
  settings::BenchPredictFlags flags = training_of(write_config(folder.path(), kCut), "full", 3, 50);
  const Json alone = bench_predict(flags, "cpu");
  EXPECT_FALSE(alone.contains("collectives"));
  flags.ranks = 4;
  const auto step_of = [&](const char* strategy) {
    flags.strategy = strategy;
    Json result = bench_predict(flags, "cpu");
    EXPECT_EQ(result["strategy"], strategy);
    EXPECT_EQ(result["least_flops"], alone["least_flops"]) << "of one rank";
    EXPECT_LE(result["exposed_ms"].get<double>(), result["link_ms"].get<double>() + 1);
    return result;
  };
  const double layer = 2 * 256 * 256 + 256 + 2 * (256 * 128 + 128) + 3 * 256 * 688 + 2 * 256;
  const double parameters = 4 * layer + 256 + 2 * 4096 * 256;
  const double gradients = 0.75 * 4 * parameters, values = 0.75 * 2 * parameters;
  const auto ddp = link_bytes(step_of("ddp"));
  EXPECT_EQ(ddp.at("all_reduce"), 2 * gradients);
  EXPECT_EQ(ddp.size(), 1);
  const Json zero1_step = step_of("zero1"), zero3_step = step_of("zero3");
  const auto zero1 = link_bytes(zero1_step), zero3 = link_bytes(zero3_step);
  EXPECT_NEAR(zero1.at("reduce_scatter") / gradients, 1, 0.01);
  EXPECT_NEAR(zero1.at("all_gather") / values, 1, 0.01);
  EXPECT_NEAR(zero3.at("reduce_scatter") / gradients, 1, 0.01);
  EXPECT_GT(zero3.at("all_gather"), 1.3 * values) << "forward, and most of it backward again";
  EXPECT_LT(zero1_step["peak_memory_bytes"], alone["peak_memory_bytes"]);
  EXPECT_LT(zero3_step["peak_memory_bytes"], zero1_step["peak_memory_bytes"]);
  EXPECT_GT(zero3_step["tokens_per_s"], alone["tokens_per_s"]);
  const double written =
      alone["weight_bytes"].get<double>() - zero1_step["weight_bytes"].get<double>();
  EXPECT_NEAR(written / values, 1, 0.01) << "each rank reads all weights and writes a quarter";
}

// The norms of queries and keys, and the norms after attention and feed-forward, keep their inputs.
TEST(BenchPredict, ThePlanOfModelsWithMoreNormsIsAsMuchAsTheCount) {
  const testing::TemporaryFolder folder;
  const std::string config = write_config(folder.path(), {256, 512, 4, 8, 4, 512, true});
  for (const char* const family : {"qwen3", "gemma3_text"}) {
    Json sizes = Json::parse(std::ifstream(config));
    sizes.update({{"model_type", family}, {"head_dim", 64}});
    if (family == std::string("gemma3_text"))
      sizes.update({{"hidden_activation", "gelu_pytorch_tanh"},
                    {"query_pre_attn_scalar", 64},
                    {"rope_theta", 1e6},
                    {"rope_local_base_freq", 1e4},
                    {"sliding_window", 512},
                    {"sliding_window_pattern", 2}});
    std::ofstream(config) << sizes;
    for (const char* const mode : {"full", "lora", "qlora"}) {
      const Json result = bench_predict(training_of(config, mode, 4, 2048), "cpu");
      const double share = ratio(result, "planned_memory_bytes", "peak_memory_bytes");
      EXPECT_GT(share, 0.98) << family << " " << mode;
      EXPECT_LT(share, 1.1) << family << " " << mode;
    }
  }
}

TEST(BenchPredict, RanksShareTheStateWhereItDoesNotFitOtherwise) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags =
      training_of(write_config(folder.path(), kQwen7B), "full", 1, 512);
  flags.ranks = 8;
  EXPECT_EQ(bench_predict(flags, "cpu")["strategy"], "zero1");
  flags.device = "rtx4090";
  EXPECT_EQ(bench_predict(flags, "cpu")["strategy"], "zero3");
  flags.device = "l40s";
  flags.mode = "lora";
  const Json lora = bench_predict(flags, "cpu");
  EXPECT_EQ(lora["strategy"], "ddp");
  EXPECT_EQ(lora["device_memory_bytes"], int64_t{46068} << 20);
}

TEST(BenchPredict, RefusesFlagsOfOtherSteps) {
  const testing::TemporaryFolder folder;
  const std::string config = write_config(folder.path(), kSmall);
  const auto key_of = [&](auto change, bool train) {
    settings::BenchPredictFlags flags =
        train ? training_of(config, "full", 1, 50) : decode_of(config, 2, 20);
    change(flags);
    try {
      bench_predict(flags, "cpu");
    } catch (const ConfigError& error) {
      return error.location().key;
    }
    return std::string("none");
  };
  using Flags = settings::BenchPredictFlags;
  EXPECT_EQ(key_of([](Flags&) {}, true), "none");
  EXPECT_EQ(key_of([](Flags& flags) { flags.double_quant = true; }, true), "double_quant");
  EXPECT_EQ(key_of([](Flags& flags) { flags.context = 100; }, true), "context");
  EXPECT_EQ(key_of([](Flags& flags) { flags.recompute = flags.selective = true; }, true),
            "selective");
  EXPECT_EQ(key_of([](Flags& flags) { flags.mode = "full"; }, false), "mode");
  EXPECT_EQ(key_of([](Flags& flags) { flags.recompute = true; }, false), "recompute");
  EXPECT_EQ(key_of([](Flags& flags) { flags.ranks = 2; }, false), "ranks");
}

// These figures are golden: only the collectives of the first block and of the last gradients are
// not hidden.
TEST(BenchPredict, ShardedStepOf7BOnEightHidesItsCollectives) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags =
      training_of(write_config(folder.path(), kQwen7B), "full", 1, 4096);
  flags.ranks = 8;
  for (const char* const strategy : {"zero2", "zero3"}) {
    flags.strategy = strategy;
    const Json result = bench_predict(flags, "cpu");
    EXPECT_LE(result["exposed_ms"].get<double>(), 0.03 * result["predicted_ms"].get<double>())
        << strategy;
    EXPECT_LE(result["host_waits"].get<int64_t>(), 2) << strategy;
  }
}

// These figures are golden: they may only fall.
TEST(BenchPredict, LoraStepOf7BTakesNoMoreThanItDid) {
  const testing::TemporaryFolder folder;
  const Json result =
      bench_predict(training_of(write_config(folder.path(), kQwen7B), "lora", 1, 4096), "cpu");
  EXPECT_LE(result["launches"].get<int64_t>(), 1'768);
  EXPECT_LE(result["uploads"].get<int64_t>(), 3);
  EXPECT_LE(result["host_waits"].get<int64_t>(), 2);
  EXPECT_LE(result["host_ms"].get<double>(), 37.2);
  EXPECT_LE(result["other_bytes"].get<double>(), 191.7e9);
  EXPECT_LE(result["predicted_ms"].get<double>(), 241.4);
  EXPECT_GE(result["mfu"].get<double>(), 0.531);
  EXPECT_NEAR(ratio(result, "peak_memory_bytes", "planned_memory_bytes"), 1.0, 0.02);
}

TEST(BenchPredict, LoraStepOf7BWithCudnnTakesNoMoreThanItDid) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags =
      training_of(write_config(folder.path(), kQwen7B), "lora", 1, 4096);
  flags.attention = "cudnn";
  const Json lora = bench_predict(flags, "cpu");
  EXPECT_LE(lora["launches"].get<int64_t>(), 1'712);
  EXPECT_LE(lora["predicted_ms"].get<double>(), 228.7);
  EXPECT_GE(lora["mfu"].get<double>(), 0.56);
  flags.mode = "qlora";
  const Json qlora = bench_predict(flags, "cpu");
  EXPECT_GE(lora["predicted_ms"].get<double>() / qlora["predicted_ms"].get<double>(), 0.96);
}

TEST(BenchPredict, FullStepOf7BTakesNoMoreThanItDid) {
  const testing::TemporaryFolder folder;
  const Json result =
      bench_predict(training_of(write_config(folder.path(), kQwen7B), "full", 1, 4096), "cpu");
  EXPECT_LE(result["launches"].get<int64_t>(), 1'374);
  EXPECT_LE(result["host_waits"].get<int64_t>(), 2);
  EXPECT_LE(result["state_bytes"].get<double>(), 182.8e9);
  EXPECT_LE(result["other_bytes"].get<double>(), 201.0e9);
  EXPECT_LE(result["predicted_ms"].get<double>(), 366.3);
  EXPECT_LE(ratio(result, "peak_memory_bytes", "planned_memory_bytes"), 1.0);
  EXPECT_EQ(result["products"].size(), 12);
}

}  // namespace
}  // namespace convoy::recipes

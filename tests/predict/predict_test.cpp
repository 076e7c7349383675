// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "convoy/apps/recipes/bench/bench_predict.h"
#include "convoy/apps/recipes/bench/measured_ops.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/field_list.h"
#include "convoy/machine/counting/gpu_speed.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

struct Sizes {
  int64_t hidden, ffn, layers, heads, kv_heads, vocab;
  bool tied;
};
constexpr Sizes kQwen7B{3584, 18944, 28, 28, 4, 152064, false};
constexpr Sizes kSmall{64, 160, 2, 4, 2, 512, false};

std::string write_config(const std::filesystem::path& folder, const Sizes& sizes) {
  const std::filesystem::path file = folder / "config.json";
  std::ofstream(file) << Json{{"model_type", "qwen2"},
                              {"hidden_size", sizes.hidden},
                              {"intermediate_size", sizes.ffn},
                              {"num_hidden_layers", sizes.layers},
                              {"num_attention_heads", sizes.heads},
                              {"num_key_value_heads", sizes.kv_heads},
                              {"vocab_size", sizes.vocab},
                              {"tie_word_embeddings", sizes.tied},
                              {"max_position_embeddings", 32768},
                              {"rms_norm_eps", 1e-6},
                              {"hidden_act", "silu"}};
  return file.string();
}

settings::BenchPredictFlags decode_of(const std::string& config, int64_t rows, int64_t context) {
  settings::BenchPredictFlags flags;
  flags.config = config;
  flags.decode = true;
  flags.rows = rows;
  flags.context = context;
  return flags;
}

// By op: launches, or calls of what is no launch.
std::map<std::string, int64_t> launches_by_op(const Json& result) {
  std::map<std::string, int64_t> launches;
  for (const Json& op : result.at("ops"))
    launches[op.at("op")] =
        std::max(op.at("launches").get<int64_t>(), op.at("calls").get<int64_t>());
  return launches;
}

double ratio(const Json& result, const char* of, const char* to) {
  return result.at(of).get<double>() / result.at(to).get<double>();
}

TEST(BenchPredict, CountsOfASmallModelAreThoseCountedByHand) {
  const testing::TemporaryFolder folder;
  const Json result = bench_predict(decode_of(write_config(folder.path(), kSmall), 3, 40), "cpu");
  const auto launches = launches_by_op(result);
  // Four products a layer, that of q, k and v with its biases; the head.
  EXPECT_EQ(launches.at("addmm"), 2);
  EXPECT_EQ(launches.at("mm"), 2 * 3 + 1);
  EXPECT_EQ(launches.at("rms_norm_bf16"), 2 * 2 + 1) << "with the residual's sums";
  EXPECT_FALSE(launches.contains("add") || launches.contains("rope_bf16"));
  EXPECT_EQ(launches.at("index_select"), 1) << "embedding";
  EXPECT_EQ(launches.at("paged_store_bf16"), 2);
  EXPECT_EQ(launches.at("paged_decode_2_bf16"), 2);
  EXPECT_EQ(result["downloads"], 1) << "the picked ids";
  EXPECT_EQ(launches.at("sample_bf16"), 1);
  EXPECT_EQ(result["uploads"], 1);
  EXPECT_EQ(result["host_waits"], 0);
  // Blocks' matrices, biases and norms, final norm, head, and three rows of the embedding.
  const int64_t layer = 64 * 64 + 64 + 2 * (64 * 32 + 32) + 64 * 64 + 3 * 64 * 160 + 2 * 64;
  const int64_t weights = 2 * (2 * layer + 64 + 512 * 64 + 3 * 64);
  EXPECT_EQ(result["least_weight_bytes"], weights);
  EXPECT_EQ(result["weight_bytes"], weights) << "each weight is read once";
  EXPECT_EQ(result["least_kv_bytes"], 2 * 2 * 3 * 40 * 2 * 16 * 2);
  EXPECT_LE(ratio(result, "kv_bytes", "least_kv_bytes"), 1.05) << "new ones are written and read";
  EXPECT_GT(result["predicted_ms"].get<double>(), result["roofline_ms"].get<double>());
}

TEST(BenchPredict, ModelFolderAndItsConfigGiveTheSameCounts) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  const std::string folder = std::string(source == nullptr ? "." : source) + "/examples/tally-3m";
  settings::BenchPredictFlags flags = decode_of(folder + "/config.json", 2, 33);
  const Json of_config = bench_predict(flags, "cpu");
  flags.config.clear();
  flags.model = folder;
  EXPECT_EQ(bench_predict(flags, "cpu"), of_config);
}

// Nine launches a layer: two norms with sums, four products, the store with the rotation,
// attention, the activation.
TEST(BenchPredict, ALayerIsNineLaunchesInEveryFormOfItsWeights) {
  const testing::TemporaryFolder folder;
  Sizes sizes = kSmall;
  const auto launches_of = [&](int64_t layers, const std::string& weights,
                               const std::string& quantization) {
    sizes.layers = layers;
    settings::BenchPredictFlags flags = decode_of(write_config(folder.path(), sizes), 3, 40);
    flags.weights = weights;
    flags.quantization = quantization;
    return launches_by_op(bench_predict(flags, "cpu"));
  };
  const auto of_a_layer = [&](const std::string& weights, const std::string& quantization) {
    std::map<std::string, int64_t> difference = launches_of(3, weights, quantization);
    for (const auto& [op, launches] : launches_of(2, weights, quantization))
      difference[op] -= launches;
    return difference;
  };
  const auto products = [](std::map<std::string, int64_t> launches) {
    return launches["mm"] + launches["addmm"];
  };
  int64_t all = 0;
  for (const auto& [op, launches] : of_a_layer("model", "none")) all += launches;
  EXPECT_EQ(all, 9);
  EXPECT_LE(products(of_a_layer("int8", "none")), 4);
  EXPECT_LE(products(of_a_layer("int4", "none")), 4);
  EXPECT_LE(products(of_a_layer("model", "nf4")), 4);
  EXPECT_LE(products(of_a_layer("model", "int8")), 4);
}

// Golden counts of Qwen2.5-7B: they may only fall.
TEST(BenchPredict, DecodeOf7BTakesNoMoreThanItDid) {
  const testing::TemporaryFolder folder;
  const Json result =
      bench_predict(decode_of(write_config(folder.path(), kQwen7B), 16, 1024), "cpu");
  EXPECT_LE(result["launches"].get<int64_t>(), 284);
  EXPECT_LE(result["uploads"].get<int64_t>(), 1);
  EXPECT_LE(result["downloads"].get<int64_t>(), 1);
  EXPECT_LE(result["host_waits"].get<int64_t>(), 0);
  EXPECT_LE(result["host_ops"].get<int64_t>(), 823);
  EXPECT_EQ(result["weight_bytes"], result["least_weight_bytes"]);
  EXPECT_LE(ratio(result, "kv_bytes", "least_kv_bytes"), 1.001);
  // 0.08e9 of them are sums of eight splits a row: two took an H200 four times as long.
  EXPECT_LE(result["other_bytes"].get<double>(), 0.281e9);
  EXPECT_GE(result["roofline_share"].get<double>(), 0.648);
  EXPECT_NEAR(result["least_weight_bytes"].get<double>(), 14.14e9, 0.02e9);
}

TEST(BenchPredict, PrefillOf7BTakesNoMoreThanItDid) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags;
  flags.config = write_config(folder.path(), kQwen7B);
  flags.prefill = true;
  flags.tokens = 2048;
  const Json result = bench_predict(flags, "cpu");
  EXPECT_EQ(result["rows"], 1);
  // Two operations for each of 6.53e9 elements of matrices and token, and attention.
  EXPECT_NEAR(result["least_flops"].get<double>(),
              2 * 6.525e9 * 2048 + 28 * 2e0 * 3584 * 2048 * 2049, 0.01e13);
  EXPECT_NEAR(result["roofline_ms"].get<double>(),
              result["least_flops"].get<double>() / 989.4e12 * 1e3, 1e-6);
  EXPECT_LE(result["launches"].get<int64_t>(), 341);
  EXPECT_LE(result["uploads"].get<int64_t>(), 1);
  EXPECT_LE(result["host_waits"].get<int64_t>(), 0);
  EXPECT_LE(result["host_ops"].get<int64_t>(), 1'104);
  EXPECT_LE(result["other_bytes"].get<double>(), 24.02e9);
  EXPECT_LE(ratio(result, "flops", "least_flops"), 1.0001) << "attention computes visible pairs";
  EXPECT_GE(result["roofline_share"].get<double>(), 0.576);
}

// The path that a GPU takes: blocks of keys and values are gathered once a layer, then FlashAttention.
TEST(BenchPredict, PrefillOfASmallModelIsThatOfAGpu) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags;
  flags.config = write_config(folder.path(), kSmall);
  flags.prefill = true;
  flags.rows = 3;
  flags.tokens = 40;
  const Json result = bench_predict(flags, "cpu");
  const auto launches = launches_by_op(result);
  EXPECT_EQ(launches.at("_flash_attention_forward"), 2);
  EXPECT_EQ(launches.at("index_select"), 2 * 2 + 2) << "keys, values; embedding, rows that draw";
  EXPECT_FALSE(launches.contains("bmm"));
  for (const Json& op : result["ops"]) {
    if (op["op"] != "_flash_attention_forward") continue;
    // Queries and sums of 4 heads of 16; whole gathered blocks: two of 32 tokens a row.
    EXPECT_EQ(op["bytes"], 2 * (3 * (2 * 40 * 64 * 2 + 40 * 4 * 4) + 2 * 3 * 64 * 32 * 2));
  }
  // Visible pairs alone, as in the least.
  EXPECT_NEAR(ratio(result, "flops", "least_flops"), 1.0, 1e-3);
}

TEST(BenchPredict, FewBitsAreFewerBytes) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags = decode_of(write_config(folder.path(), kSmall), 1, 20);
  const auto least = [&] {
    return bench_predict(flags, "cpu")["least_weight_bytes"].get<double>();
  };
  const double whole = least();
  for (const char* weights : {"int8", "int4"}) {
    flags.weights = weights;
    EXPECT_LT(least(), 0.7 * whole) << weights;
  }
  flags.weights = "model";
  flags.quantization = "nf4";
  EXPECT_LT(least(), whole);
  flags.kv_dtype = "int8";
  const Json result = bench_predict(flags, "cpu");
  EXPECT_EQ(result["least_kv_bytes"], 2 * 2 * 20 * 2 * (16 + 4)) << "and a scale of four bytes";
}

// A layer of 7B: each code is read once, in the one launch that a product in bf16 takes.
TEST(BenchPredict, ProductsOfFewRowsReadCodesOnce) {
  const testing::TemporaryFolder folder;
  Sizes sizes = kQwen7B;
  sizes.layers = 1;
  sizes.vocab = 1024;
  const settings::BenchPredictFlags whole = decode_of(write_config(folder.path(), sizes), 16, 64);
  const Json in_bf16 = bench_predict(whole, "cpu");
  for (const auto& [weights, quantization, doubled] :
       std::vector<std::tuple<std::string, std::string, bool>>{{"int8", "none", false},
                                                               {"int4", "none", false},
                                                               {"model", "nf4", false},
                                                               {"model", "nf4", true},
                                                               {"model", "int8", false}}) {
    settings::BenchPredictFlags flags = whole;
    flags.weights = weights;
    flags.quantization = quantization;
    flags.double_quant = doubled;
    const Json result = bench_predict(flags, "cpu");
    const std::string what = weights + " " + quantization;
    EXPECT_EQ(result["weight_bytes"], result["least_weight_bytes"]) << what;
    // Weights with nested scales stay apart: q, k and v, gate and up.
    const int64_t apart = doubled ? 3 : 0;
    EXPECT_EQ(result["launches"], in_bf16["launches"].get<int64_t>() + apart) << what;
    EXPECT_LT(result["device_ms"].get<double>(), 0.8 * in_bf16["device_ms"].get<double>()) << what;
  }
}

TEST(BenchPredict, DrawingWithATemperatureIsCountedToo) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags = decode_of(write_config(folder.path(), kSmall), 2, 20);
  const auto likeliest = launches_by_op(bench_predict(flags, "cpu"));
  flags.temperature = 0.7;
  EXPECT_EQ(launches_by_op(bench_predict(flags, "cpu")), likeliest);
}

// Golden, too: of the draw of 16 tokens of 152,064, beside picking the likeliest.
TEST(BenchPredict, DrawFromAVocabularyOf152kTakesNoMoreThanItDid) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags = decode_of(write_config(folder.path(), kQwen7B), 16, 64);
  const Json likeliest = bench_predict(flags, "cpu");
  flags.temperature = 0.7;
  const auto more = [&](const char* key, double top_p) {
    flags.top_p = top_p;
    return bench_predict(flags, "cpu").at(key).get<double>() - likeliest.at(key).get<double>();
  };
  EXPECT_LE(more("launches", 1.0), 0) << "a kernel picks the token";
  EXPECT_LE(more("uploads", 1.0), 0);
  EXPECT_LE(more("host_waits", 1.0), 0);
  EXPECT_LE(more("device_ms", 1.0), 0.01);
  EXPECT_LE(more("launches", 0.9), 0) << "not sorted";
}

settings::BenchPredictFlags training_of(const std::string& config, const std::string& mode,
                                        int64_t rows, int64_t tokens) {
  settings::BenchPredictFlags flags;
  flags.config = config;
  flags.train = true;
  flags.mode = mode;
  flags.rows = rows;
  flags.tokens = tokens;
  return flags;
}

int64_t products_in(const std::map<std::string, int64_t>& launches) {
  int64_t all = 0;
  for (const char* op : {"mm", "addmm", "addmm_"})
    if (const auto found = launches.find(op); found != launches.end()) all += found->second;
  return all;
}

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
  // Of seven maps of four inputs a layer: their own and that of B forward, three backward (W, B and
  // its gradient); of each input one forward (A) and two backward (A and its gradient). But for the
  // gradients of the embedding; of the head two.
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

// The products of a step are those of its formula, and one more of FlashAttention's backward, which
// computes the scores again.
TEST(BenchPredict, TrainingComputesWhatTheModelNeeds) {
  const testing::TemporaryFolder folder;
  const std::string config = write_config(folder.path(), kSmall);
  const double pairs = 3 * 50 * 51 / 2.0;
  const double scores = 2 * 2.0 * pairs * 64;  // of both layers
  // The adapters of the first queries, keys and values have no gradient of x either.
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

// Forward and backward; golden, too.
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

// Norms and activations twice, their outputs not kept; products and attention as before.
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
  wide.hidden = 1024;  // heads of 256 features
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

// By name: bytes that a rank sends.
std::map<std::string, double> link_bytes(const Json& result) {
  std::map<std::string, double> bytes;
  for (const Json& each : result.at("collectives"))
    bytes[each.at("op")] = each.at("link_bytes").get<double>();
  return bytes;
}

// Of four ranks each sends three quarters: once to have its piece summed, once to have all pieces.
TEST(BenchPredict, RanksSendWhatTheirStrategyNeeds) {
  const testing::TemporaryFolder folder;
  constexpr Sizes kCut{256, 688, 4, 4, 2, 4096, false};  // each unit is large enough to be cut
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

// Golden, too: collectives are hidden but for the first block's and the last gradients.
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

// Golden, too.
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

TEST(BenchPredict, RefusesWhatIsNoStep) {
  const testing::TemporaryFolder folder;
  const settings::BenchPredictFlags good = decode_of(write_config(folder.path(), kSmall), 1, 20);
  const auto key_of_error = [](const settings::BenchPredictFlags& flags) -> std::string {
    try {
      bench_predict(flags, "cpu");
    } catch (const ConfigError& error) {
      return error.location().key;
    }
    return "no error";
  };
  settings::BenchPredictFlags flags = good;
  flags.config.clear();
  EXPECT_EQ(key_of_error(flags), "model");
  flags = good;
  flags.prefill = true;
  EXPECT_EQ(key_of_error(flags), "decode");
  flags = good;
  flags.train = true;
  EXPECT_EQ(key_of_error(flags), "decode");
  flags = good;
  flags.ranks = 2;
  EXPECT_EQ(key_of_error(flags), "ranks");
  flags = training_of(good.config, "lora", 1, 20);
  flags.ranks = 2;
  flags.strategy = "none";
  EXPECT_NE(key_of_error(flags), "no error");
  flags = training_of(good.config, "lora", 1, 20);
  flags.kv_dtype = "int8";
  EXPECT_EQ(key_of_error(flags), "kv_dtype");
  flags = training_of(good.config, "lora", 1, 1);
  EXPECT_EQ(key_of_error(flags), "tokens");
  flags = training_of(good.config, "lora", 1, 40'000);
  EXPECT_EQ(key_of_error(flags), "tokens");
  flags = training_of(good.config, "full", 1, 20);
  flags.dtype = "fp32";
  EXPECT_EQ(key_of_error(flags), "dtype");
  flags = good;
  flags.context = 40'000;
  EXPECT_EQ(key_of_error(flags), "context");
  flags = good;
  flags.config = (folder.path() / "broken.json").string();
  std::ofstream(flags.config) << R"({"model_type": "qwen2", "hidden_size": -1})";
  EXPECT_THROW(bench_predict(flags, "cpu"), DataError);
}

TEST(BenchPredict, FlagsNameTheGpusWhoseSpeedIsKnown) {
  settings::BenchPredictFlags flags;
  std::vector<std::string> names;
  for (const counting::GpuSpeed& speed : counting::gpu_speeds()) names.emplace_back(speed.name);
  const config::Section section = config::list_fields(flags);
  const auto found = std::find_if(section.fields.begin(), section.fields.end(),
                                  [](const auto& field) { return field.name == "device"; });
  ASSERT_NE(found, section.fields.end());
  EXPECT_EQ(found->choices, names);
}

// What stands beside the prediction on a GPU, here on the CPU.
TEST(BenchPredict, TheSameStepIsTimedOnADeviceThatComputes) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags = decode_of(write_config(folder.path(), kSmall), 2, 20);
  const MeasuredStep decode = measure_step(flags, at::kCPU);
  EXPECT_GT(decode.seconds, 0);
  EXPECT_TRUE(decode.seconds_by_op.contains("index_select")) << "embedding";
  flags.decode = false;
  flags.prefill = true;
  flags.tokens = 20;
  EXPECT_GT(measure_step(flags, at::kCPU).seconds, 0);
}

TEST(BenchPredict, TheSameTrainingStepIsTimedOnADeviceThatComputes) {
  install_counting_gpu();  // LibTorch's engine counts devices at its first backward pass
  const testing::TemporaryFolder folder;
  const std::string config = write_config(folder.path(), kSmall);
  for (const char* mode : {"lora", "full", "qlora"}) {
    const MeasuredStep step = measure_step(training_of(config, mode, 1, 20), at::kCPU);
    EXPECT_GT(step.seconds, 0) << mode;
    EXPECT_TRUE(step.seconds_by_op.contains("index_select")) << "labelled tokens";
  }
}

TEST(MeasuredOps, AreThoseOfThePredictionByItsNames) {
  const testing::TemporaryFolder folder;
  const std::string config = write_config(folder.path(), kSmall);
  for (const auto& flags : {decode_of(config, 2, 20), training_of(config, "lora", 2, 20),
                            training_of(config, "full", 2, 20)}) {
    Json predicted;
    const auto measured = measure_ops(at::kCPU, [&] { predicted = bench_predict(flags, "cpu"); });
    for (const Json& op : predicted["ops"]) {
      const std::string name = op["op"];
      if (name == "download" || name == "upload") continue;
      EXPECT_TRUE(measured.contains(name)) << name;
    }
    EXPECT_TRUE(measured.contains("rms_norm_bf16")) << "a kernel of Convoy";
  }
}

// A call within another one is in both times.
TEST(MeasuredOps, TakeTheTimeOfTheirCalls) {
  const at::Tensor a = at::ones({300, 300});
  const auto once = measure_ops(at::kCPU, [&] { a.matmul(a); });
  EXPECT_GT(once.at("mm"), 0);
  EXPECT_GT(once.at("matmul"), 0);
  EXPECT_FALSE(once.contains("fill_"));
  EXPECT_TRUE(measure_ops(at::kCPU, [] {}).empty());
}

}  // namespace
}  // namespace convoy::recipes

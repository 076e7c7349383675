// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>

#include "convoy/apps/recipes/bench/measured_ops.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/field_list.h"
#include "convoy/machine/counting/gpu_speed.h"
#include "files/temporary_folder.h"
#include "predict/predicted_steps_test.h"

namespace convoy::recipes {
namespace {

TEST(BenchPredict, CountsOfASmallModelAreThoseCountedByHand) {
  const testing::TemporaryFolder folder;
  const Json result = bench_predict(decode_of(write_config(folder.path(), kSmall), 3, 40), "cpu");
  const auto launches = launches_by_op(result);
  // A layer has four products: the joined one for q, k and v has biases and is an addmm. The head
  // is one more product.
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
  // The least bytes are the matrices, biases and norms of the blocks, the final norm, the head, and
  // three rows of the embedding.
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

// A layer has nine launches: two norms with sums, four products, the rotation with the store,
// attention, and the activation.
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

// These counts of Qwen2.5-7B are golden: they may only fall.
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
  // 0.04e9 of the bytes are partial results: 264 blocks of an H200 share 64 tasks.
  EXPECT_LE(result["other_bytes"].get<double>(), 0.243e9);
  EXPECT_GE(result["roofline_share"].get<double>(), 0.6499);
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
  // Two operations for each token and each of 6.53e9 matrix elements, plus attention.
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

// On a GPU, blocks of keys and values are gathered once per layer, and then FlashAttention runs.
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
    // The bytes of queries and sums of 4 heads with 16 features, and of whole gathered blocks: two
    // of 32 tokens for each row.
    EXPECT_EQ(op["bytes"], 2 * (3 * (2 * 40 * 64 * 2 + 40 * 4 * 4) + 2 * 3 * 64 * 32 * 2));
  }
  // Only visible pairs count, as in the least number of operations.
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

// A product of a 7B layer reads each code once and takes one launch, as a product in bf16 does.
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
    // Weights with nested scales are not joined: q, k and v, and gate and up.
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

// A golden figure: the additional cost of drawing 16 tokens from 152,064 ids, compared with picking
// the most likely ones.
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

// On a GPU these measured figures stand beside the prediction. This test measures them on the CPU.
TEST(BenchPredict, TheSameStepIsTimedOnADeviceThatComputes) {
  const testing::TemporaryFolder folder;
  settings::BenchPredictFlags flags = decode_of(write_config(folder.path(), kSmall), 2, 20);
  const MeasuredStep decode = measure_step(flags, at::kCPU);
  EXPECT_GT(decode.seconds, 0);
  EXPECT_TRUE(decode.seconds_by_op.contains("index_select")) << "embedding";
  flags.decode = false;
  flags.prefill = true;
  flags.context = settings::BenchPredictFlags().context;
  flags.tokens = 20;
  EXPECT_GT(measure_step(flags, at::kCPU).seconds, 0);
}

TEST(BenchPredict, TheSameTrainingStepIsTimedOnADeviceThatComputes) {
  install_counting_gpu();  // before the engine of autograd counts the devices
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

// The time of a call within another call counts in both.
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

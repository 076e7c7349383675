// SPDX-License-Identifier: Apache-2.0
//
// Tests GGUF files of the Python package gguf (tests/golden/gguf), files that Convoy wrote, and
// damaged files.
#include "convoy/core/io/gguf/file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <functional>

#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/model.h"
#include "convoy/core/io/gguf/pre_tokenizer.h"
#include "convoy/core/io/gguf/rope_divisors.h"
#include "convoy/core/io/gguf/writer.h"
#include "convoy/core/io/model_folder.h"
#include "files/mutated_texts.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::gguf {
namespace {

namespace fs = std::filesystem;
using convoy::testing::TemporaryFolder;

fs::path golden(const char* name) {
  return convoy::testing::source_folder() / "tests/golden/gguf" / name;
}

TEST(GgufFile, HasTheMetadataThatThePackageWrote) {
  const File file(golden("tiny.gguf"));
  EXPECT_EQ(file.text("general.architecture"), "llama");
  EXPECT_EQ(file.integer("llama.embedding_length", 0, 1000), 256);
  EXPECT_EQ(file.real("llama.attention.layer_norm_rms_epsilon"), 1e-5);  // not 9.99999974738e-06
  EXPECT_EQ(file.integer("convoy.test.uint8", INT64_MIN, INT64_MAX), 200);
  EXPECT_EQ(file.integer("convoy.test.int8", INT64_MIN, INT64_MAX), -100);
  EXPECT_EQ(file.integer("convoy.test.uint16", INT64_MIN, INT64_MAX), 60000);
  EXPECT_EQ(file.integer("convoy.test.int16", INT64_MIN, INT64_MAX), -30000);
  EXPECT_EQ(file.integer("convoy.test.int32", INT64_MIN, INT64_MAX), -70000);
  EXPECT_EQ(file.integer("convoy.test.uint64", INT64_MIN, INT64_MAX), int64_t{1} << 40);
  EXPECT_EQ(file.integer("convoy.test.int64", INT64_MIN, INT64_MAX), -(int64_t{1} << 40));
  EXPECT_EQ(file.real("convoy.test.float64"), 0.1);
  EXPECT_EQ(file.list("convoy.test.numbers")->integers, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(file.list("convoy.test.reals")->reals, (std::vector<double>{0.5, 0.1}));
  EXPECT_EQ(file.list("convoy.test.truths")->integers, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(file.list("tokenizer.ggml.tokens")->texts.size(), 290u);
  EXPECT_EQ(file.find_tensor("blk.0.attn_k.weight")->shape, (std::vector<int64_t>{64, 256}));
  EXPECT_THROW(file.text("llama.embedding_length"), DataError);
  EXPECT_THROW(file.require_integer("llama.none", 0, 1), DataError);
}

TEST(GgufFile, IsAModelFolderWithTransformersNames) {
  const io::ModelFolder folder = io::ModelFolder::open(golden("tiny.gguf").string());
  EXPECT_TRUE(folder.is_gguf());
  EXPECT_EQ(folder.config().require_string("model_type"), "llama");
  EXPECT_EQ(folder.config().require_int("num_key_value_heads", 1, 9), 2);
  EXPECT_EQ(folder.config().require_double("rope_theta", 1, 1e9), 500000.0);
  EXPECT_EQ(folder.config().bool_or("tie_word_embeddings", false), true);
  EXPECT_EQ(folder.generation_config()->ints_or_empty("eos_token_id", 0, 999),
            (std::vector<int64_t>{264, 262}));
  EXPECT_EQ(folder.weight_file_names(), (std::vector<std::string>{"tiny.gguf"}));
  EXPECT_FALSE(folder.text("chat_template.jinja"));
  EXPECT_EQ(folder.find("config.json"), std::nullopt);
}

TEST(GgufFile, HoldsTheWeightsInTransformersOrder) {
  const io::ModelWeights found(io::ModelFolder::open(golden("tiny.gguf").string()));
  const io::SafetensorsFile wanted(golden("tiny.safetensors"));
  EXPECT_EQ(found.names().size(), 11u);
  for (const io::TensorView& view : wanted.tensors()) {
    const io::TensorView& own = found.require(view.name);
    EXPECT_EQ(own.shape, view.shape);
    std::vector<std::byte> whole(
        static_cast<size_t>(own.num_elements() * io::dtype_bytes(own.dtype)));
    io::copy_bytes(own, whole);
    if (own.dtype == io::Dtype::F32) {
      EXPECT_TRUE(std::equal(whole.begin(), whole.end(), view.bytes.begin())) << view.name;
    }
    // Any part, read alone, equals the same part of the whole tensor.
    for (const auto& [begin, count] : {std::pair<int64_t, int64_t>{0, 1}, {3, 700}, {255, 2}}) {
      if (begin + count > own.num_elements()) continue;
      const int64_t size = io::dtype_bytes(own.dtype);
      std::vector<std::byte> part(static_cast<size_t>(count * size));
      io::copy_bytes(own.elements(begin, count), part);
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + begin * size)) << view.name;
    }
  }
  // Tensors of floats keep their dtype, whether or not their rows are reordered.
  EXPECT_EQ(found.require("model.layers.0.self_attn.k_proj.weight").dtype, io::Dtype::F16);
  EXPECT_EQ(found.require("model.layers.0.self_attn.q_proj.weight").dtype, io::Dtype::F32);
}

// A GGUF file with all that a reader needs, and small enough to damage at any byte.
struct Small {
  Metadata metadata;
  std::vector<TensorToWrite> tensors;

  explicit Small(const std::string& architecture = "llama", int64_t blocks = 1) {
    metadata.text("general.architecture", architecture);
    for (const auto& [key, value] :
         std::vector<std::pair<const char*, int64_t>>{{"block_count", blocks},
                                                      {"context_length", 8},
                                                      {"embedding_length", 32},
                                                      {"feed_forward_length", 32},
                                                      {"attention.head_count", 2}})
      metadata.number(architecture + "." + key, value);
    metadata.real(architecture + ".attention.layer_norm_rms_epsilon", 1e-6);
    metadata.text("tokenizer.ggml.model", "gpt2");
    metadata.text("tokenizer.ggml.pre", "qwen2");
    metadata.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<e>"});
    metadata.numbers("tokenizer.ggml.token_type", {1, 1, 1, 3});
    metadata.texts("tokenizer.ggml.merges", {"a b"});
    metadata.number("tokenizer.ggml.eos_token_id", 3);
    metadata.truth("tokenizer.ggml.add_bos_token", false);
    add("token_embd.weight", TensorType::Q8_0, {4, 32});
    add("output_norm.weight", TensorType::F32, {32});
  }

  void add(const char* name, TensorType type, std::vector<int64_t> shape) {
    tensors.push_back({.name = name, .type = type, .shape = std::move(shape), .produce = {}});
    TensorToWrite& tensor = tensors.back();
    tensor.produce = [bytes = tensor.num_bytes()](const io::ByteSink& sink) {
      sink(std::vector<std::byte>(static_cast<size_t>(bytes), std::byte{1}));
    };
  }
  std::string bytes(const fs::path& path) const {
    write_file(path, metadata, tensors);
    return read_file(path);
  }
};

TEST(GgufFile, OurOwnIsReadAgain) {
  const TemporaryFolder folder;
  const Small small;
  write_file(folder / "x.gguf", small.metadata, small.tensors);
  const File file(folder / "x.gguf");
  EXPECT_EQ(file.tensors().size(), 2u);
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<int64_t>{4, 32}));
  EXPECT_EQ(file.tensors()[0].offset % 32, 0);
  EXPECT_EQ(file.tensors()[1].type, TensorType::F32);
  EXPECT_EQ(file.list("tokenizer.ggml.token_type")->integers, (std::vector<int64_t>{1, 1, 1, 3}));
  EXPECT_EQ(file.truth("tokenizer.ggml.add_bos_token"), false);
}

void put(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string refusal_of(const fs::path& path) {
  try {
    const File file(path);
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().file, path.string());
    return error.sentence();
  }
  return "";
}

// Replaces the first occurrence of `wanted` in `bytes`.
std::string with(std::string bytes, const std::string& wanted, const std::string& other) {
  const size_t found = bytes.find(wanted);
  EXPECT_NE(found, std::string::npos);
  return bytes.replace(found, wanted.size(), other);
}

std::string number(uint64_t value, size_t size) {
  std::string bytes;
  for (size_t index = 0; index < size; ++index) bytes += static_cast<char>(value >> (8 * index));
  return bytes;
}

TEST(GgufFile, WhatIsWrongIsNamed) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.gguf";
  const std::string good = Small().bytes(path);
  const std::string of_embedding =
      "token_embd.weight" + number(2, 4) + number(32, 8) + number(4, 8);
  const std::string epsilon = "layer_norm_rms_epsilon";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"PK" + good.substr(2), "does not begin with `GGUF`"},
      {good.substr(0, 3), "does not begin with `GGUF`"},
      {good.substr(0, 20), "bytes wanted at byte"},
      {with(good, "GGUF" + number(3, 4), "GGUF" + number(1, 4)), "version 1 of GGUF"},
      {with(good, "GGUF" + number(3, 4), std::string("GGUF\0\0\0\3", 8)), "big-endian"},
      {with(good, number(3, 4) + number(2, 8), number(3, 4) + number(1 << 30, 8)),
       "tensors in a file of"},
      {with(good, epsilon + number(6, 4), epsilon + number(13, 4)), "unknown type 13"},
      {with(good, "tokenizer.ggml.tokens" + number(9, 4) + number(8, 4),
            "tokenizer.ggml.tokens" + number(9, 4) + number(9, 4)),
       "a list of lists"},
      {with(good, "tokenizer.ggml.tokens" + number(9, 4) + number(8, 4) + number(4, 8),
            "tokenizer.ggml.tokens" + number(9, 4) + number(8, 4) + number(uint64_t{1} << 60, 8)),
       "beyond the end of the file"},
      {with(good, "add_bos_token" + number(7, 4) + std::string(1, '\0'),
            "add_bos_token" + number(7, 4) + "\2"),
       "a truth value of 2"},
      {with(good, "block_count", "block_co\xff\xfe"), "no UTF-8"},
      {with(good, of_embedding + number(8, 4), of_embedding + number(40, 4)), "nvfp4"},
      {with(good, of_embedding + number(8, 4), of_embedding + number(77, 4)), "type 77"},
      {with(good, of_embedding + number(8, 4), of_embedding + number(12, 4)),
       "rows of 32 values, not a multiple of q4_k's 256"},
      {with(good, of_embedding, "token_embd.weight" + number(5, 4) + number(32, 8) + number(4, 8)),
       "5 dims"},
      {with(good, of_embedding, "token_embd.weight" + number(2, 4) + number(32, 8) + number(0, 8)),
       "a size of 0"},
      {with(good, of_embedding,
            "token_embd.weight" + number(2, 4) + number(32, 8) + number(uint64_t{1} << 62, 8)),
       "a size of"},
      {with(good, of_embedding + number(8, 4) + number(0, 8),
            of_embedding + number(8, 4) + number(32, 8)),
       "a hole"},
      {good.substr(0, good.size() - 64), "the file was cut"}};
  for (const auto& [bytes, wanted] : cases) {
    put(path, bytes);
    EXPECT_NE(refusal_of(path).find(wanted), std::string::npos)
        << wanted << ": " << refusal_of(path);
  }
  // The file holds one tensor twice, and then one key twice.
  Small twice;
  twice.add("output_norm.weight", TensorType::F32, {32});
  put(path, twice.bytes(path));
  EXPECT_NE(refusal_of(path).find("two tensors have this name"), std::string::npos);
  Small again;
  again.metadata.text("tokenizer.ggml.pre", "qwen2");
  put(path, again.bytes(path));
  EXPECT_NE(refusal_of(path).find("the key stands twice"), std::string::npos);
}

TEST(GgufFile, SpoiltOnesAreReadOrRefused) {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.gguf";
  convoy::testing::MutatedTexts files({Small().bytes(path)});
  convoy::testing::Outcome outcome;
  size_t sum = 0;
  for (int round = 0; round < 600; ++round) {
    put(path, files.next());
    convoy::testing::count<DataError>(outcome, [&] {
      const File file(path);
      for (const TensorPlace& tensor : file.tensors())
        for (const std::byte byte : file.stored(tensor)) sum += std::to_integer<size_t>(byte);
      const io::ModelFolder model = io::ModelFolder::open(path.string());
      for (const std::string& name : Model::text_names()) sum += model.text(name)->size();
    });
  }
  EXPECT_GT(outcome.read, 30);
  EXPECT_GT(outcome.refused, 150);
  EXPECT_GT(sum, 0u);
}

TEST(GgufFile, FilesOfAnotherKindAreNamedByIt) {
  const TemporaryFolder folder;
  const auto refused = [&](const auto& change) {
    Small small;
    small.metadata = {};
    change(small.metadata);
    put(folder / "x.gguf", small.bytes(folder / "x.gguf"));
    try {
      io::ModelFolder::open((folder / "x.gguf").string());
    } catch (const DataError& error) {
      return error.sentence();
    }
    return std::string();
  };
  EXPECT_NE(refused([](Metadata& metadata) {
              metadata.text("general.architecture", "mamba");
            }).find("`mamba` is not supported"),
            std::string::npos);
  EXPECT_NE(refused([](Metadata& metadata) {
              metadata.text("general.architecture", "llama");
              metadata.text("general.type", "adapter");
            }).find("wanted a model, found a file of the type `adapter`"),
            std::string::npos);
  put(folder / "notes.txt", "text");
  EXPECT_THROW(io::ModelFolder::open((folder / "notes.txt").string()), DataError);
}

// Returns the configuration of a small file with one more key, or the reason of its refusal.
std::string config_with(const std::string& architecture,
                        const std::function<void(Metadata&)>& change, int64_t blocks = 1) {
  const TemporaryFolder folder;
  Small small(architecture, blocks);
  change(small.metadata);
  write_file(folder / "x.gguf", small.metadata, small.tensors);
  try {
    return *Model(folder / "x.gguf").text("config.json");
  } catch (const DataError& error) {
    return error.sentence();
  }
}

TEST(GgufFile, GranitesScalesAreReadAndOthersRefused) {
  const auto scales = [](Metadata& metadata) {
    metadata.real("granite.logit_scale", 16);
    metadata.real("granite.embedding_scale", 12);
    metadata.real("granite.residual_scale", 0);
  };
  const nlohmann::json config = nlohmann::json::parse(config_with("granite", scales));
  EXPECT_EQ(config["logits_scaling"], 16.0);
  EXPECT_EQ(config["embedding_multiplier"], 12.0);
  EXPECT_EQ(config["residual_multiplier"], 1.0);
  EXPECT_EQ(config["attention_multiplier"], 0.25);  // 1 / sqrt(16)
  const auto none = [](Metadata&) {};
  EXPECT_NE(config_with("granite", none).find("granite.logit_scale: is missing"),
            std::string::npos);
  const auto unrotated = [&](Metadata& metadata) {
    scales(metadata);
    metadata.truth("granite.rope.scaling.finetuned", false);
  };
  EXPECT_NE(config_with("granite", unrotated).find("without a rotation"), std::string::npos);
  const auto scaled = [](Metadata& metadata) { metadata.real("seed_oss.logit_scale", 2); };
  EXPECT_NE(config_with("seed_oss", scaled).find("logit_scale: is not supported"),
            std::string::npos);
}

TEST(GgufFile, SoftCapsOfGemma2AreReadAndOthersRefused) {
  const auto none = [](Metadata&) {};
  const nlohmann::json usual = nlohmann::json::parse(config_with("gemma2", none));
  EXPECT_EQ(usual["attn_logit_softcapping"], 50.0);  // llama.cpp's defaults for absent keys
  EXPECT_EQ(usual["final_logit_softcapping"], 30.0);
  EXPECT_EQ(usual["sliding_window"], 4096);
  EXPECT_EQ(usual["query_pre_attn_scalar"], 16);
  EXPECT_EQ(usual["hidden_activation"], "gelu_pytorch_tanh");
  EXPECT_EQ(usual["layer_types"][0], "sliding_attention");
  const auto told = [](Metadata& metadata) {
    metadata.real("gemma2.attn_logit_softcapping", 20);
    metadata.real("gemma2.final_logit_softcapping", 0.1);
    metadata.number("gemma2.attention.sliding_window", 8);
  };
  const nlohmann::json config = nlohmann::json::parse(config_with("gemma2", told));
  EXPECT_EQ(config["attn_logit_softcapping"], 20.0);
  EXPECT_EQ(config["final_logit_softcapping"], 0.1);
  EXPECT_EQ(config["sliding_window"], 8);
  const auto capped = [](Metadata& metadata) {
    metadata.real("gemma3.final_logit_softcapping", 30);
  };
  EXPECT_NE(config_with("gemma3", capped).find("final_logit_softcapping: is not supported"),
            std::string::npos);
}

// The layers for multi-token prediction follow the other layers and are not read.
TEST(GgufFile, Qwen35SaysItsLayersAndTheSizesOfGatedDeltaNet) {
  constexpr int64_t kBlocks = 9;
  const auto config_of = [](int64_t value_width, const std::function<void(Metadata&)>& change) {
    const auto sizes = [&](Metadata& metadata) {
      for (const auto& [key, value] :
           std::vector<std::pair<const char*, int64_t>>{{"nextn_predict_layers", 1},
                                                        {"rope.dimension_count", 4},
                                                        {"ssm.conv_kernel", 3},
                                                        {"ssm.state_size", 5},
                                                        {"ssm.group_count", 2},
                                                        {"ssm.time_step_rank", 6},
                                                        {"ssm.inner_size", value_width}})
        metadata.number(std::string("qwen35.") + key, value);
      change(metadata);
    };
    return config_with("qwen35", sizes, kBlocks);
  };
  const auto none = [](Metadata&) {};
  const nlohmann::json config = nlohmann::json::parse(config_of(30, none));
  EXPECT_EQ(config["model_type"], "qwen3_5_text");
  EXPECT_EQ(config["num_hidden_layers"], 8);
  EXPECT_EQ(config["hidden_act"], "silu");
  EXPECT_EQ(config["partial_rotary_factor"], 0.25);
  EXPECT_EQ(config["linear_num_key_heads"], 2);
  EXPECT_EQ(config["linear_num_value_heads"], 6);
  EXPECT_EQ(config["linear_key_head_dim"], 5);
  EXPECT_EQ(config["linear_value_head_dim"], 5);
  EXPECT_EQ(config["linear_conv_kernel_dim"], 3);
  const auto types = [](const nlohmann::json& of) { return of["layer_types"].dump(); };
  const std::string full = R"("full_attention")", recurrent = R"("linear_attention")";
  const std::string four = fmt::format("{0},{0},{0},{1}", recurrent, full);
  EXPECT_EQ(types(config), fmt::format("[{0},{0}]", four));
  const auto every_second = [](Metadata& metadata) {
    metadata.number("qwen35.full_attention_interval", 2);
  };
  EXPECT_EQ(types(nlohmann::json::parse(config_of(30, every_second))),
            fmt::format("[{0},{1},{0},{1},{0},{1},{0},{1}]", recurrent, full));
  const auto listed = [](Metadata& metadata) {
    metadata.truths("qwen35.attention.recurrent_layers",
                    {false, true, true, true, true, true, true, false, false});
  };
  EXPECT_EQ(types(nlohmann::json::parse(config_of(30, listed))),
            fmt::format("[{1},{0},{0},{0},{0},{0},{0},{1}]", recurrent, full));
  EXPECT_NE(config_of(32, none).find("ssm.inner_size: 32 features are no multiple"),
            std::string::npos);
  EXPECT_NE(config_with("qwen35", none).find("qwen35.ssm.group_count"), std::string::npos);
}

TEST(GgufFile, WindowsTellOlmo3FromOlmo2) {
  const auto config_of = [](const std::function<void(Metadata&)>& change) {
    return nlohmann::json::parse(config_with("olmo2", [&](Metadata& metadata) {
      metadata.number("olmo2.attention.sliding_window", 7);
      change(metadata);
    }));
  };
  // Without the key for the pattern, every fourth layer has no window.
  const nlohmann::json usual = config_of([](Metadata&) {});
  EXPECT_EQ(usual["model_type"], "olmo3");
  EXPECT_EQ(usual["sliding_window"], 7);
  EXPECT_EQ(usual["layer_types"], nlohmann::json::array({"sliding_attention"}));
  EXPECT_EQ(usual["rope_parameters"]["sliding_attention"]["rope_theta"],
            usual["rope_parameters"]["full_attention"]["rope_theta"]);
  const nlohmann::json listed = config_of([](Metadata& metadata) {
    metadata.truths("olmo2.attention.sliding_window_pattern", {false});
  });
  EXPECT_EQ(listed["layer_types"], nlohmann::json::array({"full_attention"}));
  EXPECT_NE(config_with("olmo2",
                        [](Metadata& metadata) {
                          metadata.number("olmo2.attention.sliding_window", 7);
                          metadata.truths("olmo2.attention.sliding_window_pattern", {});
                        })
                .find("lists fewer than 1 layers"),
            std::string::npos);
  const auto none = [](Metadata& metadata) {
    metadata.number("olmo2.attention.sliding_window", 0);
  };
  EXPECT_EQ(nlohmann::json::parse(config_with("olmo2", none))["model_type"], "olmo2");
}

// llama.cpp's converter gives Mistral Small 3.1 the architecture of Ministral 3.
TEST(GgufFile, GrowingQueriesTellMinistral3FromMistral) {
  const nlohmann::json mistral = nlohmann::json::parse(config_with("mistral3", [](Metadata&) {}));
  EXPECT_EQ(mistral["model_type"], "mistral");
  EXPECT_TRUE(mistral["sliding_window"].is_null());
  const nlohmann::json ministral =
      nlohmann::json::parse(config_with("mistral3", [](Metadata& metadata) {
        metadata.real("mistral3.attention.temperature_scale", 0.1);
        metadata.text("mistral3.rope.scaling.type", "yarn");
        metadata.real("mistral3.rope.scaling.factor", 16);
        metadata.number("mistral3.rope.scaling.original_context_length", 16384);
        metadata.real("mistral3.rope.scaling.yarn_beta_fast", 30);
        metadata.real("mistral3.rope.scaling.yarn_log_multiplier", 1);
      }));
  EXPECT_EQ(ministral["model_type"], "ministral3");
  EXPECT_EQ(ministral["rope_scaling"], (nlohmann::json{{"rope_type", "yarn"},
                                                       {"factor", 16.0},
                                                       {"original_max_position_embeddings", 16384},
                                                       {"beta_fast", 30.0},
                                                       {"mscale", 1.0},
                                                       {"mscale_all_dim", 1.0},
                                                       {"llama_4_scaling_beta", 0.1}}));
}

TEST(GgufFile, FactorsWithoutDivisorsAreRefused) {
  const auto factor = [](Metadata& metadata) {
    metadata.real("phi3.rope.scaling.attn_factor", 1.25);
  };
  EXPECT_NE(config_with("phi3", factor).find("with longrope's divisors alone"), std::string::npos);
}

TEST(GgufFile, APartOfAHeadIsRotatedWhereTheFamilyMay) {
  const auto config_of = [](const std::string& architecture, int64_t count) {
    return config_with(architecture, [&](Metadata& metadata) {
      metadata.number(architecture + ".attention.key_length", 98);
      metadata.number(architecture + ".rope.dimension_count", count);
    });
  };
  // The share of each even count, multiplied by 98 and truncated, gives the count again.
  for (int64_t count = 2; count <= 98; count += 2) {
    const nlohmann::json config = nlohmann::json::parse(config_of("glm4", count));
    const double share = config["partial_rotary_factor"];
    EXPECT_EQ(static_cast<int64_t>(98.0 * share), count);
  }
  EXPECT_NE(config_of("glm4", 3).find("cannot be rotated in pairs"), std::string::npos);
  EXPECT_NE(config_of("glm4", 100).find("cannot be rotated in pairs"), std::string::npos);
  EXPECT_NE(config_of("olmo2", 49).find("only whole heads"), std::string::npos);
}

TEST(GgufFile, OneModelInSeveralFiles) {
  const TemporaryFolder folder;
  Small first;
  std::vector<TensorToWrite> rest(first.tensors.begin() + 1, first.tensors.end());
  first.tensors.resize(1);
  const auto part = [](Metadata& metadata, int64_t number) {
    metadata.number("split.no", number);
    metadata.number("split.count", 2);
  };
  part(first.metadata, 0);
  Metadata of_second;
  part(of_second, 1);
  const fs::path one = folder / "x-00001-of-00002.gguf", two = folder / "x-00002-of-00002.gguf";
  write_file(one, first.metadata, first.tensors);
  EXPECT_THROW(io::ModelFolder::open(one.string()), DataError);  // the second file is missing
  write_file(two, of_second, rest);
  const io::ModelFolder model = io::ModelFolder::open(one.string());
  EXPECT_EQ(model.weight_file_names(),
            (std::vector<std::string>{"x-00001-of-00002.gguf", "x-00002-of-00002.gguf"}));
  EXPECT_EQ(*model.find("x-00002-of-00002.gguf"), two);
  EXPECT_EQ(io::ModelWeights(model).names(),
            (std::vector<std::string>{"model.embed_tokens.weight", "model.norm.weight"}));
  // Two calls are refused: opening a model by its second file, and a second file that claims to be
  // the first.
  EXPECT_THROW(io::ModelFolder::open(two.string()), DataError);
  write_file(two, first.metadata, rest);
  EXPECT_THROW(io::ModelFolder::open(one.string()), DataError);
}

TEST(PreTokenizers, AreFoundAgainByTheirSteps) {
  for (const PreTokenizer& entry : pre_tokenizers()) {
    const PreTokenizer* const found =
        matching_pre_tokenizer(pre_tokenizer_json(entry), entry.ignores_merges);
    ASSERT_NE(found, nullptr) << entry.names.front();
    EXPECT_EQ(found->cuts, entry.cuts) << entry.names.front();
    for (const std::string_view name : entry.names) EXPECT_EQ(find_pre_tokenizer(name), &entry);
  }
  // GLM and Llama 3 cut texts alike, but only Llama 3 puts a BOS before them.
  EXPECT_FALSE(find_pre_tokenizer("glm4")->adds_bos);
  EXPECT_TRUE(find_pre_tokenizer("glm4")->ignores_merges);
  EXPECT_EQ(find_pre_tokenizer("none-of-them"), nullptr);
  const nlohmann::ordered_json other = {{"type", "Whitespace"}};
  EXPECT_EQ(matching_pre_tokenizer(other, false), nullptr);
}

TEST(RopeDivisors, TellTheirRule) {
  // The settings of Llama 3.1 and Llama 3.2, and settings of no published model.
  for (const Llama3Rope& rope : {Llama3Rope{}, Llama3Rope{.factor = 32},
                                 Llama3Rope{.factor = 4,
                                 .low_freq_factor = 1,
                                 .high_freq_factor = 8,
                                 .original_max_positions = 4096}}) {
    for (const int64_t head_dim : {64, 128}) {
      const std::vector<float> divisors = rope_divisors(rope, 500000.0, head_dim);
      EXPECT_EQ(divisors.size(), static_cast<size_t>(head_dim / 2));
      EXPECT_EQ(divisors.front(), 1.0f);
      EXPECT_EQ(divisors.back(), static_cast<float>(rope.factor));
      const auto found = rule_of_divisors(divisors, 500000.0);
      ASSERT_TRUE(found);
      const std::vector<float> again = rope_divisors(*found, 500000.0, head_dim);
      for (size_t pair = 0; pair < divisors.size(); ++pair)
        EXPECT_NEAR(again[pair], divisors[pair], 1e-5f * divisors[pair]);
    }
  }
  EXPECT_FALSE(rule_of_divisors(std::vector<float>{1, 3, 2, 4}, 10000.0));
}

}  // namespace
}  // namespace convoy::gguf

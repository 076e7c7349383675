// SPDX-License-Identifier: Apache-2.0
//
// Tests models that are written for other programs, with and without adapters, and the files for
// Ollama.
#include "convoy/apps/recipes/model_files/export_model_file.h"

#include <gtest/gtest.h>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/model_files/ollama_modelfile.h"
#include "convoy/apps/recipes/model_test.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/gguf/decode.h"
#include "convoy/core/io/gguf/file.h"
#include "convoy/core/io/json_text.h"
#include "convoy/model/adapters/served_adapters.h"
#include "convoy/model/models/registry.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using convoy::testing::golden_folder;
using convoy::testing::read_tensors;
using convoy::testing::source_folder;
using convoy::testing::Tensors;

class ExportFile : public ::testing::Test {
 protected:
  static Log quiet() { return Log(LogLevel::Quiet); }
  fs::path tally() const { return source_folder() / "examples/tally-3m"; }
  fs::path adapter() const { return golden_folder() / "train/qwen2/lora"; }
  settings::ModelExportFlags flags(const fs::path& model, const std::string& type) const {
    settings::ModelExportFlags flags;
    flags.model = model.string();
    flags.type = type;
    flags.output = (folder_ / "out.gguf").string();
    return flags;
  }
  at::Tensor logits(const std::string& model) const {
    LoadedModel loaded = load_model({.name = model, .dtype = "fp32", .device = at::kCPU}, quiet());
    const at::NoGradGuard no_grad;
    const auto ids =
        loaded.tokenizer.encode("3 + 4 = 7, and 12 more are", text::SpecialTokens::Add);
    std::vector<int64_t> tokens(ids.ids.begin(), ids.ids.end()), positions(tokens.size());
    for (size_t at = 0; at < positions.size(); ++at) positions[at] = static_cast<int64_t>(at);
    const nn::TokenBatch batch(tokens, positions, {0, static_cast<int64_t>(tokens.size())});
    return loaded.model->head().forward(loaded.model->hidden_states(batch, {}));
  }

  convoy::testing::TemporaryFolder folder_;
};

std::string refusal_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.sentence();
  }
  return "";
}

TEST_F(ExportFile, AdaptersAreMergedIntoIt) {
  const fs::path model = folder_ / "model";
  convoy::testing::make_model(model);
  settings::ModelExportFlags wanted = flags(model, "f32");
  wanted.adapter = adapter().string();
  export_model_file(wanted, quiet());
  const Tensors base = read_tensors(model / "model.safetensors");
  const Tensors leaves = read_tensors(adapter() / "adapter_model.safetensors");
  const std::string module = "base_model.model.model.layers.0.self_attn.q_proj";
  const at::Tensor sum = at::addmm(base.at("model.layers.0.self_attn.q_proj.weight").to(at::kFloat),
                                   leaves.at(module + ".lora_B.weight"),
                                   leaves.at(module + ".lora_A.weight"), 1.0, 7.0 / 2);
  const io::ModelFolder written = io::ModelFolder::open(wanted.output);
  EXPECT_TRUE(models::open_weights(written)
                  .read("model.layers.0.self_attn.q_proj.weight", at::kFloat)
                  .equal(sum));
}

TEST_F(ExportFile, TheTemplateIsThatOfTheAdapter) {
  const fs::path model = folder_ / "model", copy = folder_ / "adapter";
  convoy::testing::make_model(model);
  fs::copy(adapter(), copy);
  settings::ModelExportFlags wanted = flags(model, "f32");
  wanted.adapter = copy.string();
  export_model_file(wanted, quiet());
  EXPECT_EQ(gguf::File(wanted.output).text("tokenizer.chat_template"),
            read_file(model / "chat_template.jinja"));
  const std::string own =
      "{% for m in messages %}[{{ m.role }}]{{ m.content }}[/]{% endfor %}"
      "{% if add_generation_prompt %}[assistant]{% endif %}";
  write_file_atomic(copy / "chat_template.jinja", own);
  wanted.format = "ollama";
  wanted.output = (folder_ / "ollama").string();
  export_model_file(wanted, quiet());
  EXPECT_EQ(gguf::File(folder_ / "ollama/model-f32.gguf").text("tokenizer.chat_template"), own);
  EXPECT_NE(read_file(folder_ / "ollama/Modelfile").find("[assistant]"), std::string::npos);
}

TEST_F(ExportFile, AnAdapterAloneIsALoraFile) {
  const fs::path model = folder_ / "model", start = golden_folder() / "train/qwen2/start";
  convoy::testing::make_model(model);
  settings::ModelExportFlags wanted = flags(model, "f32");
  wanted.adapter = start.string();
  wanted.adapter_only = true;
  export_model_file(wanted, quiet());
  const gguf::File file(wanted.output);
  EXPECT_EQ(file.text("general.type"), "adapter");
  EXPECT_EQ(file.text("adapter.type"), "lora");
  EXPECT_EQ(file.real("adapter.lora.alpha"), 8.0);
  const Tensors leaves = read_tensors(start / "adapter_model.safetensors");
  EXPECT_EQ(file.tensors().size(), leaves.size());
  const gguf::TensorPlace* const place = file.find_tensor("blk.0.attn_q.weight.lora_a");
  ASSERT_NE(place, nullptr);
  const at::Tensor& wanted_a =
      leaves.at("base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
  EXPECT_EQ(place->shape, wanted_a.sizes().vec());
  std::vector<float> values(static_cast<size_t>(wanted_a.numel()));
  gguf::decode(place->type, file.stored(*place), values);
  EXPECT_TRUE(at::tensor(values).view_as(wanted_a).equal(wanted_a.to(at::kFloat)));
  // The file cannot be opened as a model, but it can be converted back to the PEFT adapter.
  EXPECT_NE(refusal_of([&] { io::ModelFolder::open(wanted.output); }).find("--base MODEL"),
            std::string::npos);
  const fs::path back = folder_ / "back";
  convert_model_file(wanted.output, back.string(), {.base = model.string()}, quiet());
  const Tensors again = read_tensors(back / "adapter_model.safetensors");
  ASSERT_EQ(again.size(), leaves.size());
  for (const auto& [name, value] : leaves)
    EXPECT_TRUE(again.at(name).equal(value.to(at::kFloat))) << name;
  const auto load = [&](const std::string& adapter) {
    return load_model(
        {.name = model.string(), .adapter = adapter, .dtype = "fp32", .device = at::kCPU}, quiet());
  };
  const LoadedModel loaded = load(back.string());
  EXPECT_EQ(loaded.lora->config().r, 4);
  EXPECT_EQ(loaded.lora->config().alpha, 8);
  // The exported file can be loaded as an adapter too.
  const LoadedModel direct = load(wanted.output);
  EXPECT_EQ(direct.lora->config().alpha, 8);
  EXPECT_EQ(direct.end_ids, loaded.end_ids);
  for (const nn::NamedTensor& parameter : direct.lora->parameters())
    EXPECT_TRUE(parameter.value.equal(leaves.at(parameter.name).to(at::kFloat))) << parameter.name;
}

at::Tensor logits_through(nn::CausalLm& model) {
  const at::NoGradGuard no_grad;
  const std::vector<int64_t> tokens = {5, 17, 90, 4, 200, 31}, positions = {0, 1, 2, 3, 4, 5};
  const nn::TokenBatch batch(tokens, positions, {0, 6});
  return model.head().forward(model.hidden_states(batch, {}));
}

// llama.cpp's convert_lora_to_gguf.py wrote the files from tests/golden/train/FAMILY/lora. That
// script drops alpha_pattern.
TEST_F(ExportFile, LoraFilesOfLlamaCppAnswerAsTheirPeftAdapters) {
  for (const char* family : {"llama", "mistral", "qwen2", "qwen3", "gemma3", "smollm3"}) {
    const fs::path base = golden_folder() / "train" / family, peft = folder_ / family;
    fs::create_directories(peft);
    fs::copy_file(base / "lora/adapter_model.safetensors", peft / "adapter_model.safetensors");
    io::Json config = io::read_json_file(base / "lora/adapter_config.json");
    config["alpha_pattern"] = io::Json::object();
    write_file_atomic(peft / "adapter_config.json", config.dump());
    const auto model = [&] {
      return models::load_causal_lm(io::ModelFolder::open(base.string()), at::kFloat, at::kCPU);
    };
    const fs::path file = golden_folder() / "adapters/lora_gguf" / (std::string(family) + ".gguf");
    const auto wanted_model = model(), found_model = model();
    const at::Tensor plain = logits_through(*wanted_model);
    const auto wanted = adapters::LoraModel::load(*wanted_model, peft);
    const auto found = adapters::LoraModel::load(*found_model, file);
    const at::Tensor logits = logits_through(*found_model);
    EXPECT_TRUE(logits.equal(logits_through(*wanted_model))) << family;
    EXPECT_FALSE(logits.equal(plain)) << family;
    // A server can hold the file beside another adapter.
    const auto served_model = model();
    adapters::ServedAdapters served(*served_model, {peft, file});
    served.set_tokens({{.adapter = 2, .tokens = 6}});
    EXPECT_TRUE(logits_through(*served_model).equal(logits)) << family;
  }
  EXPECT_NE(refusal_of([&] {
              const auto base = models::load_causal_lm(
                  io::ModelFolder::open((golden_folder() / "train/qwen2").string()), at::kFloat,
                  at::kCPU);
              adapters::LoraModel::load(*base, golden_folder() / "adapters/lora_gguf/llama.gguf");
            }).find("architecture `llama`"),
            std::string::npos);
}

TEST_F(ExportFile, AdaptersOfSeveralScalesKeepThemInALoraFile) {
  const fs::path model = folder_ / "model";
  convoy::testing::make_model(model);
  const auto merged = [&](const fs::path& adapter) {
    settings::ModelExportFlags whole = flags(model, "f32");
    whole.adapter = adapter.string();
    whole.output = (folder_ / "merged.gguf").string();
    fs::remove(whole.output);
    export_model_file(whole, quiet());
    const io::ModelFolder written = io::ModelFolder::open(whole.output);
    const models::CheckpointWeights weights = models::open_weights(written);
    Tensors found;
    for (const auto& [name, dtype] : models::stored_dtypes(written))
      found[name] = weights.read(name, at::kFloat);
    return found;
  };
  for (const char* name : {"lora", "rslora"}) {
    const fs::path adapter = golden_folder() / "train/qwen2" / name;
    settings::ModelExportFlags alone = flags(model, "f32");
    alone.adapter = adapter.string();
    alone.adapter_only = true;
    fs::remove(alone.output);
    export_model_file(alone, quiet());
    EXPECT_EQ(gguf::File(alone.output).real("adapter.lora.alpha"), 0.0);
    const fs::path back = folder_ / name;
    convert_model_file(alone.output, back.string(), {.base = model.string()}, quiet());
    const Tensors wanted = merged(adapter), found = merged(back);
    for (const auto& [weight, value] : wanted)
      EXPECT_TRUE(at::allclose(found.at(weight), value, 1e-5, 1e-6)) << name << " " << weight;
  }
  settings::ModelExportFlags dora = flags(model, "f32");
  dora.adapter = (golden_folder() / "train/qwen2/dora").string();
  dora.adapter_only = true;
  fs::remove(dora.output);
  EXPECT_NE(refusal_of([&] { export_model_file(dora, quiet()); }).find("llama.cpp has no DoRA"),
            std::string::npos);
}

TEST_F(ExportFile, ComputesWhatTheFolderComputes) {
  for (const char* type : {"f32", "bf16"}) {  // bf16 is the model's own dtype
    fs::remove(folder_ / "out.gguf");
    export_model_file(flags(tally(), type), quiet());
    EXPECT_TRUE(logits((folder_ / "out.gguf").string()).equal(logits(tally().string()))) << type;
  }
  const fs::path back = folder_ / "back";
  convert_model_file((folder_ / "out.gguf").string(), back.string(), {}, quiet());
  const Tensors found = read_tensors(back / "model.safetensors");
  for (const auto& [name, value] : read_tensors(tally() / "model.safetensors"))
    EXPECT_TRUE(found.at(name).to(at::kFloat).equal(value.to(at::kFloat))) << name;
  EXPECT_TRUE(logits(back.string()).equal(logits(tally().string())));
}

TEST_F(ExportFile, WhatMakesNoSenseIsRefused) {
  EXPECT_NE(refusal_of([&] { export_model_file(flags(tally(), "q9"), quiet()); }).find("`q9`"),
            std::string::npos);
  settings::ModelExportFlags alone = flags(tally(), "f16");
  alone.adapter_only = true;
  EXPECT_NE(refusal_of([&] { export_model_file(alone, quiet()); }).find("needs --adapter"),
            std::string::npos);
  write_file_atomic(folder_ / "out.gguf", "mine");
  EXPECT_NE(
      refusal_of([&] { export_model_file(flags(tally(), "f16"), quiet()); }).find("exists already"),
      std::string::npos);
  EXPECT_NE(refusal_of([&] {
              convert_model_file(tally().string(), (folder_ / "back").string(), {}, quiet());
            }).find("wanted a GGUF file"),
            std::string::npos);
}

TEST_F(ExportFile, OllamaIsToldWhereTurnsBeginAndEnd) {
  settings::ModelExportFlags wanted = flags(tally(), "q8_0");
  wanted.format = "ollama";
  wanted.output = (folder_ / "ollama").string();
  export_model_file(wanted, quiet());
  const std::string text = read_file(folder_ / "ollama/Modelfile");
  EXPECT_NE(text.find("FROM ./tally-3m-q8_0.gguf\n"), std::string::npos) << text;
  EXPECT_NE(text.find("{{ if eq .Role \"user\" }}<|im_start|>user\n{{ .Content }}<|im_end|>\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("PARAMETER stop \"<|im_end|>\"\n"), std::string::npos) << text;
  EXPECT_NE(text.find("PARAMETER stop \"<|endoftext|>\"\n"), std::string::npos) << text;
  EXPECT_TRUE(io::ModelFolder::open((folder_ / "ollama/tally-3m-q8_0.gguf").string()).is_gguf());
}

std::optional<TurnTexts> texts_of(const fs::path& folder, const std::string& chat_template) {
  write_file_atomic(folder / "chat_template.jinja", chat_template);
  return turn_texts(*text::ChatTemplate::load(folder), "");
}

TEST_F(ExportFile, TurnTextsAreThoseOfTheChatTemplate) {
  // Like SmolLM2's template, this template adds a system turn if there is none.
  const auto usual = texts_of(folder_.path(),
                              "{% for m in messages %}{% if loop.first and m.role != 'system' "
                              "%}<|s|>system\nBe kind.<|e|>\n"
                              "{% endif %}<|s|>{{ m.role }}\n{{ m.content }}<|e|>\n{% endfor %}"
                              "{% if add_generation_prompt %}<|s|>assistant\n{% endif %}");
  ASSERT_TRUE(usual);
  EXPECT_EQ(usual->start, "<|s|>system\nBe kind.<|e|>\n");
  EXPECT_EQ(usual->system_before, "<|s|>system\n");
  EXPECT_EQ(usual->user_before, "<|s|>user\n");
  EXPECT_EQ(usual->assistant_before, "<|s|>assistant\n");
  EXPECT_EQ(usual->prompt, "<|s|>assistant\n");
  // This template refuses system turns.
  const auto none = texts_of(
      folder_.path(),
      "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}"
      "[{{ m.role }}]{{ m.content }}[/]{% endfor %}{% if add_generation_prompt %}[assistant]{% "
      "endif %}");
  ASSERT_TRUE(none);
  EXPECT_TRUE(none->system_after.empty());
  EXPECT_EQ(none->go_template().find(".System"), std::string::npos);
  // A template that counts turns cannot be expressed as texts.
  EXPECT_FALSE(texts_of(folder_.path(),
                        "{% for m in messages %}<{{ loop.index }}>{{ m.role }}:{{ m.content }}"
                        "{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}"));
}

}  // namespace
}  // namespace convoy::recipes

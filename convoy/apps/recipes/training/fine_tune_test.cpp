// SPDX-License-Identifier: Apache-2.0
//
// Whole runs of one rank in this process: which parameters train, how many steps follow from rows
// and batch, and what is in the folder at the end.
#include "convoy/apps/recipes/training/fine_tune.h"

#include <c10/core/CPUAllocator.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/model_files/merge_adapter.h"
#include "convoy/apps/recipes/model_test.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using testing::golden_folder;
using testing::read_tensors;
using testing::Tensors;

constexpr int64_t kRows = 18;

class FineTuned : public ::testing::Test {
 protected:
  FineTuned() {
    testing::make_model(model());
    config_ = {{"model", {{"name", model().string()}, {"max_seq_len", 128}}},
               {"data",
                {{"train_path", (golden_folder() / "train/chats.jsonl").string()},
                 {"cache_dir", "none"},
                 {"split", {{"train_ratio", 1}, {"val_ratio", 0}, {"test_ratio", 0}}}}},
               {"tuning", {{"mode", "lora"}, {"lora", {{"r", 2}, {"alpha", 4}}}}},
               {"train",
                {{"bf16", false},
                 {"steps", 2},
                 {"batch_size", 4},
                 {"grad_accum", 1},
                 {"learning_rate", 0.01},
                 {"eval_strategy", "no"},
                 {"save_strategy", "no"}}},
               {"logging", {{"backend", "none"}}}};
  }

  fs::path model() const { return folder_ / "model"; }
  fs::path run() const { return folder_ / "run"; }

  ExitCode train(bool plan_only = false) {
    const auto held = telemetry::RunFolder::create(run(), "run");
    write_file_atomic(held.config_path(), config_.dump());  // JSON is YAML
    const FineTuneRequest request{
        .run_folder = run(), .settings = {held.config_path()}, .plan_only = plan_only};
    return fine_tune(request, stop_, Log(LogLevel::Quiet));
  }

  std::vector<nlohmann::json> steps() const {
    std::vector<nlohmann::json> rows;
    std::ifstream file(run() / "events.jsonl");
    for (std::string line; std::getline(file, line);)
      if (nlohmann::json row = nlohmann::json::parse(line); row["event"] == "step")
        rows.push_back(std::move(row));
    return rows;
  }

  Tensors base() const { return read_tensors(model() / "model.safetensors"); }
  Tensors adapter() const { return read_tensors(run() / "adapter/adapter_model.safetensors"); }

  convoy::testing::TemporaryFolder folder_;
  nlohmann::json config_;
  std::atomic<bool> stop_ = false;
};

// Gives out the CPU's memory, and throws `fault` instead once `is_due` says so.
class FaultyAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    if (fault && is_due()) {
      const std::function<void()> thrower = std::exchange(fault, {});
      thrower();
    }
    return inner_.allocate(bytes);
  }
  c10::DeleterFnPtr raw_deleter() const override { return inner_.raw_deleter(); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    inner_.copy_data(to, from, bytes);
  }

  std::function<void()> fault;
  std::function<bool()> is_due;

 private:
  c10::Allocator& inner_ = *c10::GetCPUAllocator();
};

TEST_F(FineTuned, FaultsThatAreNoneOfConvoysAreToldInTheRunsEvents) {
  EXPECT_EQ(train(), ExitCode::Done);  // from here on its allocator is there
  fs::remove_all(run());
  static FaultyAllocator* const allocator = [] {
    auto* made = new FaultyAllocator;  // tensors of static storage may outlive everything else
    c10::SetCPUAllocator(made, /*priority=*/2);
    return made;
  }();
  allocator->is_due = [this] { return fs::exists(run() / "events.jsonl"); };
  const std::vector<std::pair<std::function<void()>, ExitCode>> faults = {
      {[] { throw std::bad_alloc(); }, ExitCode::Resources},
      {[] { TORCH_CHECK(false, "CUDA error: an illegal instruction"); }, ExitCode::Device},
      {[] { throw std::runtime_error("planted"); }, ExitCode::Bug}};
  for (const auto& [fault, code] : faults) {
    allocator->fault = fault;
    try {
      train();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      const telemetry::RunHistory history = telemetry::read_run(run());
      EXPECT_EQ(history.state, telemetry::RunState::Failed);
      EXPECT_EQ(history.failure, error.sentence());
    }
    EXPECT_FALSE(allocator->fault);
    fs::remove_all(run());
  }
}

TEST_F(FineTuned, LoraTrainsTheTargetsAndExportsThemAlone) {
  config_["tuning"]["lora"]["target_modules"] = {"q_proj", "up_proj"};
  config_["tuning"]["lora"]["modules_to_save"] = {"model.norm"};
  const Tensors before = base();
  EXPECT_EQ(train(), ExitCode::Done);
  std::set<std::string> wanted = {"base_model.model.model.norm.weight"};
  for (const int layer : {0, 1})
    for (const char* module : {"self_attn.q_proj", "mlp.up_proj"})
      for (const char* leaf : {"lora_A", "lora_B"})
        wanted.insert(
            fmt::format("base_model.model.model.layers.{}.{}.{}.weight", layer, module, leaf));
  std::set<std::string> found;
  for (const auto& [name, value] : adapter()) {
    found.insert(name);
    EXPECT_EQ(value.scalar_type(), at::kFloat) << name;
    EXPECT_GT(value.abs().max().item<float>(), 0) << name << " has not learnt";
  }
  EXPECT_EQ(found, wanted);
  EXPECT_FALSE(
      adapter().at("base_model.model.model.norm.weight").equal(before.at("model.norm.weight")));
  const io::Json config = io::read_json_file(run() / "adapter/adapter_config.json");
  EXPECT_EQ(config["target_modules"], (io::Json{"q_proj", "up_proj"}));
  EXPECT_EQ(config["base_model_name_or_path"], model().string());
  EXPECT_FALSE(fs::exists(run() / "model"));
  for (const auto& [name, value] : base()) EXPECT_TRUE(value.equal(before.at(name))) << name;
}

TEST_F(FineTuned, FullTrainingExportsAModelOfTheSameShape) {
  config_["tuning"]["mode"] = "full";
  EXPECT_EQ(train(), ExitCode::Done);
  const Tensors before = base();
  const Tensors after = read_tensors(run() / "model/model.safetensors");
  ASSERT_EQ(after.size(), before.size());
  for (const auto& [name, value] : before) {
    ASSERT_EQ(after.at(name).sizes(), value.sizes()) << name;
    EXPECT_FALSE(after.at(name).equal(value)) << name << " has not learnt";
  }
  for (const char* file : {"config.json", "tokenizer.json", "chat_template.jinja"})
    EXPECT_TRUE(fs::exists(run() / "model" / file)) << file;
  EXPECT_FALSE(fs::exists(run() / "adapter"));
}

// Gemma 3 in a checkpoint that also sees.
class NestedFineTuned : public FineTuned {
 protected:
  NestedFineTuned() {
    fs::remove_all(model());
    testing::make_nested_model(model());
  }
};

TEST_F(NestedFineTuned, AnAdapterHasTheNamesOfTheWholeModelAndIsContinued) {
  config_["tuning"]["lora"]["target_modules"] = {"q_proj"};
  config_["train"]["save_strategy"] = "steps";
  config_["train"]["save_steps"] = 2;
  EXPECT_EQ(train(), ExitCode::Done);
  const Tensors first = adapter();
  std::set<std::string> wanted, found;
  for (const int layer : {0, 1, 2, 3})
    for (const char* leaf : {"lora_A", "lora_B"})
      wanted.insert(
          fmt::format("base_model.model.model.language_model.layers.{}.self_attn.q_proj.{}.weight",
                      layer, leaf));
  for (const auto& [name, value] : first) found.insert(name);
  EXPECT_EQ(found, wanted);
  const fs::path last = run() / "checkpoints/last";
  EXPECT_EQ(read_file(last / "adapter_config.json"),
            read_file(run() / "adapter/adapter_config.json"));
  for (const auto& [name, value] : read_tensors(last / "adapter_model.safetensors"))
    EXPECT_TRUE(first.at(name).equal(value)) << name;

  const fs::path start = folder_ / "start";
  fs::rename(run() / "adapter", start);
  fs::remove_all(run());
  config_["tuning"]["lora"]["adapter"] = start.string();
  config_["train"]["learning_rate"] = 0;
  EXPECT_EQ(train(), ExitCode::Done);
  ASSERT_EQ(adapter().size(), first.size());
  for (const auto& [name, value] : adapter()) EXPECT_TRUE(first.at(name).equal(value)) << name;
}

TEST_F(NestedFineTuned, FullTrainingKeepsTheRestOfTheCheckpoint) {
  config_["tuning"]["mode"] = "full";
  const Tensors before = base();
  EXPECT_EQ(train(), ExitCode::Done);
  const Tensors after = read_tensors(run() / "model/model.safetensors");
  ASSERT_EQ(after.size(), before.size());
  int64_t changed = 0;
  for (const auto& [name, value] : before) {
    if (!name.starts_with("language_model.")) {
      EXPECT_EQ(after.at(name).scalar_type(), value.scalar_type()) << name;
      EXPECT_TRUE(after.at(name).equal(value)) << name;
    } else if (!after.at(name).equal(value)) {
      ++changed;
    }
  }
  EXPECT_GT(changed, 10);
  EXPECT_EQ(io::read_json_file(run() / "model/config.json")["text_config"],
            io::read_json_file(model() / "config.json")["text_config"]);

  fs::remove_all(run());
  config_["train"]["export_text_only"] = true;
  EXPECT_EQ(train(), ExitCode::Done);
  const Tensors alone = read_tensors(run() / "model/model.safetensors");
  EXPECT_EQ(alone.size(), before.size() - 2);
  for (const auto& [name, value] : alone)
    EXPECT_TRUE(after.at("language_model." + name).equal(value)) << name;
}

// Checkpoints are models of the text alone, which every command takes; the result is whole.
TEST_F(NestedFineTuned, ItsCheckpointsHoldTheTextAlone) {
  config_["tuning"]["mode"] = "full";
  config_["train"]["save_strategy"] = "steps";
  config_["train"]["save_steps"] = 2;
  EXPECT_EQ(train(), ExitCode::Done);
  const fs::path last = run() / "checkpoints/last";
  EXPECT_EQ(io::read_json_file(last / "config.json")["model_type"], "gemma3_text");
  const Tensors result = read_tensors(run() / "model/model.safetensors");
  const LoadedModel loaded =
      load_model({.name = last.string(), .dtype = "fp32"}, Log(LogLevel::Quiet));
  const auto parameters = loaded.model->parameters();
  EXPECT_EQ(parameters.size() + 2, result.size());
  for (const nn::NamedTensor& parameter : parameters)
    EXPECT_TRUE(parameter.value.equal(result.at("language_model." + parameter.name)))
        << parameter.name;

  // An adapter of the whole model, or of the text alone, merges into either to the same weights.
  const auto merged = [&](const fs::path& base, const char* name) {
    settings::ModelSourceFlags source;
    source.model = base.string();
    source.adapter = (golden_folder() / "train/gemma3/lora").string();
    settings::MergeFlags flags;
    flags.output = (folder_ / name).string();
    flags.text_only = true;
    merge_adapter(source, flags, {}, Log(LogLevel::Quiet));
    return read_tensors(fs::path(flags.output) / "model.safetensors");
  };
  const Tensors of_checkpoint = merged(last, "of-checkpoint");
  const Tensors of_result = merged(run() / "model", "of-result");
  ASSERT_EQ(of_checkpoint.size(), of_result.size());
  for (const auto& [name, value] : of_result)
    EXPECT_TRUE(of_checkpoint.at(name).equal(value)) << name;
}

TEST_F(FineTuned, AResultIsUsedWithTheTemplateOfItsTraining) {
  const std::string own =
      "{% for m in messages %}<|start|>{{ m.role }} {{ m.content }}<|end|>{% endfor %}"
      "{% if add_generation_prompt %}<|start|>assistant{% endif %}";
  const fs::path path = folder_ / "own.jinja";
  write_file_atomic(path, own);
  // If a result kept the model's own templates, the one for tools would come before this one.
  const std::string other = R"([{"name": "default", "template": "x"}, )"
                            R"({"name": "tool_use", "template": "y"}])";
  io::Json tokenizer = io::read_json_file(model() / "tokenizer_config.json");
  tokenizer["chat_template"] = io::Json::parse(other);
  write_file_atomic(model() / "tokenizer_config.json", tokenizer.dump());
  config_["data"]["template_path"] = path.string();
  const auto written_by = [](const ModelRequest& request) {
    const LoadedModel loaded = load_model(request, Log(LogLevel::Quiet));
    return loaded.chat_template
        ->render({{{"role", "user"}, {"content", "a"}}}, {{"tools", {{{"name", "f"}}}}}, true)
        .text;
  };
  for (const bool full : {true, false}) {
    fs::remove_all(run());
    config_["tuning"]["mode"] = full ? "full" : "lora";
    config_["train"]["save_strategy"] = "steps";
    config_["train"]["save_steps"] = 1;
    ASSERT_EQ(train(), ExitCode::Done);
    const fs::path result = run() / (full ? "model" : "adapter");
    const fs::path saved = run() / "checkpoints/last";
    for (const fs::path& folder : {result, saved}) {
      EXPECT_EQ(read_file(folder / "chat_template.jinja"), own);
      const ModelRequest request =
          full ? ModelRequest{.name = folder.string()}
               : ModelRequest{.name = model().string(), .adapter = folder.string()};
      EXPECT_EQ(written_by(request), "<|start|>user a<|end|><|start|>assistant") << folder;
    }
  }
  // A run that continues the adapter trains with its template, and has it too.
  const fs::path first = folder_ / "first";
  fs::rename(run(), first);
  config_["data"]["template_path"] = "";
  config_["tuning"]["mode"] = "lora";
  for (const bool as_model : {false, true}) {
    config_["model"]["name"] = as_model ? (first / "adapter").string() : model().string();
    config_["tuning"]["lora"]["adapter"] = as_model ? "" : (first / "adapter").string();
    fs::remove_all(run());
    ASSERT_EQ(train(), ExitCode::Done);
    EXPECT_EQ(read_file(run() / "adapter/chat_template.jinja"), own);
  }
  config_["model"]["name"] = model().string();
  config_["tuning"]["lora"].erase("adapter");
  // A run without a template of its own saves none. A flag goes before an adapter's template.
  fs::remove_all(run());
  ASSERT_EQ(train(), ExitCode::Done);
  EXPECT_FALSE(fs::exists(run() / "adapter/chat_template.jinja"));
  write_file_atomic(run() / "adapter/chat_template.jinja", "of the adapter");
  EXPECT_EQ(written_by({.name = model().string(),
                        .adapter = (run() / "adapter").string(),
                        .template_path = path.string()}),
            "<|start|>user a<|end|><|start|>assistant");
}

TEST_F(FineTuned, StepsFollowFromRowsAndBatch) {
  config_["train"]["steps"] = 0;
  config_["train"]["epochs"] = 2;
  config_["train"]["batch_size"] = 2;
  config_["train"]["grad_accum"] = 2;
  train();
  const std::vector<nlohmann::json> rows = steps();
  ASSERT_EQ(rows.size(), 2 * (kRows + 3) / 4U);
  int64_t tokens = 0, other_tokens = 0, samples = 0;
  for (size_t step = 0; step < rows.size(); ++step) {
    (step < rows.size() / 2 ? tokens : other_tokens) +=
        rows[step]["supervised_tokens"].get<int64_t>();
    samples += rows[step]["rows"].get<int64_t>();
  }
  EXPECT_EQ(samples, 2 * kRows);
  EXPECT_EQ(tokens, other_tokens);  // every row once in each epoch
}

TEST_F(FineTuned, ContinuesFromAnAdapter) {
  config_["tuning"]["lora"]["adapter"] = (golden_folder() / "train/qwen2/dora").string();
  config_["train"]["learning_rate"] = 0;
  train();
  const Tensors start =
      read_tensors(golden_folder() / "train/qwen2/dora/adapter_model.safetensors");
  const Tensors found = adapter();
  ASSERT_EQ(found.size(), start.size());
  for (const auto& [name, value] : start) EXPECT_TRUE(found.at(name).equal(value)) << name;
}

TEST_F(FineTuned, APlanTrainsAndWritesNothing) {
  EXPECT_EQ(train(/*plan_only=*/true), ExitCode::Done);
  for (const char* entry : {"adapter", "checkpoints", "events.jsonl", "metrics.json"})
    EXPECT_FALSE(fs::exists(run() / entry)) << entry;
}

TEST_F(FineTuned, APlanRefusesAFolderThatIsNoCheckpoint) {
  fs::create_directories(run() / "wrong");
  config_["train"]["resume_from_checkpoint"] = (run() / "wrong").string();
  EXPECT_THROW(train(/*plan_only=*/true), CheckpointError);
}

TEST_F(FineTuned, AStoppedRunExportsNothingUntilItIsContinued) {
  config_["train"]["steps"] = 4;
  config_["tuning"]["lora"]["dropout"] = 0.2;
  EXPECT_EQ(train(), ExitCode::Done);
  const Tensors unbroken = adapter();
  fs::remove_all(run());

  stop_ = true;
  EXPECT_EQ(train(), ExitCode::Stopped);
  EXPECT_FALSE(fs::exists(run() / "adapter"));
  EXPECT_EQ(steps().size(), 1U);
  stop_ = false;
  EXPECT_EQ(train(), ExitCode::Done);
  EXPECT_EQ(steps().size(), 4U);
  for (const auto& [name, value] : unbroken) EXPECT_TRUE(adapter().at(name).equal(value)) << name;
}

TEST_F(FineTuned, AStopWhileTheBatchIsMeasuredKeepsNothingOfIt) {
  config_["train"]["batch_size"] = "auto";
  stop_ = true;
  EXPECT_EQ(train(), ExitCode::Stopped);
  EXPECT_TRUE(steps().empty()) << "the batch of half a search would stay with the run";
  EXPECT_FALSE(fs::exists(run() / "metrics.json"));
  stop_ = false;
  EXPECT_EQ(train(), ExitCode::Done);
  EXPECT_EQ(steps().size(), 2U);
}

// A base whose files name another end than the one that the rows teach.
TEST_F(FineTuned, TheLearntEndOfAnswersIsNamedByTheResult) {
  const auto set = [this](const char* file, const io::Json& values) {
    io::Json json = fs::exists(model() / file) ? io::read_json_file(model() / file) : io::Json();
    json.update(values);
    write_file_atomic(model() / file, json.dump());
  };
  const auto ends_in = [](const fs::path& folder) {
    return io::read_json_file(folder / "generation_config.json").at("eos_token_id");
  };
  set("config.json", {{"eos_token_id", 0}});
  set("generation_config.json", {{"eos_token_id", 0}, {"temperature", 0.5}});
  set("tokenizer_config.json", {{"eos_token", "<|pad|>"}});
  const io::Json both = {2, 0};
  config_["train"]["save_strategy"] = "steps";
  config_["train"]["save_steps"] = 2;
  train();
  EXPECT_EQ(ends_in(run() / "adapter"), both);
  EXPECT_EQ(ends_in(run() / "checkpoints/last"), both);
  const LoadedModel loaded = load_model(
      {.name = model().string(), .adapter = (run() / "adapter").string()}, Log(LogLevel::Quiet));
  EXPECT_NE(std::find(loaded.end_ids.begin(), loaded.end_ids.end(), 2), loaded.end_ids.end());
  EXPECT_EQ(loaded.turn_end_ids, std::vector<int32_t>{2});

  fs::remove_all(run());
  config_["tuning"]["mode"] = "full";
  train();
  EXPECT_EQ(ends_in(run() / "model"), both);
  EXPECT_EQ(ends_in(run() / "checkpoints/last"), both);
  EXPECT_EQ(io::read_json_file(run() / "model/generation_config.json").at("temperature"), 0.5);
  EXPECT_EQ(io::read_json_file(run() / "model/config.json").at("eos_token_id"), 0);

  fs::remove_all(run());
  config_["eos_token"] = "<|end|>";  // as TRL's key
  train();
  EXPECT_EQ(ends_in(run() / "model"), both);
  EXPECT_EQ(io::read_json_file(run() / "model/config.json").at("eos_token_id"), 2);
  EXPECT_EQ(io::read_json_file(run() / "model/tokenizer_config.json").at("eos_token"), "<|end|>");

  fs::remove_all(run());
  config_.erase("eos_token");
  config_["data"]["train_on_eos"] = "none";  // then nothing teaches it
  train();
  EXPECT_EQ(ends_in(run() / "model"), 0);
}

TEST_F(FineTuned, ACheckpointOfLoraIsAnAdapterOfFullTrainingAModel) {
  config_["train"]["save_strategy"] = "steps";
  config_["train"]["save_steps"] = 2;
  train();
  const fs::path last = run() / "checkpoints/last";
  for (const auto& [name, value] : read_tensors(last / "adapter_model.safetensors"))
    EXPECT_TRUE(adapter().at(name).equal(value)) << name;
  EXPECT_EQ(read_file(last / "adapter_config.json"),
            read_file(run() / "adapter/adapter_config.json"));

  fs::remove_all(run());
  config_["tuning"]["mode"] = "full";
  train();
  EXPECT_EQ(read_file(last / "config.json"), read_file(run() / "model/config.json"));
  EXPECT_TRUE(fs::exists(last / "model.safetensors"));
}

}  // namespace
}  // namespace convoy::recipes

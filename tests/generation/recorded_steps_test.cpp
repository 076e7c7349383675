// SPDX-License-Identifier: Apache-2.0
//
// Records steps and runs them again, with Convoy's CUDA kernels on the CPU (tests/fake_cuda). As a
// CUDA graph does, a recording uses the memory and the numbers of its first call again.
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "convoy/data/text/tokenizer.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/model/models/registry.h"
#include "kernel_checks/host_kernels.h"

namespace convoy {
namespace {

std::filesystem::path example(const std::string& name) {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  return std::filesystem::path(source == nullptr ? "." : source) / "examples" / name;
}

class RecordedSteps : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const binaries = std::getenv("CONVOY_BIN_DIR");
    ASSERT_NE(binaries, nullptr) << "CONVOY_BIN_DIR names the folder of libfake_cuda.so";
    if (kernels::kernel_texts().empty()) GTEST_SKIP() << "built without clang++";
    kernels_ = testing::host_kernels(binaries);
    override_ = std::make_unique<kernels::CpuTableOverride>(kernels::own_kernel_op_table());
    const io::ModelFolder folder = io::ModelFolder::open(example("tally-3m"));
    model_ = models::load_causal_lm(folder, at::kFloat);
    tokenizer_ = std::make_unique<text::Tokenizer>(text::Tokenizer::load(folder.path()));
  }

  // Returns requests for answers of 3 to 12 tokens, two greedy ones and one drawn. The shortest
  // answer is too short to be recorded.
  std::vector<generate::Request> requests() const {
    std::ifstream file(example("sums/test.jsonl"));
    std::vector<generate::Request> made;
    for (std::string line; made.size() < 3 && std::getline(file, line);) {
      const auto number = static_cast<int64_t>(made.size());
      made.push_back(
          {.prompt = tokenizer_
                         ->encode(nlohmann::json::parse(line).at("question").get<std::string>(),
                                  text::SpecialTokens::Add)
                         .ids,
           .sampling = {.temperature = number == 1 ? 0.9 : 0.0, .top_p = 0.95},
           .draw = {.seed = 3, .row = number},
           .max_new_tokens = std::array<int64_t, 3>{12, 9, 4}[made.size()],
           .wants_logprobs = number != 1,
           .num_likeliest = number == 2 ? 3 : 0});
    }
    return made;
  }

  std::vector<generate::Completion> answers(bool records, kernels::CacheElement element) {
    generate::Engine engine(*model_, *tokenizer_,
                            {.max_rows = 3,
                             .longest_row_tokens = 600,
                             .kv_element = element,
                             .reads_late = true,
                             .records_steps = records});
    auto found = generate::answer_all(engine, requests());
    EXPECT_EQ(engine.figures().recorded_steps > 0, records);
    return found;
  }

  std::unique_ptr<kernels::HostKernels> kernels_;
  std::unique_ptr<kernels::CpuTableOverride> override_;
  std::unique_ptr<nn::CausalLm> model_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
};

TEST_F(RecordedSteps, GiveTheTokensOfStepsByThemselves) {
  for (const auto element : {kernels::CacheElement::Model, kernels::CacheElement::Int8}) {
    const auto wanted = answers(false, element), found = answers(true, element);
    for (size_t row = 0; row < wanted.size(); ++row) {
      EXPECT_EQ(found[row].token_ids, wanted[row].token_ids) << row;
      EXPECT_EQ(found[row].logprobs.size(), wanted[row].logprobs.size()) << row;
      for (size_t at = 0; at < found[row].logprobs.size(); ++at)
        EXPECT_NEAR(found[row].logprobs[at], wanted[row].logprobs[at], 1e-5);
      ASSERT_EQ(found[row].likeliest.size(), row == 2 ? found[row].token_ids.size() : 0) << row;
      for (size_t at = 0; at < found[row].likeliest.size(); ++at) {
        ASSERT_EQ(found[row].likeliest[at].size(), 3u);
        EXPECT_EQ(found[row].likeliest[at][0].id, found[row].token_ids[at]) << "greedy";
        EXPECT_NEAR(found[row].likeliest[at][0].logprob, found[row].logprobs[at], 1e-5);
      }
    }
  }
}

// Steps whose logits are divided by a temperature upload one more table, so a recording of steps
// without it is not theirs.
TEST_F(RecordedSteps, AtATemperatureHaveTablesOfTheirOwn) {
  std::vector<std::vector<generate::Completion>> of_steps[2];
  for (const bool records : {false, true}) {
    generate::Engine engine(
        *model_, *tokenizer_,
        {.max_rows = 3, .longest_row_tokens = 600, .reads_late = true, .records_steps = records});
    for (const bool at_temperature : {false, true, false}) {
      std::vector<generate::Request> asked = requests();
      asked[1].wants_logprobs = true;
      asked[1].logprobs_at_temperature = at_temperature;
      of_steps[records].push_back(generate::answer_all(engine, asked));
    }
  }
  for (size_t turn = 0; turn < of_steps[0].size(); ++turn)
    for (size_t row = 0; row < of_steps[0][turn].size(); ++row) {
      const generate::Completion& wanted = of_steps[0][turn][row];
      const generate::Completion& found = of_steps[1][turn][row];
      EXPECT_EQ(found.token_ids, wanted.token_ids) << turn << " " << row;
      ASSERT_EQ(found.logprobs.size(), wanted.logprobs.size()) << turn << " " << row;
      for (size_t at = 0; at < found.logprobs.size(); ++at)
        EXPECT_NEAR(found.logprobs[at], wanted.logprobs[at], 1e-5) << turn << " " << row;
    }
  EXPECT_NE(of_steps[0][0][1].logprobs, of_steps[0][1][1].logprobs) << "the temperature counts";
}

// The attention of these models reads the lengths of rows on the host, where a recording would not
// see them change.
void expect_no_recording(const std::string& golden_model) {
  const std::filesystem::path golden = example("../tests/golden");
  const auto model =
      models::load_causal_lm(io::ModelFolder::open((golden / golden_model).string()), at::kFloat);
  const text::Tokenizer tokenizer = text::Tokenizer::load(golden / "train/tokenizer");
  const auto answered = [&](bool records) {
    generate::Engine engine(
        *model, tokenizer,
        {.max_rows = 2, .longest_row_tokens = 100, .reads_late = true, .records_steps = records});
    std::vector<generate::Request> asked;
    for (const int32_t id : {20, 30})
      asked.push_back({.prompt = {id, 7, id}, .sampling = {.temperature = 0}, .max_new_tokens = 9});
    auto found = generate::answer_all(engine, asked);
    EXPECT_EQ(engine.figures().recorded_steps, 0);
    return found;
  };
  const auto wanted = answered(false), found = answered(true);
  for (size_t row = 0; row < wanted.size(); ++row)
    EXPECT_EQ(found[row].token_ids, wanted[row].token_ids) << row;
}

TEST_F(RecordedSteps, AreNotMadeUnderASoftCapOnScores) { expect_no_recording("train/gemma2"); }

TEST_F(RecordedSteps, AreNotMadeOfHeadsThatTheKernelsDoNotTake) {
  expect_no_recording("models/gemma4");
}

}  // namespace
}  // namespace convoy

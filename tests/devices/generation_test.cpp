// SPDX-License-Identifier: Apache-2.0
//
// The generation engine on a device whose host reads tokens a step later: what it copies, what it
// waits for, and that its texts equal the CPU's texts with the same table of ops.
#include <gtest/gtest.h>

#include <regex>

#include "convoy/apps/recipes/model_test.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/model/models/registry.h"
#include "files/source_folder.h"
#include "files/temporary_folder.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

class LateReading : public ::testing::Test {
 protected:
  LateReading() {
    simulated::install(2);
    testing::make_model(folder_.path());
    tokenizer_.emplace(text::Tokenizer::load(folder_.path()));
  }
  void TearDown() override { EXPECT_TRUE(simulated::take_findings().empty()); }

  std::unique_ptr<nn::CausalLm> model_on(at::Device device) const {
    return models::load_causal_lm(io::ModelFolder::open(folder_.path()), at::kFloat, device);
  }
  // Returns requests with every kind of draw. Some of their texts end before their greatest length.
  static std::vector<generate::Request> requests() {
    std::vector<generate::Request> made;
    for (int32_t number = 0; number < 5; ++number)
      made.push_back(
          {.number = number,
           .prompt = {5 + number, 9, 17, 3 * number + 1},
           .sampling = {.temperature = number == 0 ? 0.0 : 1.5,
                        .top_p = number == 2 ? 0.8 : 1.0,
                        .repetition_penalty = number == 3 ? 1.8 : 1.0},
           .draw = {.seed = 3, .row = number},
           .max_new_tokens = 4 + 3 * number,
           .stop = number == 4 ? std::vector<std::string>{"e"} : std::vector<std::string>{},
           .wants_logprobs = number == 1});
    return made;
  }

  convoy::testing::TemporaryFolder folder_;
  std::optional<text::Tokenizer> tokenizer_;
};

TEST_F(LateReading, TextsAreThoseOfACpuThatReadsAtOnce) {
  const auto there = model_on(simulated::device());
  generate::Engine engine(*there, *tokenizer_, {.max_rows = 3, .prefill_chunk = 6});
  const auto found = generate::answer_all(engine, requests());
  const kernels::CpuTableOverride same_ops(kernels::aten_op_table());
  const auto here = model_on(at::kCPU);
  generate::Engine on_cpu(*here, *tokenizer_, {.max_rows = 3, .prefill_chunk = 6});
  const auto wanted = generate::answer_all(on_cpu, requests());
  for (size_t index = 0; index < wanted.size(); ++index) {
    EXPECT_EQ(found[index].token_ids, wanted[index].token_ids) << index;
    EXPECT_EQ(found[index].logprobs, wanted[index].logprobs) << index;
    EXPECT_EQ(found[index].text, wanted[index].text) << index;
  }
}

// The ids that a grammar allows are found and copied while the device makes the hidden states.
TEST_F(LateReading, RowsWithAGrammarHaveTheTextsOfACpu) {
  const io::ModelFolder folder =
      io::ModelFolder::open(testing::source_folder() / "examples/tally-3m");
  const text::Tokenizer tokenizer = text::Tokenizer::load(folder.path());
  const auto there = models::load_causal_lm(folder, at::kFloat, simulated::device());
  const text::GrammarCompiler compiler(tokenizer,
                                       std::min(there->vocab_size(), tokenizer.vocab_size()));
  const auto grammar = compiler.compile({text::GrammarKind::Regex, "[a-f]{2}(, [0-9]{1,3}){2,5}"});
  const auto bound = [&] {
    std::vector<generate::Request> made = requests();
    for (generate::Request& request : made)
      if (request.number != 2) request.form.grammar = grammar;
    return made;
  };
  generate::Engine engine(*there, tokenizer, {.max_rows = 3, .prefill_chunk = 6});
  const auto found = generate::answer_all(engine, bound());
  const kernels::CpuTableOverride same_ops(kernels::aten_op_table());
  const auto here = models::load_causal_lm(folder, at::kFloat);
  generate::Engine on_cpu(*here, tokenizer, {.max_rows = 3, .prefill_chunk = 6});
  const auto wanted = generate::answer_all(on_cpu, bound());
  for (size_t index = 0; index < wanted.size(); ++index) {
    EXPECT_EQ(found[index].token_ids, wanted[index].token_ids) << index;
    EXPECT_EQ(found[index].logprobs, wanted[index].logprobs) << index;
    if (index != 2) {
      EXPECT_TRUE(std::regex_search(found[index].text, std::regex("^[a-f]{1,2}(, ?[0-9]*)*,?$")))
          << found[index].text;
    }
  }
}

TEST_F(LateReading, AStepWaitsForTheStepBeforeAlone) {
  const auto model = model_on(simulated::device());
  generate::Engine engine(*model, *tokenizer_, {});
  for (generate::Request& request : requests()) {
    request.max_new_tokens = 20;
    request.stop.clear();
    engine.submit(std::move(request));
  }
  for (int64_t step = 0; step < 3; ++step) engine.step();
  simulated::reset_host_waits();
  engine.step();
  std::string kinds;
  for (const simulated::HostWait& wait : simulated::host_waits()) kinds += wait.kind + ";";
  EXPECT_EQ(kinds, "event;");
}

}  // namespace
}  // namespace convoy

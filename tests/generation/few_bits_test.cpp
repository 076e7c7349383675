// SPDX-License-Identifier: Apache-2.0
//
// A model in few bits answers as the model of the values that its codes stand for, for the families
// whose blocks differ most: keys that are values, layers without keys, gates, Gated DeltaNet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "convoy/core/io/json_text.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/model/kernels/bitsandbytes_weight/bitsandbytes_weight.h"
#include "convoy/model/kernels/integer_weight/integer_weight.h"
#include "convoy/model/models/registry.h"
#include "files/source_folder.h"
#include "generation/word_tokenizer_test.h"

namespace convoy::generate {
namespace {

using kernels::BitsandbytesFormat;
using kernels::CodeType;
using kernels::IntegerFormat;
using kernels::WeightFormat;

std::unique_ptr<nn::CausalLm> load(const std::string& name,
                                   const models::WeightCoding& coding = {}) {
  return models::load_causal_lm(io::ModelFolder::open(convoy::testing::golden_model(name).string()),
                                at::kFloat, at::kCPU, coding);
}

class FewBitsOfFamily : public ::testing::TestWithParam<const char*> {
 protected:
  std::vector<Completion> answers(nn::CausalLm& model) const {
    const auto tokenizer = convoy::testing::word_tokenizer(model.vocab_size());
    const io::Json golden =
        io::read_json_file(convoy::testing::source_folder() / "tests/golden/generation" /
                           (std::string(GetParam()) + ".json"));
    std::vector<Request> requests;
    for (const io::Json& prompt : golden.at("prompts"))
      requests.push_back({.prompt = prompt.get<std::vector<int32_t>>(),
                          .sampling = {.temperature = 0},
                          .max_new_tokens = 16,
                          .wants_logprobs = true});
    Engine engine(model, tokenizer, {.max_rows = 5, .prefill_chunk = 24});
    return answer_all(engine, std::move(requests));
  }

  // Both models compute the same values by other kernels. A token may differ where two are as
  // likely as rounding is large; after it the texts are two texts.
  void expect_same_answers(nn::CausalLm& coded, nn::CausalLm& whole) const {
    const std::vector<Completion> found = answers(coded), wanted = answers(whole);
    size_t compared = 0, tokens = 0;
    for (size_t row = 0; row < wanted.size(); ++row) {
      tokens += wanted[row].token_ids.size();
      for (size_t at = 0; at < wanted[row].token_ids.size(); ++at) {
        EXPECT_NEAR(found[row].logprobs[at], wanted[row].logprobs[at], 1e-4) << row << " " << at;
        if (found[row].token_ids[at] != wanted[row].token_ids[at]) break;
        ++compared;
      }
    }
    EXPECT_GT(compared, tokens * 9 / 10);
  }
  static void expect_other_answers(const std::vector<Completion>& a,
                                   const std::vector<Completion>& b) {
    size_t other = 0;
    for (size_t row = 0; row < a.size(); ++row) other += a[row].logprobs[0] != b[row].logprobs[0];
    EXPECT_EQ(other, a.size());
  }
};

TEST_P(FewBitsOfFamily, CodesOfBitsandbytesAnswerAsTheirValues) {
  const auto unrounded = load(GetParam());
  const std::vector<Completion> plain = answers(*unrounded);
  for (const BitsandbytesFormat& format : {BitsandbytesFormat{CodeType::Nf4, 64, true},
                                           BitsandbytesFormat{CodeType::Int8, 64, false}}) {
    const auto coded = load(GetParam(), {.format = format});
    const auto whole = load(GetParam(), {.format = format});
    for (nn::Linear* linear : coded->block_linears())
      EXPECT_TRUE(linear->is_bitsandbytes()) << linear->name();
    for (nn::Linear* linear : whole->block_linears()) linear->decode();
    coded->join_projections();
    expect_same_answers(*coded, *whole);
    expect_other_answers(answers(*coded), plain);
  }
}

TEST_P(FewBitsOfFamily, IntegersAnswerAsTheirValues) {
  const IntegerFormat eight{.weight = WeightFormat::Int8};
  const IntegerFormat four{.weight = WeightFormat::Int4Zero, .group_inputs = 32};
  for (const IntegerFormat& format : {eight, four}) {
    const auto coded = load(GetParam());
    const auto whole = load(GetParam());
    const auto round = [](nn::Linear& linear, const IntegerFormat& to) {
      linear.weight() = kernels::quantize_weight(linear.values(), to).values();
      linear.weight_changed();
    };
    for (nn::Linear* linear : whole->block_linears()) round(*linear, format);
    round(whole->head(), eight);
    coded->join_projections();
    coded->quantize_blocks(format);
    coded->head().quantize(eight);
    for (nn::Linear* linear : coded->block_linears())
      EXPECT_TRUE(linear->is_integer()) << linear->name();
    expect_same_answers(*coded, *whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, FewBitsOfFamily,
                         ::testing::Values("gemma", "gemma4", "gemma4-keys", "gemma4-unified",
                                           "qwen3_5", "muse_glimmer"),
                         [](const auto& tested) {
                           std::string name = tested.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace convoy::generate

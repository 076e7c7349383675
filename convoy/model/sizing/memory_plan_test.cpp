// SPDX-License-Identifier: Apache-2.0
//
// Tests the formula by what ranks share. apps/recipes/memory/memory_plan_test.cpp tests the plans
// of real models.
#include "convoy/model/sizing/memory_plan.h"

#include <gtest/gtest.h>

namespace convoy::sizing {
namespace {

MemoryQuestion question_of_four_ranks() {
  MemoryQuestion question{.ranks = 4, .accumulates = true, .micro_batch_tokens = 10};
  question.shape.on_cpu = true;
  question.shape.layers = 1;
  question.shape.vocab = 10;
  question.shape.hidden = 10;
  question.shape.element_bytes = 4;
  question.shape.units = {{.parts = {{.elements = 1000, .bytes = 4000, .trained = true}}}};
  return question;
}

TEST(StateSharing, EachPartIsCutByItself) {
  const MemoryQuestion question = question_of_four_ranks();
  const MemoryPlan whole = plan_memory(question, {.strategy = "any", .spans_processes = true});
  EXPECT_EQ(whole.weight_bytes, 4000);
  EXPECT_EQ(whole.gradient_bytes, 4000);
  EXPECT_EQ(whole.optimizer_bytes, 8000);

  const MemoryPlan values = plan_memory(
      question, {.strategy = "values alone", .spans_processes = true, .cuts_values = true});
  EXPECT_EQ(values.weight_bytes, 1000);
  EXPECT_EQ(values.gradient_bytes, whole.gradient_bytes);
  EXPECT_EQ(values.optimizer_bytes, whole.optimizer_bytes);

  const MemoryPlan states = plan_memory(
      question, {.strategy = "states alone", .spans_processes = true, .cuts_states = true});
  EXPECT_EQ(states.weight_bytes, whole.weight_bytes);
  EXPECT_EQ(states.gradient_bytes, 1000 + 4000) << "whole ones wait for the last micro-batch";
  EXPECT_EQ(states.optimizer_bytes, 2000);
}

TEST(StateSharing, TheGradientOfATiedHeadLeavesAfterTheActivations) {
  MemoryQuestion question = question_of_four_ranks();
  question.accumulates = false;
  question.shape.layers = 3;
  question.shape.kept = 10;
  const StateSharing sharing{
      .strategy = "any", .spans_processes = true, .cuts_states = true, .cuts_gradients = true};
  const MemoryPlan apart = plan_memory(question, sharing);
  question.shape.tied_head = true;
  const MemoryPlan tied = plan_memory(question, sharing);
  const int64_t freed = (3 - 1) * 10 * 10 * 4;  // blocks, tokens, elements, bytes
  EXPECT_EQ(apart.exchange_bytes - tied.exchange_bytes, freed);
  EXPECT_EQ(apart.activation_bytes, tied.activation_bytes);
}

TEST(StateSharing, AStrategyOfNoKnownNameIsChosenLikeAnyOther) {
  const MemoryQuestion question = question_of_four_ranks();
  const StateSharing whole{.strategy = "whole", .spans_processes = true};
  const StateSharing pieces{.strategy = "pieces",
                            .spans_processes = true,
                            .cuts_states = true,
                            .cuts_gradients = true,
                            .cuts_values = true};
  const int64_t room_for_pieces = plan_memory(question, pieces).total_bytes() * 10 / 9 + 10;
  ASSERT_LT(room_for_pieces, plan_memory(question, whole).total_bytes());
  const StrategyChoice choice = choose_strategy(question, {whole, pieces}, room_for_pieces);
  EXPECT_EQ(choice.strategy, "pieces") << choice.reason;
  EXPECT_TRUE(choice.fits);
  EXPECT_NE(choice.reason.find("whole needs"), std::string::npos) << choice.reason;
  const StrategyChoice none = choose_strategy(question, {whole, pieces}, 1);
  EXPECT_EQ(none.strategy, "pieces") << "the last, where none fits";
  EXPECT_FALSE(none.fits);
}

TEST(ChooseRecompute, TakesTheLeastThatFits) {
  using architecture::Recompute;
  MemoryQuestion question = question_of_four_ranks();
  question.micro_batch_tokens = 1000;
  question.shape.layers = 10;
  question.shape.hidden = 10;
  question.shape.kept = 100;
  question.shape.recomputed = 40;
  const StateSharing sharing{.strategy = "any", .spans_processes = true};
  const auto bytes_with = [&](Recompute recompute) {
    question.recompute = recompute;
    return plan_memory(question, sharing).total_bytes();
  };
  const int64_t nothing = bytes_with(Recompute::Nothing);
  const int64_t selective = bytes_with(Recompute::Selective);
  EXPECT_EQ(nothing - selective, 9 * 1000 * 40 * 4) << "but for the block at work";
  EXPECT_GT(selective, bytes_with(Recompute::Blocks));
  const auto chosen = [&](int64_t usable_bytes) {
    return choose_recompute(question, sharing, usable_bytes);
  };
  EXPECT_EQ(chosen(0), Recompute::Nothing) << "nothing is known";
  EXPECT_EQ(chosen(nothing * 10 / 9 + 10), Recompute::Nothing);
  EXPECT_EQ(chosen(nothing), Recompute::Selective) << "a tenth stays free";
  EXPECT_EQ(chosen(selective * 10 / 9 + 10), Recompute::Selective);
  EXPECT_EQ(chosen(selective), Recompute::Blocks);
}

// One rank has one micro-batch, so its bf16 gradients take the memory of activations that backward
// has freed.
TEST(MemoryPlan, GradientsTakeThePlaceOfActivations) {
  MemoryQuestion question;
  question.shape.units = {{.parts = {{.elements = 1000, .bytes = 2000, .trained = true}}}};
  question.shape.element_bytes = 2;
  question.shape.vocab = 1;
  const auto gradients = [&](const char* strategy) {
    return plan_memory(question, {.strategy = strategy}).gradient_bytes;
  };
  EXPECT_EQ(gradients("none"), 2000);
  EXPECT_EQ(gradients("ddp"), 4000) << "buckets are fp32";
  question.shape.layers = 3;
  question.shape.kept = 7;
  question.micro_batch_tokens = 50;
  EXPECT_EQ(gradients("none"), 2000 - 2 * 50 * 7 * 2);
  question.accumulates = true;
  EXPECT_EQ(gradients("none"), 4000);
}

TEST(MemoryPlan, ATeacherStaysBesideTheModel) {
  MemoryQuestion question;
  question.shape.vocab = 1;
  question.shape.element_bytes = 2;
  question.replicas = 2;
  const MemoryPlan alone = plan_memory(question, {});
  EXPECT_EQ(alone.text().find("teacher"), std::string::npos);
  question.teacher_bytes = 5 << 20;
  const MemoryPlan taught = plan_memory(question, {});
  EXPECT_EQ(taught.total_bytes(), alone.total_bytes() + (10 << 20));
  EXPECT_NE(taught.text().find("10 MiB teacher"), std::string::npos) << taught.text();
  EXPECT_EQ(taught.to_json()["teacher_bytes"], 10 << 20);
  question.teacher_bytes = 0;  // a server has it
  question.loss_bytes = 3 << 20;
  const MemoryPlan served = plan_memory(question, {});
  EXPECT_EQ(served.text().find("teacher"), std::string::npos) << served.text();
  EXPECT_EQ(served.head_bytes, alone.head_bytes + (6 << 20));
}

// Texts are drawn before the forward pass, so the larger half of a step counts.
TEST(MemoryPlan, TheLargerHalfOfAStepThatDrawsTextsCounts) {
  MemoryQuestion question;
  question.shape.layers = 3;
  question.shape.kept = 7;
  question.shape.vocab = 1;
  question.shape.element_bytes = 2;
  question.micro_batch_tokens = 50;
  const MemoryPlan learns = plan_memory(question, {});
  const int64_t learning = learns.activation_bytes + learns.head_bytes;
  ASSERT_GT(learning, 100);
  EXPECT_EQ(learns.text().find("drawn"), std::string::npos);
  question.drawing_bytes = learning - 100;
  const MemoryPlan less = plan_memory(question, {});
  EXPECT_EQ(less.total_bytes(), learns.total_bytes());
  EXPECT_NE(less.text().find("while texts are drawn"), std::string::npos) << less.text();
  question.drawing_bytes = learning + 100;
  const MemoryPlan more = plan_memory(question, {});
  EXPECT_EQ(more.total_bytes(), learns.total_bytes() + 100);
  EXPECT_NE(more.text().find("while it learns"), std::string::npos) << more.text();
  EXPECT_EQ(more.to_json()["drawing_bytes"], learning + 100);
}

// With less memory the engine draws fewer texts together.
TEST(MemoryPlan, KeysAndValuesOfTextsTakeHalfOfWhatTheStateLeaves) {
  MemoryQuestion question;
  question.shape.vocab = 1;
  question.program_bytes = 300;
  question.reference_bytes = 100;
  question.drawing_bytes = 1000;
  const auto drawing = [&](int64_t device_bytes) {
    question.device_bytes = device_bytes;
    return plan_memory(question, {}).drawing_bytes;
  };
  EXPECT_EQ(drawing(0), 1000) << "unknown";
  EXPECT_EQ(drawing(3000), 1000);
  EXPECT_EQ(drawing(1000), 300);
  EXPECT_EQ(drawing(200), 0);
}

TEST(MemoryPlan, AReferenceIsAPartOfIt) {
  MemoryQuestion question;
  question.shape.vocab = 1;
  const MemoryPlan plain = plan_memory(question, {});
  question.reference_bytes = 5 << 20;
  question.replicas = 2;
  const MemoryPlan held = plan_memory(question, {});
  EXPECT_EQ(held.total_bytes(), plain.total_bytes() + (10 << 20));
  EXPECT_NE(held.text().find("10 MiB reference"), std::string::npos) << held.text();
  EXPECT_EQ(held.to_json()["reference_bytes"], 10 << 20);
  EXPECT_FALSE(plain.to_json().contains("reference_bytes"));
}

}  // namespace
}  // namespace convoy::sizing

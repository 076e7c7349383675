// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/config/starter_config.h"

#include <gtest/gtest.h>

#include "convoy/model/sizing/known_models.h"

namespace convoy::apps {
namespace {

// Returns the lines of keys in the configuration for rows of these lengths.
std::string configuration(std::vector<int64_t> row_tokens, sizing::Machine machine = {},
                          int64_t positions = 4096) {
  StarterFacts facts{.model = sizing::known_model("smollm2-135m"),
                     .looked_at_rows = std::ssize(row_tokens),
                     .row_tokens = std::move(row_tokens),
                     .machine = std::move(machine)};
  facts.model->max_positions = positions;
  return starter_config({.model = "m", .data = "d", .hardware = "auto", .mode = "lora"}, facts);
}

std::string line_of(const std::string& text, const std::string& key) {
  const size_t begin = text.find(key + ": ");
  return text.substr(begin, text.find('\n', begin) - begin);
}

TEST(StarterConfig, TakesTheLongestRowRoundedUp) {
  EXPECT_EQ(line_of(configuration({20, 87}), "max_seq_len"),
            "max_seq_len: 128  # the longest of 2 rows has 87 tokens");
  EXPECT_EQ(line_of(configuration({20, 128}), "max_seq_len"),
            "max_seq_len: 128  # the longest of 2 rows has 128 tokens");
  EXPECT_EQ(line_of(configuration({}), "max_seq_len"),
            "max_seq_len: 512  # tokens of the longest row; data.truncation decides about longer "
            "ones");
}

TEST(StarterConfig, LeavesOutAFewRowsThatAreFarLonger) {
  std::vector<int64_t> rows(200, 100);
  rows.back() = 3000;
  EXPECT_EQ(line_of(configuration(rows), "max_seq_len"),
            "max_seq_len: 128  # the longest of 200 rows has 3000 tokens; 1 row is longer, "
            "about which data.truncation decides");
  // Two fifths of the rows are long, too many to be cut.
  std::fill(rows.begin() + 120, rows.end(), 3000);
  EXPECT_EQ(line_of(configuration(rows), "max_seq_len"),
            "max_seq_len: 3008  # the longest of 200 rows has 3000 tokens");
}

TEST(StarterConfig, KeepsToThePositionsOfTheModel) {
  EXPECT_EQ(line_of(configuration({900, 1200}, {}, 1000), "max_seq_len"),
            "max_seq_len: 1000  # the longest of 2 rows has 1200 tokens, and the model has 1000 "
            "positions; 1 row is longer, about which data.truncation decides");
}

TEST(StarterConfig, SaysTheTypeThatTrainingTakes) {
  const auto bf16_line = [](const std::string& level) {
    return line_of(configuration({20}, {.hardware = sizing::Hardware::Cpu,
                                        .device_bytes = int64_t{16} << 30,
                                        .cpu_level = level}),
                   "bf16");
  };
  EXPECT_TRUE(bf16_line("avx2").starts_with("bf16: auto  # auto: bf16 here (on this CPU (avx2)"))
      << bf16_line("avx2");
  EXPECT_TRUE(bf16_line("baseline").starts_with("bf16: auto  # auto: fp32 here"));
  EXPECT_TRUE(line_of(configuration({20}), "bf16").starts_with("bf16: auto  # auto: bf16 here"));
}

TEST(StarterConfig, PairsHaveTheirTaskLossAndRate) {
  StarterFacts facts{.task = "dpo", .schema = "preference", .looked_at_rows = 1};
  StarterAnswers answers{.model = "m", .data = "d", .hardware = "auto", .mode = "lora"};
  std::string text = starter_config(answers, facts);
  EXPECT_EQ(line_of(text, "task"), "task: dpo");
  EXPECT_EQ(line_of(text, "learning_rate"), "learning_rate: 5e-6");
  EXPECT_NE(line_of(text, "lora").find("dropout: 0,"), std::string::npos) << text;
  facts.task = "sft";
  EXPECT_NE(line_of(starter_config(answers, facts), "lora").find("dropout: 0.05,"),
            std::string::npos);
  EXPECT_TRUE(line_of(text, "loss").starts_with("loss: sigmoid"));
  facts.task = "orpo";
  answers.mode = "full";
  text = starter_config(answers, facts);
  EXPECT_EQ(line_of(text, "learning_rate"), "learning_rate: 8e-6");
  EXPECT_EQ(text.find("loss: "), std::string::npos) << text;
  EXPECT_NE(text.find("preference:\n  beta: 0.1"), std::string::npos) << text;
  facts.task = "kto";
  text = starter_config(answers, facts);
  EXPECT_EQ(line_of(text, "learning_rate"), "learning_rate: 5e-7");
  EXPECT_TRUE(line_of(text, "batch_size").starts_with("batch_size: 8"))
      << "a divergence is estimated over them";
  EXPECT_NE(text.find("  desirable_weight: 1.0"), std::string::npos) << text;
}

}  // namespace
}  // namespace convoy::apps

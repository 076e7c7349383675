// SPDX-License-Identifier: Apache-2.0
//
// QLoRA of the families whose blocks differ most: over codes made while loading it is LoRA over the
// weights that these codes stand for, on one rank and on two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "parity/convoy_program.h"

namespace convoy {
namespace {

using nlohmann::json;
using testing::ConvoyProgram;
using testing::golden_folder;

class CodedFamily : public ::testing::TestWithParam<const char*> {
 protected:
  CodedFamily() : model_(convoy_.model(GetParam()).string()) {}

  json config(const std::string& model, const std::string& mode) const {
    return {
        {"model", {{"name", model}, {"max_seq_len", 256}}},
        {"tuning",
         {{"mode", mode},
          {"lora", {{"adapter", (golden_folder() / GetParam() / "start").string()}}}}},
        {"train", {{"steps", 6}, {"batch_size", 2}, {"grad_accum", 2}, {"learning_rate", 1e-3}}},
        {"data", {{"train_path", rows()}}}};
  }
  static std::string rows() { return (golden_folder() / "completions.jsonl").string(); }

  // A folder of the values that the codes of `format` stand for.
  std::string decoded(const std::string& format) const {
    const std::string codes = (convoy_ / (format + "-codes")).string();
    const std::string values = (convoy_ / (format + "-values")).string();
    for (const std::string& command :
         {fmt::format("models quantize --model {} --output {} --quantization {}", model_, codes,
                      format),
          fmt::format("models quantize --model {} --output {} --dequantize --dtype fp32", codes,
                      values)}) {
      const testing::Outcome outcome = convoy_.run(command);
      if (outcome.status != 0) throw std::runtime_error(outcome.output);
    }
    return values;
  }

  static void expect_near(const json& found, const json& wanted, double bound) {
    EXPECT_NEAR(found.get<double>(), wanted.get<double>(), bound * std::abs(wanted.get<double>()));
  }
  static void expect_same_curve(const std::vector<json>& found, const std::vector<json>& wanted) {
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t step = 0; step < found.size(); ++step)
      for (const char* figure : {"loss", "grad_norm"}) {
        SCOPED_TRACE(fmt::format("{} of step {}", figure, step));
        expect_near(found[step][figure], wanted[step][figure], 1e-4);
      }
  }

  ConvoyProgram convoy_;
  std::string model_;
};

TEST_P(CodedFamily, TrainsAsOverTheValuesOfItsCodes) {
  for (const std::string format : {"nf4", "int8"}) {
    SCOPED_TRACE(format);
    const std::string values = decoded(format);
    json coded = config(model_, "qlora");
    coded["tuning"]["quantization"] = {{"type", format}, {"double_quant", false}};
    const std::vector<json> wanted = convoy_.train(format + "-lora", config(values, "lora"));
    ASSERT_EQ(wanted.size(), 6U);
    EXPECT_LT(wanted.back()["loss"], wanted.front()["loss"]);
    expect_same_curve(convoy_.train(format + "-qlora", coded), wanted);
    coded["train"]["grad_accum"] = 1;
    coded["parallel"] = {{"strategy", "zero3"}, {"keep_whole_below", 0}};
    expect_same_curve(convoy_.train(format + "-shared", coded, "--nproc 2"), wanted);
  }
}

TEST_P(CodedFamily, ScoresAnAdapterAsOverTheValuesOfItsCodes) {
  const std::string adapter = (golden_folder() / GetParam() / "lora").string();
  const auto scores = [&](const std::string& flags) {
    return convoy_.score(fmt::format("--data {} --adapter {} {}", rows(), adapter, flags));
  };
  const std::vector<json> whole = scores("--model " + model_);
  for (const std::string format : {"nf4", "int8"}) {
    SCOPED_TRACE(format);
    const std::vector<json> found =
        scores(fmt::format("--model {} --quantization {}", model_, format));
    const std::vector<json> wanted = scores("--model " + decoded(format));
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t row = 0; row < found.size(); ++row) {
      expect_near(found[row]["nll"], wanted[row]["nll"], 1e-5);
      EXPECT_NE(found[row]["nll"], whole[row]["nll"]) << row;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CodedFamily,
                         ::testing::Values("gemma", "gemma4", "gemma4-unified", "qwen3_5",
                                           "muse_glimmer"),
                         [](const auto& family) {
                           std::string name = family.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace convoy

// SPDX-License-Identifier: Apache-2.0
#include "parity/trl_golden.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "convoy/core/base/files.h"
#include "convoy/core/io/safetensors.h"

namespace convoy::testing {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr double kTolerance = 1e-5;
constexpr int kItemsOfStep = 24;

}  // namespace

fs::path trl_folder() { return golden_folder().parent_path() / "preferences"; }

json read_trl_golden(const std::string& file) {
  return json::parse(read_file(trl_folder() / file));
}

void expect_close(double found, double wanted, const std::string& what, double beside) {
  EXPECT_LE(std::abs(found - wanted), kTolerance * std::max(1.0, std::abs(wanted)) + beside)
      << what << ": " << found << ", wanted " << wanted;
}

double rounding_of(const json& one, const std::string& figure) {
  return one["rounding"]["curve"].value(figure, 0.0);
}

void expect_weights(const fs::path& file, const json& one) {
  const json& wanted = one["weights"];
  const io::SafetensorsFile stored(file);
  EXPECT_EQ(stored.tensors().size(), wanted.size());
  for (const auto& [name, figures] : wanted.items()) {
    const io::TensorView& view = stored.require(name);
    ASSERT_EQ(view.dtype, io::Dtype::F32);
    std::vector<float> values(view.bytes.size() / sizeof(float));
    std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
    double squares = 0;
    double product = 0;
    for (size_t at = 0; at < values.size(); ++at) {
      const auto value = static_cast<double>(values[at]);
      squares += value * value;
      product += value * std::cos(static_cast<double>(at));
    }
    const double rounding = one["rounding"]["weights"][name];
    expect_close(std::sqrt(squares), figures[0], "norm of " + name, rounding);
    // The product is a sum with a term for each weight, and each weight may differ by the
    // tolerance.
    expect_close(product, figures[1], "product of " + name,
                 kTolerance * std::sqrt(static_cast<double>(values.size())) / 4 + rounding);
  }
}

json trl_config(const ConvoyProgram& convoy, const json& golden, const json& one) {
  json config = {
      {"model", {{"name", convoy.model("qwen2").string()}, {"max_seq_len", 256}}},
      {"preference", one["preference"]},
      {"train",
       {{"steps", golden["steps"]},
        {"batch_size", one["batch_size"]},
        {"learning_rate", golden["learning_rate"]},
        {"adam_epsilon", golden["adam_epsilon"]},
        {"lr_scheduler_type", "constant"},
        {"weight_decay", 0.0},
        {"max_grad_norm", 1.0}}},
      {"data",
       {{"train_path", (trl_folder() / (one["rows"].get<std::string>() + ".jsonl")).string()},
        {"balance_tokens", false}}}};
  if (one["tuning"] == "full")
    config["tuning"]["mode"] = "full";
  else
    config["tuning"]["lora"]["adapter"] = (golden_folder() / "qwen2/start").string();
  return config;
}

std::string trained_file(const json& one) {
  return one["tuning"] == "full" ? "model/model.safetensors" : "adapter/adapter_model.safetensors";
}

std::vector<json> train_in_layout(const ConvoyProgram& convoy, const std::string& name, json config,
                                  const Layout& layout) {
  const int slots = layout.ranks * layout.accumulation;
  config["parallel"] = layout.parallel;
  config["train"] = {{"steps", 4},
                     {"batch_size", (kItemsOfStep + slots - 1) / slots},
                     {"grad_accum", layout.accumulation},
                     {"learning_rate", 2e-3},
                     {"packing", layout.packed},
                     {"gradient_checkpointing", layout.recomputed}};
  // With the strategy dp, replicas are threads of one process.
  const bool in_threads = layout.parallel["strategy"] == "dp";
  return convoy.train(name, config, fmt::format("--nproc {}", in_threads ? 1 : layout.ranks));
}

void expect_same_figures(const std::vector<json>& found, const std::vector<json>& wanted,
                         const std::vector<std::string>& figures, const Layout& layout) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t step = 0; step < wanted.size(); ++step)
    for (const std::string& figure : figures)
      expect_close(
          found[step][figure], wanted[step][figure],
          fmt::format("{} of step {}, ranks {}, accumulation {}, packed {}, {}", figure, step,
                      layout.ranks, layout.accumulation, layout.packed, layout.parallel.dump()));
}

}  // namespace convoy::testing

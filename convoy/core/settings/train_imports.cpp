// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/train_imports.h"

#include <fmt/format.h>

#include <algorithm>

#include "convoy/core/base/counted.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/settings/accelerate_file.h"
#include "convoy/core/settings/fsdp_section.h"

namespace convoy::settings {
namespace {

using config::ImportedValue;
using config::Node;

bool is_said(const config::Resolved& resolved, const std::string& path) {
  const std::string& origin = resolved.value(path).origin;
  return origin != "default" && !origin.starts_with("preset ");
}

void add_mismatch(const ImportedValue& imported, const std::string& ours, const std::string& value,
                  const config::Resolved& resolved, config::ErrorList& errors) {
  errors.add(
      imported.node.error(fmt::format("{} is {}, but {} is {} ({})", imported.spelling,
                                      imported.quoted(), ours, value, resolved.value(ours).origin),
                          imported.spelling, "make them equal, or remove one of them"));
}

// SFT-Play's blocks of continued pre-training. Its base file has them beside a shorter max_seq_len.
void read_block_size(const std::map<std::string, Node>& found, config::Imported& imported,
                     config::ErrorList&) {
  const Node& node = found.begin()->second;
  imported.notices.push_back(fmt::format(
      "{}: block_size: blocks are as long as model.max_seq_len, which counts where both are given",
      node.where()));
  imported.values.push_back(
      {.path = "model.max_seq_len", .node = node, .spelling = "block_size", .is_default = true});
}

void check_precision(const ImportedValue& precision, const TrainingSettings& train,
                     const config::Resolved& resolved, config::ErrorList& errors) {
  const bool wanted = precision.node.text == "true";
  if (!resolved.value("train.bf16").readable || !resolved.value("train.fp16").readable ||
      train.wished_dtype() == (wanted ? "bf16" : "fp32"))
    return;
  const std::string ours =
      train.fp16 && !train.bf16.value.value_or(false) ? "train.fp16" : "train.bf16";
  const std::string value = train.wished_dtype() == "auto" ? "auto" : wanted ? "false" : "true";
  add_mismatch(precision, ours, value, resolved, errors);
}

RequestedValue num_gpus(const Node& node) {
  const std::string& text = node.text;
  if (text != "auto" && text_as<int64_t>(text).value_or(0) < 1)
    throw node.error(fmt::format("num_gpus: wanted a number of ranks or auto, found \"{}\"", text),
                     "num_gpus", "such as num_gpus: 2");
  return {text, node.where()};
}

void check_whole_batch(const DeepSpeedFacts& facts, int64_t ranks, const TrainingSettings& train,
                       const config::Resolved& resolved, config::ErrorList& errors) {
  if (facts.accumulation_alone && !is_said(resolved, "train.batch_size"))
    errors.add(facts.accumulation_alone->node.error(
        "gradient_accumulation_steps is given without a batch size", "gradient_accumulation_steps",
        "train_batch_size or train_micro_batch_size_per_gpu here, or train.batch_size in the "
        "configuration"));
  if (!facts.train_batch_size || ranks == 0 || !resolved.whole()) return;
  for (const char* path : {"train.batch_size", "train.grad_accum", "train.global_batch_size"})
    if (!resolved.value(path).readable || !resolved.value(path).agreed) return;
  if (train.batch_size.is_auto()) return;  // the rows that fit are spread over the global batch
  const int64_t together = train.batch_rows() * ranks;
  const int64_t written = train.grad_accum.value.value_or(0);
  const int64_t accumulation =
      std::max<int64_t>(1, written > 0 ? written : train.global_batch_size / together);
  if (together * accumulation != train.global_batch_size)
    errors.add(facts.train_batch_size->node.error(
        fmt::format(
            "train_batch_size is {}, but {} a micro-batch ({}) x accumulation {} x {} are {}",
            train.global_batch_size, counted(train.batch_rows(), "row"),
            resolved.value("train.batch_size").origin, accumulation, counted(ranks, "rank"),
            together * accumulation),
        "train_batch_size", "give a product of the three, or write \"auto\""));
}

}  // namespace

std::vector<config::Import> train_imports(TrainDocuments& documents) {
  using Found = std::map<std::string, Node>;
  std::vector<config::Import> imports;
  imports.push_back({.keys = {"train.deepspeed", "deepspeed"},
                     .read = [&documents](const Found& found, config::Imported& imported,
                                          config::ErrorList& errors) {
                       for (const auto& [key, node] : found)
                         documents.deepspeed.push_back(read_deepspeed(node, key, imported, errors));
                     }});
  imports.push_back({.keys = {"accelerate", "train.accelerate"},
                     .read = [&documents](const Found& found, config::Imported& imported,
                                          config::ErrorList& errors) {
                       documents.launch_request.reads_accelerate = !found.empty();
                       for (const auto& [key, node] : found)
                         documents.deepspeed.push_back(read_accelerate(
                             node, key, documents.launch_request, imported, errors));
                     }});
  imports.push_back({.keys = {"train.fsdp", "train.fsdp_config"}, .read = read_fsdp_arguments});
  imports.push_back({.keys = {"block_size"}, .read = read_block_size});
  imports.push_back(
      {.keys = {"num_gpus"},
       .read = [&documents](const Found& found, config::Imported&, config::ErrorList&) {
         documents.launch_request.ranks_of_node = num_gpus(found.begin()->second);
       }});
  return imports;
}

void check_imports(const std::vector<DeepSpeedFacts>& files, int64_t ranks,
                   const TrainSettings& settings, const config::Resolved& resolved,
                   config::ErrorList& errors) {
  const TrainingSettings& train = settings.train;
  for (const DeepSpeedFacts& facts : files) {
    check_whole_batch(facts, ranks, train, resolved, errors);
    if (facts.warmup_steps && is_said(resolved, "train.warmup_ratio") &&
        train.schedule.warmup_ratio > 0)
      add_mismatch(*facts.warmup_steps, "train.warmup_ratio",
                   fmt::format("{}", train.schedule.warmup_ratio), resolved, errors);
    if (facts.schedule_steps && train.steps > 0 &&
        train.steps != train.schedule.warmup.schedule_steps)
      add_mismatch(*facts.schedule_steps, "train.steps", fmt::format("{}", train.steps), resolved,
                   errors);
    if (facts.precision) check_precision(*facts.precision, train, resolved, errors);
    if (facts.optimizer && !std::string_view("adamw_torch_fused").starts_with(train.optim))
      add_mismatch(*facts.optimizer, "train.optim", train.optim, resolved, errors);
  }
}

}  // namespace convoy::settings

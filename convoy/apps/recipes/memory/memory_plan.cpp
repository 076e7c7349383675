// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/memory/memory_plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "convoy/apps/recipes/posttraining/teacher.h"
#include "convoy/apps/recipes/training/optimizer_settings.h"
#include "convoy/data/datasets/batches/batch_plan.h"
#include "convoy/data/datasets/batches/effective_batch.h"
#include "convoy/generate/engine/kv_budget.h"
#include "convoy/machine/device/memory.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/nn/kv_cache.h"
#include "convoy/model/nn/linear.h"
#include "convoy/model/sizing/generation_memory.h"
#include "convoy/model/sizing/memory_estimate.h"
#include "convoy/train/loop/train_loop.h"
#include "convoy/train/parallel/strategy.h"

namespace convoy::recipes {
namespace {

std::vector<sizing::ParameterPart> parts_of(const nn::Unit& unit) {
  std::map<std::pair<bool, at::ScalarType>, sizing::ParameterPart> parts;
  for (const bool trained : {false, true})
    for (const nn::NamedTensor& parameter : trained ? unit.trained : unit.frozen) {
      sizing::ParameterPart& part = parts[{trained, parameter.value.scalar_type()}];
      part.elements += parameter.value.numel();
      part.bytes += static_cast<int64_t>(parameter.value.nbytes());
      part.trained = trained;
      part.beside_frozen = trained && !unit.frozen.empty();
    }
  std::vector<sizing::ParameterPart> list;
  for (const auto& [key, part] : parts) list.push_back(part);
  return list;
}

// Size of the largest quantised weight when decoded, which devices do for each product.
int64_t decoded_bytes(nn::CausalLm& model) {
  int64_t bytes = 0;
  for (const nn::Linear* linear : model.block_linears())
    if (linear->is_bitsandbytes())
      bytes = std::max(
          bytes, linear->weight().numel() * static_cast<int64_t>(linear->weight().element_size()));
  return bytes;
}

// Size of the packed copies of the frozen weights.
int64_t packed_bytes(const nn::Unit& unit) {
  int64_t bytes = 0;
  for (const nn::Linear* linear : unit.linears)
    if (linear->name() != "lm_head" && !linear->is_bitsandbytes() &&
        !linear->weight().requires_grad())
      bytes += linear->weight().numel() * static_cast<int64_t>(linear->weight().element_size());
  return bytes;
}

bool has_parameter(nn::CausalLm& model, std::string_view ending) {
  const std::vector<nn::NamedTensor> all = model.parameters();
  return std::any_of(all.begin(), all.end(), [&](const nn::NamedTensor& parameter) {
    return parameter.name.ends_with(ending);
  });
}

int64_t norms_of_block(nn::CausalLm& model) {
  const std::vector<nn::NamedTensor> all = model.parameters();
  return std::count_if(all.begin(), all.end(), [](const nn::NamedTensor& parameter) {
    return parameter.name.starts_with("model.layers.0.") &&
           parameter.name.ends_with("_layernorm.weight");
  });
}

// Counts the tensors that the ops of a block (model/nn/decoder_block.h) save: the inputs of its
// norms, the input of each linear layer, queries, keys and values as attention reads them, gate and
// up.
void add_widths(nn::CausalLm& model, bool adapter_dropout, sizing::TrainingShape& shape) {
  const int64_t blocks = std::max<int64_t>(model.num_layers(), 1);
  int64_t kept = norms_of_block(model) * model.hidden_size();
  int64_t ffn = 0;
  int64_t rank = 0;
  int64_t in_blocks = 0;
  int64_t dora_at_work = 0;
  int64_t of_norms_and_activations = 0;
  const bool query_key_norm = model.normalises_heads();
  const bool norms_inputs = has_parameter(model, ".input_layernorm.weight");
  for (const nn::Linear* linear : model.block_linears()) {
    const std::string& name = linear->name();
    const auto is = [&](const char* end) { return name.ends_with(end); };
    const std::string_view map = sizing::map_name(name);
    const sizing::MapWidths of_map =
        sizing::widths_around(map, linear->out_features(), linear->in_features());
    in_blocks += of_map.kept;
    // The norms of queries and keys save their inputs, which no other op saves.
    if (query_key_norm && (is(".q_proj") || is(".k_proj"))) in_blocks += linear->out_features();
    if (is(".down_proj")) ffn = std::max(ffn, linear->in_features());
    if (norms_inputs || !sizing::is_first_map(map)) of_norms_and_activations += of_map.recomputed;
    for (const nn::NamedTensor& leaf : linear->adapter_leaves()) {
      if (leaf.value.dim() == 2) {
        rank += std::min(leaf.value.size(0), leaf.value.size(1)) / 2;
        continue;
      }
      // This leaf is DoRA's magnitude, the only one with one dimension.
      const sizing::DoraWidths widths = sizing::dora_widths(
          linear->out_features(), linear->in_features(),
          adapter_dropout && sizing::shares_its_input(map),
          static_cast<int64_t>(linear->weight().element_size()), linear->is_bitsandbytes());
      in_blocks += widths.kept;
      dora_at_work = std::max(dora_at_work, widths.at_work);
      shape.unfolded_bytes = std::max(shape.unfolded_bytes, widths.norm_bytes);
    }
  }
  kept += (in_blocks + rank) / blocks;
  shape.kept = kept;
  // When gate and up are one stored layer, both are copied out of its output.
  const int64_t ffn_widths = has_parameter(model, ".gate_up_proj.weight") ? 5 : 3;
  shape.at_work = ffn_widths * ffn + 2 * model.hidden_size();
  const nn::KvGeometry geometry = model.kv_geometry();
  if (geometry.has_states())
    shape.at_work =
        std::max(shape.at_work, sizing::delta_net_at_work(geometry.delta_net, shape.element_bytes));
  shape.at_work += dora_at_work;
  // DoRA's ops save their input, so with DoRA nothing is recomputed.
  if (dora_at_work == 0) shape.recomputed = of_norms_and_activations / blocks;
}

std::vector<int64_t> lengths_of(const data::TokenDataset& rows) {
  std::vector<int64_t> lengths;
  for (int64_t row = 0; row < rows.num_rows(); ++row) lengths.push_back(rows.length_tokens(row));
  std::sort(lengths.begin(), lengths.end());
  return lengths;
}

// Tokens of the largest micro-batch of any rank. For mixed data sets, an upper bound.
int64_t largest_micro_batch_tokens(const settings::TrainSettings& settings,
                                   const data::TokenDataset& rows, int64_t ranks) {
  const settings::TrainingSettings& train = settings.train;
  if (settings.task_facts().data == settings::TaskData::Mix) {
    if (train.packing) return train.batch_rows() * settings.model.max_seq_len;
    const std::vector<int64_t> lengths = lengths_of(rows);
    const auto most = std::min<ptrdiff_t>(std::ssize(lengths), train.batch_rows());
    return std::accumulate(lengths.end() - most, lengths.end(), int64_t{0});
  }
  const int64_t together = settings::rows_of_item(settings.task_facts());
  const data::BatchPlan plan(rows, {.batch_size = train.batch_rows(),
                                    .world_size = ranks,
                                    .global_batch = data::wanted_global_batch(train, ranks),
                                    .packing = train.packing,
                                    .block_tokens = together * settings.model.max_seq_len,
                                    .shuffle = settings.data.shuffle,
                                    .balance_tokens = settings.data.balance_tokens,
                                    .seed = static_cast<uint64_t>(settings.seed),
                                    .rows_of_item = together});
  return plan.largest_micro_batch(0, train::total_steps(train, plan.steps_per_epoch())).tokens;
}

// The largest micro-batch of texts that a model makes for the problems in `rows`, of whole length.
int64_t tokens_of_texts(const settings::TrainSettings& settings, const data::TokenDataset& rows,
                        int64_t ranks) {
  const settings::RolloutSettings& rollout = settings.rollout;
  return rollout.samples * (largest_micro_batch_tokens(settings, rows, ranks) +
                            settings.train.batch_rows() * rollout.max_new_tokens);
}

// Keys and values of the texts of a step in their engine.
int64_t bytes_of_drawing(const settings::TrainSettings& settings, nn::CausalLm& model,
                         const data::TokenDataset& rows, int64_t ranks) {
  const std::vector<int64_t> lengths = lengths_of(rows);
  const int64_t texts =
      data::wanted_global_batch(settings.train, ranks) / ranks * settings.rollout.samples;
  const nn::KvGeometry geometry = model.kv_geometry();
  generate::KvBudget budget{.max_rows = sizing::rows_of_drawing(texts, model.device().is_cpu()),
                            .longest_row_tokens = (lengths.empty() ? 0 : lengths.back()) +
                                                  settings.rollout.max_new_tokens};
  const std::vector<nn::KvLayerGroup> groups = nn::layer_groups(geometry);
  const std::vector<scheduler::LayerGroup> blocks = generate::kv_blocks(geometry, budget);
  int64_t bytes = budget.max_rows * nn::state_bytes(geometry);
  for (size_t group = 0; group < groups.size(); ++group)
    bytes += blocks[group].num_blocks *
             nn::kv_block_bytes(geometry, groups[group], budget.block_tokens, budget.element);
  return bytes;
}

// The values of the reference model beside the one that trains.
int64_t bytes_of_reference(const settings::TrainSettings& settings, nn::CausalLm& model) {
  if (!settings.keeps_reference()) return 0;
  const auto element_bytes = static_cast<int64_t>(model.head().weight().element_size());
  const std::string& reference = settings.policy.reference;
  return element_bytes * (reference == "base"
                              ? nn::count_parameters(model)
                              : sizing::count_parameters(
                                    families::read_decoder_spec(io::folder_of_weights(reference))));
}

// A lower bound for the tokens of a batch of `rows_together` rows. The last batch may have fewer
// rows.
int64_t least_tokens_of(const std::vector<int64_t>& lengths, int64_t rows_together) {
  const int64_t rest = std::ssize(lengths) % rows_together;
  const int64_t fewest = rest > 0 ? rest : rows_together;
  const auto end = lengths.begin() + std::min<ptrdiff_t>(fewest, std::ssize(lengths));
  return std::accumulate(lengths.begin(), end, int64_t{0});
}

int64_t bytes_of(const std::vector<nn::NamedTensor>& tensors) {
  int64_t bytes = 0;
  for (const nn::NamedTensor& tensor : tensors)
    bytes += static_cast<int64_t>(tensor.value.storage().nbytes());
  return bytes;
}

int64_t beside(const std::vector<nn::NamedTensor>& parameters, int replicas) {
  const int64_t others = device::process_memory().resident_bytes - replicas * bytes_of(parameters);
  return std::max<int64_t>(others, 0) + sizing::kStepCodeBytes;
}

// The memory parameters that all trainings share.
sizing::MemoryQuestion question_of(const settings::TrainSettings& settings,
                                   const comm::RankEnvironment& environment) {
  const bool of_node = settings.parallel.shard_over == "node";
  const optim::StateFormat states = optimizer_states(settings.train);
  return {.ranks = of_node ? environment.local_world : environment.world,
          .keep_whole_below = settings.parallel.keep_whole_below,
          .bucket_bytes = settings.parallel.bucket_mb << 20,
          .accumulates = data::wanted_global_batch(settings.train, environment.world) >
                         settings.train.batch_rows() * environment.world,
          .recompute = settings.train.gradient_checkpointing == "auto"
                           ? architecture::Recompute::Selective
                           : architecture::recompute_of(settings.train.gradient_checkpointing),
          .reshard_after_forward = settings.parallel.reshard_after_forward,
          .prefetch_blocks = settings.parallel.prefetch_blocks,
          .only_sharded = of_node || settings.parallel.offload != "none",
          .replicas = environment.replicas,
          .moment_bytes_of_256 = optim::state_bytes(states, 256 * 256, false).moments / 256,
          .has_masters = states.has_masters,
          .pages_moments = states.is_paged,
          .offloads_inputs = settings.train.activation_offload == "cpu"};
}

// Bytes per window from forward to backward: the tensors that the stages save (kernels/conv_stage),
// their inputs in the type of products and their sums in fp32, and the working memory of one stage
// in backward; the head's layers are negligible.
int64_t window_bytes(const nn::SignalClassifierSpec& spec, bool bf16) {
  const nn::SignalEncoderSpec& encoder = spec.encoder;
  const bool joint = encoder.pooling == nn::ChannelPooling::Joint;
  const int64_t signals =
      joint || encoder.pooling == nn::ChannelPooling::First ? 1 : encoder.num_channels;
  constexpr int64_t kFloatBytes = 4;
  int64_t saved = 0;
  int64_t at_work = 0;
  int64_t rows = encoder.window_rows;
  int64_t channels = joint ? encoder.num_channels : 1;
  for (size_t stage = 0; stage < encoder.widths.size(); ++stage) {
    const int64_t in = (rows + encoder.kernel_sizes[stage] - 1) * channels;
    const int64_t out = rows * encoder.widths[stage] * kFloatBytes;
    saved += in * (bf16 ? 2 : kFloatBytes) + out;
    at_work = std::max(at_work, in * kFloatBytes + 2 * out);
    channels = encoder.widths[stage];
    rows /= 2;
  }
  return signals * (saved + at_work);
}

}  // namespace

sizing::TrainingShape training_shape(nn::CausalLm& model, bool adapter_dropout) {
  const at::Tensor& head = model.head().weight();
  sizing::TrainingShape shape{.layers = model.num_layers(),
                              .hidden = model.hidden_size(),
                              .vocab = model.vocab_size(),
                              .element_bytes = static_cast<int64_t>(head.element_size()),
                              .head_elements = head.numel(),
                              .trains_head = head.requires_grad(),
                              .tied_head = model.head_is_tied(),
                              .on_cpu = model.device().is_cpu()};
  for (const nn::Unit& unit : model.units())
    shape.units.push_back(
        {.parts = parts_of(unit), .packed_bytes = shape.on_cpu ? packed_bytes(unit) : 0});
  if (!shape.on_cpu) shape.unfolded_bytes = decoded_bytes(model);
  add_widths(model, adapter_dropout, shape);
  return shape;
}

int64_t memory_beside(nn::CausalLm& model, int replicas) {
  return model.device().is_cpu() ? beside(model.parameters(), replicas) : 0;
}

int64_t least_batch_tokens(const settings::TrainSettings& settings, const data::TokenDataset& rows,
                           const data::TokenDataset& evaluated) {
  const settings::TrainingSettings& train = settings.train;
  const bool evaluates =
      evaluated.num_rows() > 0 && (train.eval_strategy != "no" || train.final_eval);
  // A decoding step has one token of each answer.
  if (evaluates && train.generating_evaluation.predict_with_generate) return 1;
  int64_t least = train.packing ? settings.model.max_seq_len
                                : least_tokens_of(lengths_of(rows), train.batch_rows());
  if (evaluates)
    least =
        std::min(least, least_tokens_of(lengths_of(evaluated), train.rows_of_evaluation_batch()));
  return least;
}

sizing::MemoryQuestion memory_question(const settings::TrainSettings& settings, nn::CausalLm& model,
                                       const data::TokenDataset& rows,
                                       const data::TokenDataset& evaluated,
                                       const comm::RankEnvironment& environment) {
  sizing::MemoryQuestion question = question_of(settings, environment);
  question.shape = training_shape(model, settings.tuning.lora.dropout > 0);
  question.micro_batch_tokens = largest_micro_batch_tokens(settings, rows, environment.world);
  question.least_batch_tokens = least_batch_tokens(settings, rows, evaluated);
  question.program_bytes = memory_beside(model, environment.replicas);
  if (settings.task_facts().data == settings::TaskData::Rollouts) {
    question.micro_batch_tokens = tokens_of_texts(settings, rows, environment.world);
    question.least_batch_tokens = 1;  // a decoding step has one token of each text
    question.reference_bytes = bytes_of_reference(settings, model);
    question.drawing_bytes = bytes_of_drawing(settings, model, rows, environment.world);
    // The host's memory is shared with other programs, so there it is the engine that looks.
    if (!model.device().is_cpu())
      question.device_bytes = device::device_memory_bytes(model.device());
    if (settings.task_facts().has_teacher)
      question.loss_bytes =
          bytes_of_teacher_loss(question.shape.vocab, question.micro_batch_tokens);
    if (settings.has_teacher_in_memory())
      question.teacher_bytes = bytes_of_teacher(settings.distill, question.shape.element_bytes);
  }
  return question;
}

sizing::MemoryPlan classifier_memory(const settings::TrainSettings& settings,
                                     const nn::SignalClassifier& model,
                                     const comm::RankEnvironment& environment, bool bf16) {
  sizing::MemoryQuestion question = question_of(settings, environment);
  question.shape.on_cpu = model.device().is_cpu();
  question.shape.vocab = 1;  // a classifier has no vocabulary
  for (const nn::Unit& unit : model.units()) question.shape.units.push_back({parts_of(unit)});
  if (question.shape.on_cpu)
    question.program_bytes = beside(model.parameters(), environment.replicas);
  sizing::MemoryPlan plan = sizing::plan_memory(
      question,
      sizing::sharing_of(settings::strategy_for(settings.parallel.strategy, environment.world)));
  plan.activation_bytes =
      environment.replicas * settings.train.batch_rows() * window_bytes(model.spec(), bf16);
  return plan;
}

}  // namespace convoy::recipes

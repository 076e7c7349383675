// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/predicted_generation.h"

#include <algorithm>

#include "convoy/apps/recipes/bench/bench_model.h"
#include "convoy/apps/recipes/bench/measured_ops.h"
#include "convoy/apps/recipes/bench/predicted_model.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/apps/recipes/training/step_flops.h"
#include "convoy/core/base/error.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/machine/counting/counting_device.h"
#include "convoy/machine/device/dtype.h"

namespace convoy::recipes {
namespace {

using settings::BenchPredictFlags;

constexpr int64_t kTimedSteps = 9;
// Steps before the timed ones, in which CUDA graphs are recorded. After the timed steps, each op of
// one step without a graph is timed.
constexpr int64_t kStepsBefore = 4;
constexpr int64_t kMeasuredSteps = kStepsBefore + kTimedSteps + 1;

// Number of tokens of a row after the step.
int64_t row_tokens(const BenchPredictFlags& flags) {
  return flags.decode ? flags.context : flags.tokens;
}

int64_t new_tokens(const BenchPredictFlags& flags) { return flags.decode ? 1 : flags.tokens; }

// Number of blocks of a row, with the block that the scheduler keeps free for the next token.
int64_t blocks_of_row(int64_t tokens) {
  return (tokens + kernels::kBlockTokensStep - 1) / kernels::kBlockTokensStep + 1;
}

std::unique_ptr<nn::CausalLm> model_of(const architecture::DecoderSpec& spec,
                                       const BenchPredictFlags& flags, at::Device device,
                                       Values values) {
  const auto options = at::TensorOptions().dtype(device::parse_dtype(flags.dtype)).device(device);
  auto model = model_of_sizes(spec, options, values,
                              weight_coding(flags.quantization, flags.double_quant).format);
  model->join_projections();
  if (flags.weights != "model") quantize_linears(*model, flags.weights);
  return model;
}

// Runs an engine up to the counted step, then the step.
class StepOfGeneration {
 public:
  StepOfGeneration(nn::CausalLm& model, const text::Tokenizer& tokenizer,
                   const BenchPredictFlags& flags, int64_t steps, bool records)
      : flags_(flags),
        vocab_size_(model.vocab_size()),
        steps_(steps),
        engine_(model, tokenizer,
                {.max_rows = flags.rows,
                 .prefill_chunk = flags.rows * row_tokens(flags),
                 .kv_blocks = flags.rows * blocks_of_row(row_tokens(flags) + steps + 1),
                 .longest_row_tokens = row_tokens(flags) + steps + 1,
                 .kv_element = flags.kv_dtype == "int8" ? kernels::CacheElement::Int8
                                                        : kernels::CacheElement::Model,
                 .shares_prefixes = false,
                 .records_steps = records ? std::nullopt : std::optional(false)}) {}

  // Runs the steps before the counted one. A first pass makes tables for its positions, and the
  // first step after a prompt may differ from later ones. So one pass of each kind runs first: a
  // prompt, and a decode step if the context has room for it.
  void prepare() {
    if (flags_.prefill) {
      submit(flags_.tokens, 2);
      engine_.step();
      return repeat();
    }
    const int64_t before = flags_.context >= 3 ? 1 : 0;
    submit(flags_.context - 1 - before, 2 + before + steps_);
    for (int64_t step = 0; step <= before; ++step) engine_.step();
  }

  void run() {
    engine_.step();
    CONVOY_INVARIANT(engine_.figures().running == flags_.rows, "{} of {} rows were in the step",
                     engine_.figures().running, flags_.rows);
  }

  // Prepares the same step again. A decode step needs nothing: it continues one token further.
  void repeat() {
    if (!flags_.prefill) return;
    for (int64_t row = 0; row < flags_.rows; ++row) engine_.cancel(row);
    submit(flags_.tokens, 2);
  }

 private:
  void submit(int64_t prompt_tokens, int64_t max_new_tokens) {
    for (int64_t row = 0; row < flags_.rows; ++row) {
      std::vector<int32_t> prompt;
      for (int64_t token = 0; token < prompt_tokens; ++token)
        prompt.push_back(static_cast<int32_t>((row * 1009 + token * 31 + 7) % vocab_size_));
      engine_.submit({.number = row,
                      .prompt = std::move(prompt),
                      .sampling = {.temperature = flags_.temperature, .top_p = flags_.top_p},
                      .draw = {.row = row},
                      .max_new_tokens = max_new_tokens});
    }
  }

  BenchPredictFlags flags_;
  int64_t vocab_size_;
  int64_t steps_;
  generate::Engine engine_;
};

// FLOPs of the forward pass: a third of the FLOPs of a step that trains everything.
double least_flops(const architecture::DecoderSpec& spec, nn::CausalLm& model,
                   const BenchPredictFlags& flags) {
  sizing::ProductWeights weights;
  for (const nn::Linear* linear : model.block_linears())
    weights.blocks += linear->in_features() * linear->out_features();
  weights.trained_blocks = weights.blocks;
  weights.head = spec.vocab_size * spec.hidden_size;
  weights.trains_head = true;
  const sizing::AttentionShape attention = attention_shape(model);
  const auto forward = [&](int64_t tokens, int64_t drawn) {
    const std::vector<int64_t> rows(static_cast<size_t>(flags.rows), tokens);
    return sizing::step_flops(weights, attention, rows, drawn) / 3;
  };
  const double all = forward(row_tokens(flags), flags.rows);
  return flags.decode ? all - forward(flags.context - 1, 0) : all;
}

// Bytes if every weight is read once. If the embedding is not the head too, only its rows for the
// step's tokens count.
double least_weight_bytes(const architecture::DecoderSpec& spec, const BenchPredictFlags& flags,
                          double held_bytes) {
  if (spec.tied_head) return held_bytes;
  const auto row_bytes = static_cast<double>(
      spec.hidden_size * static_cast<int64_t>(c10::elementSize(device::parse_dtype(flags.dtype))));
  return held_bytes +
         row_bytes * static_cast<double>(flags.rows * new_tokens(flags) - spec.vocab_size);
}

// Bytes if each key and value that the rows see is read once; for a prefill, bytes of the keys and
// values that it stores. States count twice, because they are read and written.
double least_kv_bytes(const nn::CausalLm& model, const BenchPredictFlags& flags) {
  const nn::KvGeometry geometry = model.kv_geometry();
  const auto element =
      flags.kv_dtype == "int8" ? kernels::CacheElement::Int8 : kernels::CacheElement::Model;
  double bytes = static_cast<double>(2 * flags.rows * nn::state_bytes(geometry));
  for (int64_t layer = 0; layer < std::ssize(geometry.windows); ++layer) {
    const int64_t window = geometry.windows[static_cast<size_t>(layer)];
    if (window == nn::kHasState) continue;
    // A layer that stores no keys of its own reads the keys of another layer.
    if (!flags.decode && !geometry.stores_keys(layer)) continue;
    const nn::KvHeads heads = geometry.heads_of(layer);
    const kernels::PagedShape shape{
        .num_blocks = 1, .num_kv_heads = heads.num_kv_heads, .head_dim = heads.head_dim};
    const double token_bytes =
        static_cast<double>(kernels::paged_block_bytes(shape, geometry.options, element)) /
        static_cast<double>(shape.block_tokens);
    const int64_t seen =
        flags.decode && window > 0 ? std::min(window, flags.context) : row_tokens(flags);
    bytes += static_cast<double>(flags.rows * seen) * token_bytes;
  }
  return bytes;
}

nlohmann::ordered_json description(const BenchPredictFlags& flags) {
  return {{"step", flags.decode ? "decode" : "prefill"},
          {"rows", flags.rows},
          {flags.decode ? "context" : "tokens", row_tokens(flags)},
          {"dtype", flags.dtype},
          {"weights", flags.weights != "model" ? flags.weights : flags.quantization},
          {"kv_dtype", flags.kv_dtype}};
}

}  // namespace

CountedStep count_generation(const architecture::DecoderSpec& spec,
                             const BenchPredictFlags& flags) {
  install_counting_gpu();
  const auto model = model_of(spec, flags, counting::device(), Values::None);
  require_positions(*model, row_tokens(flags) + 1, flags.decode ? "context" : "tokens");
  counting::label_memory(counting::Content::Weights);
  const double weight_bytes = least_weight_bytes(
      spec, flags, static_cast<double>(counting::labelled_bytes(counting::Content::Weights)));
  const double kv_bytes = least_kv_bytes(*model, flags);
  CountedStep counted{
      .described = description(flags),
      .work = {},
      .flops = least_flops(spec, *model, flags),
      .least_bytes = weight_bytes + kv_bytes,
      .tokens = flags.rows * new_tokens(flags),
      .launching = flags.decode ? counting::Launching::AsAGraph : counting::Launching::OneByOne,
      .moved = {{"weight", counting::Content::Weights, weight_bytes},
                {"kv", counting::Content::KeysAndValues, kv_bytes},
                {"other", counting::Content::Other}}};
  const text::Tokenizer tokenizer = word_tokenizer(model->vocab_size());
  StepOfGeneration step(*model, tokenizer, flags, 1, false);
  counting::label_memory(counting::Content::KeysAndValues);
  step.prepare();
  counting::Recording recording;
  step.run();
  counted.work = recording.take();
  return counted;
}

MeasuredStep measure_generation(const architecture::DecoderSpec& spec,
                                const BenchPredictFlags& flags, at::Device device) {
  const auto model = model_of(spec, flags, device, Values::Random);
  require_positions(*model, row_tokens(flags) + kMeasuredSteps + 1,
                    flags.decode ? "context" : "tokens");
  const text::Tokenizer tokenizer = word_tokenizer(model->vocab_size());
  MeasuredStep measured;
  {
    StepOfGeneration step(*model, tokenizer, flags, kMeasuredSteps, true);
    step.prepare();
    const auto run = [&step] {
      step.run();
      step.repeat();
    };
    for (int64_t count = 0; count < kStepsBefore; ++count) run();
    measured.seconds = time_steps(device, kTimedSteps, run);
  }
  StepOfGeneration step(*model, tokenizer, flags, kMeasuredSteps, false);
  step.prepare();
  measured.seconds_by_op = measure_ops(device, [&step] { step.run(); });
  return measured;
}

}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_predict.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <chrono>

#include "convoy/apps/recipes/bench/bench_model.h"
#include "convoy/apps/recipes/bench/measured_ops.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/machine/counting/counting_device.h"
#include "convoy/machine/counting/predicted_time.h"
#include "convoy/machine/device/dtype.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/model/architecture/families/family.h"
#include "convoy/model/kernels/cuda/launch.h"
#include "convoy/model/kernels/ops/op_table.h"
#include "convoy/model/nn/decoder.h"
#include "convoy/model/sizing/step_flops.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;
using settings::BenchPredictFlags;

constexpr int64_t kTimedSteps = 9;
// Before them CUDA graphs are recorded; after them each op of one is timed.
constexpr int64_t kStepsBefore = 4;
constexpr int64_t kMeasuredSteps = kStepsBefore + kTimedSteps + 1;

// One row has this many tokens when the step is over.
int64_t row_tokens(const BenchPredictFlags& flags) {
  return flags.decode ? flags.context : flags.tokens;
}

int64_t new_tokens(const BenchPredictFlags& flags) { return flags.decode ? 1 : flags.tokens; }

BenchPredictFlags checked(BenchPredictFlags flags) {
  if (flags.model.empty() == flags.config.empty())
    throw ConfigError("bench predict takes the sizes of one model",
                      {.key = "model", .hint = "give --model D or --config CONFIG.json"});
  if (flags.decode == flags.prefill)
    throw ConfigError("bench predict predicts one kind of step",
                      {.key = "decode", .hint = "give --decode or --prefill"});
  require_one_format(flags.quantization, flags.double_quant, flags.weights);
  if (flags.rows == 0) flags.rows = flags.decode ? 16 : 1;
  return flags;
}

architecture::DecoderSpec spec_of(const BenchPredictFlags& flags) {
  if (flags.config.empty()) return families::read_decoder_spec(io::ModelFolder::open(flags.model));
  return families::read_decoder_spec(
      io::JsonReader(io::read_json_file(flags.config), flags.config));
}

// With the one that the scheduler keeps free for the next token.
int64_t blocks_of_row(int64_t tokens) {
  return (tokens + kernels::kBlockTokensStep - 1) / kernels::kBlockTokensStep + 1;
}

enum class Values { Random, None };

std::unique_ptr<nn::CausalLm> model_of(const architecture::DecoderSpec& spec,
                                       const BenchPredictFlags& flags, at::Device device,
                                       Values values) {
  const at::ScalarType dtype = device::parse_dtype(flags.dtype);
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  auto model =
      std::make_unique<nn::Decoder>(spec, [&](const architecture::ParameterDeclaration& declared) {
        at::Tensor parameter = at::empty(declared.shape, options);
        if (values == Values::Random)
          declared.shape.size() == 1 ? parameter.fill_(1) : parameter.normal_(0, 0.02);
        return parameter;
      });
  model->set_requires_grad(false);
  const auto format = weight_coding(flags.quantization, flags.double_quant).format;
  if (format && values == Values::Random) code_linears(*model, *format);
  if (format && values == Values::None)
    for (nn::Linear* linear : model->block_linears())
      linear->set_bitsandbytes(
          kernels::declare_bitsandbytes_weight(*format, linear->weight().sizes(), dtype, options));
  model->join_projections();
  if (flags.weights != "model") quantize_linears(*model, flags.weights);
  return model;
}

// The engine up to the step, and the step.
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

  // All that comes before. A first pass makes tables for its positions, and a first step after a
  // prompt may differ from those that follow it: so a pass of each kind has been before, of a
  // decode step where its context has room for one.
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

  // The same work again; of a decode step one token further.
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

// Forward alone: a third of a step that trains everything.
double least_flops(const architecture::DecoderSpec& spec, nn::CausalLm& model,
                   const BenchPredictFlags& flags) {
  sizing::ProductWeights weights;
  for (const nn::Linear* linear : model.block_linears())
    weights.blocks += linear->in_features() * linear->out_features();
  weights.trained_blocks = weights.blocks;
  weights.head = spec.vocab_size * spec.hidden_size;
  weights.trains_head = true;
  sizing::AttentionShape attention{.width = model.attention_width()};
  for (const architecture::LayerSpec& layer : spec.layers)
    attention.windows.push_back(layer.sliding_window);
  const auto forward = [&](int64_t tokens, int64_t drawn) {
    const std::vector<int64_t> rows(static_cast<size_t>(flags.rows), tokens);
    return sizing::step_flops(weights, attention, rows, drawn) / 3;
  };
  const double all = forward(row_tokens(flags), flags.rows);
  return flags.decode ? all - forward(flags.context - 1, 0) : all;
}

// Every weight once; of an embedding that is no head, the rows of the tokens.
double least_weight_bytes(const architecture::DecoderSpec& spec, const BenchPredictFlags& flags,
                          double held_bytes) {
  if (spec.tied_head) return held_bytes;
  const auto row_bytes = static_cast<double>(
      spec.hidden_size * static_cast<int64_t>(c10::elementSize(device::parse_dtype(flags.dtype))));
  return held_bytes +
         row_bytes * static_cast<double>(flags.rows * new_tokens(flags) - spec.vocab_size);
}

// Keys and values that the rows see, each once; of a prefill all that it stores.
double least_kv_bytes(const nn::CausalLm& model, const BenchPredictFlags& flags) {
  const nn::KvGeometry geometry = model.kv_geometry();
  const kernels::PagedShape shape{
      .num_blocks = 1, .num_kv_heads = geometry.num_kv_heads, .head_dim = geometry.head_dim};
  const auto element =
      flags.kv_dtype == "int8" ? kernels::CacheElement::Int8 : kernels::CacheElement::Model;
  const double token_bytes =
      static_cast<double>(kernels::paged_block_bytes(shape, geometry.options, element)) /
      static_cast<double>(shape.block_tokens);
  double tokens = 0;
  for (const int64_t window : geometry.windows) {
    const int64_t seen =
        flags.decode && window > 0 ? std::min(window, flags.context) : row_tokens(flags);
    tokens += static_cast<double>(flags.rows * seen);
  }
  return tokens * token_bytes;
}

struct CountedStep {
  std::vector<counting::Work> work;
  double flops = 0;
  double weight_bytes = 0;
  double kv_bytes = 0;
};

CountedStep count_step(const architecture::DecoderSpec& spec, const BenchPredictFlags& flags) {
  counting::install();
  kernels::use_cuda_ops_on_private_device();
  kernels::take_launches(&counting::count_launch);
  const auto model = model_of(spec, flags, counting::device(), Values::None);
  require_positions(*model, row_tokens(flags) + 1, flags.decode ? "context" : "tokens");
  counting::label_memory(counting::Content::Weights);
  CountedStep counted{
      .work = {},
      .flops = least_flops(spec, *model, flags),
      .weight_bytes = least_weight_bytes(
          spec, flags, static_cast<double>(counting::labelled_bytes(counting::Content::Weights))),
      .kv_bytes = least_kv_bytes(*model, flags)};
  const text::Tokenizer tokenizer = word_tokenizer(model->vocab_size());
  StepOfGeneration step(*model, tokenizer, flags, 1, false);
  counting::label_memory(counting::Content::KeysAndValues);
  step.prepare();
  counting::Recording recording;
  step.run();
  counted.work = recording.take();
  return counted;
}

Json ops_of(const counting::Prediction& predicted) {
  Json ops = Json::array();
  for (const counting::WorkTotal& total : predicted.totals)
    ops.push_back({{"op", total.name},
                   {"calls", total.calls},
                   {"launches", total.launches},
                   {"bytes", std::llround(total.bytes)},
                   {"device_ms", total.device_seconds * 1e3},
                   {"share", total.device_seconds / predicted.device_seconds}});
  return ops;
}

Json assumed_of(const counting::GpuSpeed& gpu) {
  const counting::Assumptions& assumed = counting::assumptions();
  return {{"gpu", gpu.words},
          {"tensor_tflops", gpu.tensor_flops / 1e12},
          {"fp32_tflops", gpu.fp32_flops / 1e12},
          {"terabytes_per_s", gpu.bytes / 1e12},
          {"bytes_share", assumed.bytes_share},
          {"product_share", assumed.product_share},
          {"attention_share", gpu.attention_share},
          {"kernel_us", assumed.kernel_seconds * 1e6},
          {"op_us", assumed.op_seconds * 1e6},
          {"more_launch_us", assumed.more_launch_seconds * 1e6},
          {"view_us", assumed.view_seconds * 1e6},
          {"copy_us", assumed.copy_seconds * 1e6},
          {"wait_us", assumed.wait_seconds * 1e6}};
}

Json report(const BenchPredictFlags& flags, const CountedStep& counted,
            const counting::GpuSpeed& gpu) {
  const counting::Prediction predicted = counting::predict(counted.work, gpu);
  const double peak = flags.dtype == "bf16" ? gpu.tensor_flops : gpu.fp32_flops;
  const double roofline =
      std::max((counted.weight_bytes + counted.kv_bytes) / gpu.bytes, counted.flops / peak);
  const auto bytes = [&](counting::Content content) {
    return std::llround(predicted.bytes[static_cast<size_t>(content)]);
  };
  return {{"tool", "convoy"},
          {"device", gpu.name},
          {"step", flags.decode ? "decode" : "prefill"},
          {"rows", flags.rows},
          {flags.decode ? "context" : "tokens", row_tokens(flags)},
          {"dtype", flags.dtype},
          {"weights", flags.weights != "model" ? flags.weights : flags.quantization},
          {"kv_dtype", flags.kv_dtype},
          {"launches", predicted.launches},
          {"uploads", predicted.uploads},
          {"downloads", predicted.downloads},
          {"host_waits", predicted.host_waits},
          {"host_ops", predicted.host_ops},
          {"weight_bytes", bytes(counting::Content::Weights)},
          {"least_weight_bytes", std::llround(counted.weight_bytes)},
          {"kv_bytes", bytes(counting::Content::KeysAndValues)},
          {"least_kv_bytes", std::llround(counted.kv_bytes)},
          {"other_bytes", bytes(counting::Content::Other)},
          {"flops", predicted.flops},
          {"least_flops", counted.flops},
          {"host_ms", predicted.host_seconds * 1e3},
          {"device_ms", predicted.device_seconds * 1e3},
          {"predicted_ms", predicted.seconds * 1e3},
          {"roofline_ms", roofline * 1e3},
          {"roofline_share", roofline / predicted.seconds},
          {"tokens_per_s", static_cast<double>(flags.rows * new_tokens(flags)) / predicted.seconds},
          {"ops", ops_of(predicted)},
          {"assumed", assumed_of(gpu)}};
}

}  // namespace

MeasuredStep measure_step(const BenchPredictFlags& given, at::Device device) {
  const BenchPredictFlags flags = checked(given);
  const auto model = model_of(spec_of(flags), flags, device, Values::Random);
  require_positions(*model, row_tokens(flags) + kMeasuredSteps + 1,
                    flags.decode ? "context" : "tokens");
  const text::Tokenizer tokenizer = word_tokenizer(model->vocab_size());
  const auto wait = [&] {
    if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(0);
  };
  MeasuredStep measured;
  {
    StepOfGeneration step(*model, tokenizer, flags, kMeasuredSteps, true);
    step.prepare();
    const auto run = [&](int64_t steps) {
      for (int64_t count = 0; count < steps; ++count) {
        step.run();
        step.repeat();
      }
      wait();
    };
    run(kStepsBefore);
    const auto start = std::chrono::steady_clock::now();
    run(kTimedSteps);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    measured.seconds = seconds / static_cast<double>(kTimedSteps);
  }
  StepOfGeneration step(*model, tokenizer, flags, kMeasuredSteps, false);
  step.prepare();
  wait();
  measured.seconds_by_op = measure_ops(device, [&step] { step.run(); });
  return measured;
}

nlohmann::ordered_json bench_predict(const BenchPredictFlags& given, const std::string& devices) {
  const BenchPredictFlags flags = checked(given);
  const counting::GpuSpeed& gpu = counting::gpu_speed(flags.device);
  const architecture::DecoderSpec spec = spec_of(flags);
  // Before the counting device is there: LibTorch takes pinned memory from it from then on.
  std::optional<MeasuredStep> measured;
  if (flags.measure && devices == "cuda")
    measured = measure_step(flags, device::take_rank_device(devices, 0).device);
  Json result = report(flags, count_step(spec, flags), gpu);
  if (!measured) return result;
  result["measured_ms"] = measured->seconds * 1e3;
  for (Json& op : result["ops"]) {
    const auto found = measured->seconds_by_op.find(op["op"]);
    if (found != measured->seconds_by_op.end()) op["measured_device_ms"] = found->second * 1e3;
  }
  return result;
}

}  // namespace convoy::recipes

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/bench/bench_generate.h"

#include <algorithm>
#include <chrono>

#include "convoy/apps/recipes/bench/bench_model.h"
#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/seconds_since.h"
#include "convoy/generate/engine/engine.h"
#include "convoy/machine/device/rank_device.h"
#include "convoy/machine/device/threads.h"

namespace convoy::recipes {
namespace {

using Json = nlohmann::ordered_json;

// The prompts of bench/peers/hf_generate.py.
std::vector<std::vector<int32_t>> make_prompts(int64_t rows, int64_t tokens, int64_t vocab_size) {
  std::vector<std::vector<int32_t>> prompts(static_cast<size_t>(rows));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t token = 0; token < tokens; ++token)
      prompts[static_cast<size_t>(row)].push_back(
          static_cast<int32_t>((row * 1009 + token * 31 + 7) % vocab_size));
  }
  return prompts;
}

// New tokens of a row, from a quarter of the maximum up, as in bench/peers/hf_generate.py.
int64_t wanted_tokens(int64_t row, int64_t most) {
  const int64_t least = most / 4;
  return least + (row * 7919 + 13) % (most - least + 1);
}

struct Kind {
  const char* name;
  generate::Sampling sampling;
};

Json time_point(nn::CausalLm& model, const text::Tokenizer& tokenizer, int64_t batch,
                const Kind& kind, const settings::BenchGenerateFlags& flags) {
  const int64_t rows = std::min(flags.prompts, 4 * batch);
  const auto prompts = make_prompts(rows, flags.prompt_tokens, model.vocab_size());
  std::vector<double> rates;
  int64_t tokens = 0;
  for (int64_t repeat = 0; repeat <= flags.repeats; ++repeat) {
    generate::Engine engine(
        model, tokenizer,
        {.max_rows = batch,
         .longest_row_tokens = flags.prompt_tokens + flags.new_tokens,
         .kv_element = flags.kv_dtype == "int8" ? kernels::CacheElement::Int8
                                                : kernels::CacheElement::Model});
    std::vector<generate::Request> requests;
    for (int64_t row = 0; row < rows; ++row)
      requests.push_back({.prompt = prompts[static_cast<size_t>(row)],
                          .sampling = kind.sampling,
                          .draw = {.row = row},
                          .max_new_tokens = wanted_tokens(row, flags.new_tokens)});
    const auto start = std::chrono::steady_clock::now();
    const auto completions = generate::answer_all(engine, std::move(requests));
    const double seconds = seconds_since(start);
    tokens = 0;
    for (const generate::Completion& completion : completions)
      tokens += static_cast<int64_t>(completion.token_ids.size());
    rates.push_back(static_cast<double>(tokens) / seconds);
  }
  rates.erase(rates.begin());  // the first run packs weights and grows buffers
  std::sort(rates.begin(), rates.end());
  return {{"batch", batch},
          {"sampling", kind.name},
          {"prompts", rows},
          {"tokens", tokens},
          {"tokens_per_s", rates[rates.size() / 2]},
          {"best", rates.back()}};
}

}  // namespace

nlohmann::ordered_json bench_generate(const settings::BenchFlags& common,
                                      const settings::BenchGenerateFlags& flags,
                                      const std::string& devices) {
  const at::Device device = device::take_rank_device(devices, 0).device;
  device::share_cpu_threads(1);
  require_one_format(flags.quantization, flags.double_quant, flags.weights);
  require_codes_of_activations(flags.activations, flags.weights, device);
  const std::unique_ptr<nn::CausalLm> model = bench_model(common, device);
  require_positions(*model, flags.prompt_tokens + flags.new_tokens, "prompt_tokens, new_tokens");
  model->set_requires_grad(false);
  model->join_projections();
  if (flags.weights != "model") quantize_linears(*model, flags.weights, flags.activations);
  if (const auto format = weight_coding(flags.quantization, flags.double_quant).format)
    code_linears(*model, *format);
  const text::Tokenizer tokenizer = word_tokenizer(model->vocab_size());
  const Kind kinds[] = {{"greedy", {.temperature = 0}},
                        {"top_p", {.temperature = flags.temperature, .top_p = flags.top_p}}};
  Json points = Json::array();
  for (const int64_t batch : flags.batches) {
    for (const Kind& kind : kinds)
      points.push_back(time_point(*model, tokenizer, batch, kind, flags));
  }
  Json result = {{"tool", "convoy"},
                 {"dtype", common.dtype},
                 {"geometry", common.geometry},
                 {"weights", flags.weights != "model" ? flags.weights : coding_text(*model)},
                 {"activations", flags.activations},
                 {"prompt_tokens", flags.prompt_tokens},
                 {"new_tokens", flags.new_tokens},
                 {"points", points}};
  result.update(bench_memory(device));
  return result;
}

}  // namespace convoy::recipes

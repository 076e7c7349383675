// SPDX-License-Identifier: Apache-2.0
#include "convoy/recipes/bench_train.h"

#include <chrono>

#include "convoy/adapters/lora_model.h"
#include "convoy/comm/group.h"
#include "convoy/device/placement.h"
#include "convoy/nn/head_loss.h"
#include "convoy/optim/adamw.h"
#include "convoy/optim/clip.h"
#include "convoy/parallel/strategy.h"
#include "convoy/parallel/trained_parameters.h"
#include "convoy/recipes/bench_model.h"
#include "convoy/train/token_batch.h"

namespace convoy::recipes {
namespace {

data::TokenDataset random_rows(const settings::BenchTrainFlags& flags, int64_t vocab_size) {
  std::vector<data::EncodedRow> rows(static_cast<size_t>(flags.batch));
  for (data::EncodedRow& row : rows) {
    const at::Tensor ids = at::randint(vocab_size, {flags.seq}, at::kInt);
    row.ids.assign(ids.const_data_ptr<int32_t>(), ids.const_data_ptr<int32_t>() + flags.seq);
    row.supervised.assign(row.ids.size(), 1);
    row.supervised[0] = 0;
  }
  return data::TokenDataset::from_rows(rows);
}

// Of the products of a step: forward, the gradient of the input, and where weights train theirs
// too. Causal attention sees half of the row on average; its backward costs twice its forward.
double flops_per_token(const nn::CausalLm& model, const settings::BenchTrainFlags& flags) {
  const double products_of_weights = flags.mode == "full" ? 3 : 2;
  const double attention = 3.0 * 2.0 * static_cast<double>(flags.seq) *
                           static_cast<double>(model.attention_width() * model.num_layers());
  return products_of_weights * 2.0 * static_cast<double>(model.matmul_parameters()) + attention;
}

}  // namespace

nlohmann::ordered_json bench_train(const settings::BenchFlags& common,
                                   const settings::BenchTrainFlags& flags,
                                   const std::string& devices) {
  const at::Device device = device::place_rank(devices, 0).device;
  const std::unique_ptr<nn::CausalLm> model = bench_model(common, device);
  require_positions(*model, flags.seq, "seq");
  std::optional<adapters::LoraModel> lora;
  std::vector<nn::NamedTensor> parameters;
  if (flags.mode != "full") {
    adapters::LoraConfig config;
    config.r = 16;
    config.alpha = 32;
    config.use_dora = flags.mode == "dora";
    lora = adapters::LoraModel::create(*model, config, 0);
    parameters = lora->parameters();
  } else {
    model->set_requires_grad(true);
    parameters = model->parameters();
  }
  const auto group = comm::join_group({}, std::chrono::seconds(60));
  const auto strategy = parallel::make_strategy({}, *group);
  optim::AdamW optimizer({.weight_decay = 0.01},
                         parallel::prepare_parameters(*strategy, *model, parameters));

  const data::TokenDataset dataset = random_rows(flags, model->vocab_size());
  std::vector<int64_t> rows(static_cast<size_t>(flags.batch));
  for (size_t row = 0; row < rows.size(); ++row) rows[row] = static_cast<int64_t>(row);
  std::vector<double> seconds;
  double loss = 0;
  for (int64_t step = 0; step <= flags.steps; ++step) {
    const auto start = std::chrono::steady_clock::now();
    const train::LabelledBatch batch = train::assemble_batch(dataset, rows, device);
    strategy->begin_micro_batch(parallel::MicroBatch::Last);
    const at::Tensor hidden_TD =
        model->hidden_states(batch.tokens, {.recompute_blocks = flags.recompute});
    const at::Tensor nll = nn::head_loss(*model, hidden_TD, batch.labels)
                               .div(static_cast<double>(batch.supervised_tokens()));
    nll.backward();
    strategy->finish_gradients();
    optimizer.step(1e-4, optim::clip_coefficient(
                             optim::global_norm(parallel::gradients_of(strategy->shards())), 1.0));
    strategy->finish_step();
    loss = nll.item<double>();
    seconds.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  seconds.erase(seconds.begin());  // the first step packs weights and grows buffers
  std::sort(seconds.begin(), seconds.end());
  const auto tokens = static_cast<double>(flags.batch * flags.seq);
  nlohmann::ordered_json result = {{"tool", "convoy"},
                                   {"mode", flags.mode},
                                   {"dtype", common.dtype},
                                   {"geometry", common.geometry},
                                   {"seq", flags.seq},
                                   {"batch", flags.batch},
                                   {"recompute", flags.recompute},
                                   {"tokens_per_s", tokens / seconds[seconds.size() / 2]},
                                   {"best", tokens / seconds.front()},
                                   {"flops_per_token", flops_per_token(*model, flags)},
                                   {"loss", loss}};
  result.update(bench_memory(device));
  return result;
}

}  // namespace convoy::recipes

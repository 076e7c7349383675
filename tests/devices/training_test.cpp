// SPDX-License-Identifier: Apache-2.0
//
// Trains models of every family on the simulated device, bit for bit as on the CPU with the same
// table of ops. A tensor on the wrong device, a missing wait or a read by the host fails the test.
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convoy/core/io/model_folder.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/kernels/registry/op_table.h"
#include "convoy/model/kernels/sum_of_squares/sum_of_squares.h"
#include "convoy/model/models/registry.h"
#include "convoy/model/nn/cache_test.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/loop/labelled_batch.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/optim/clip.h"
#include "convoy/train/parallel/strategy.h"
#include "convoy/train/parallel/trained_parameters.h"
#include "simulated_device/simulated_device.h"

namespace convoy {
namespace {

using Tensors = std::vector<at::Tensor>;

struct Case {
  std::string model;
  bool lora = false;
  bool dora = false;
  nn::Recompute recompute = nn::Recompute::Nothing;
  at::ScalarType dtype = at::kFloat;
  optim::StateFormat states = {};
  double noise_alpha = 0;
  bool offloads = false;

  std::string name() const {
    std::string text = model + (dora ? "_dora" : lora ? "_lora" : "_full");
    if (recompute == nn::Recompute::Blocks) text += "_recompute";
    if (recompute == nn::Recompute::Selective) text += "_selective";
    if (dtype == at::kBFloat16) text += "_bf16";
    if (states.moments != optim::MomentType::Fp32)
      text += "_states_" + optim::moment_type_name(states.moments);
    if (!states.has_masters) text += "_no_masters";
    if (states.is_paged) text += "_paged";
    if (noise_alpha > 0) text += "_noise";
    if (offloads) text += "_offload";
    std::replace(text.begin(), text.end(), '-', '_');
    return text;
  }
};

io::ModelFolder folder_of(const std::string& model) {
  const char* source = std::getenv("CONVOY_SOURCE_DIR");
  return io::ModelFolder::open(std::filesystem::path(source ? source : ".") /
                               "tests/golden/models" / model);
}

data::TokenDataset rows() {
  std::vector<data::EncodedRow> encoded;
  for (int32_t row = 0; row < 4; ++row) {
    data::EncodedRow one;
    for (int32_t token = 0; token < 7 + 5 * row; ++token) {
      one.ids.push_back(1 + (row * 11 + token * 7) % 37);
      one.supervised.push_back(token >= 3 ? 1 : 0);
    }
    encoded.push_back(std::move(one));
  }
  return data::TokenDataset::from_rows(encoded);
}

// The values after a few steps with two micro-batches each.
struct TrainedValues {
  std::vector<double> losses;
  std::vector<double> norms;
  Tensors parameters;  // copied to the CPU
  Tensors states;
};

class Training {
 public:
  Training(const Case& what, at::Device device)
      : what_(what), model_(models::load_causal_lm(folder_of(what.model), what.dtype, device)) {
    if (what.lora) {
      adapters::LoraConfig config;
      config.r = 4;
      config.alpha = 8;
      config.dropout = 0.1;
      config.use_dora = what.dora;
      lora_.emplace(adapters::LoraModel::create(*model_, config, 3));
      parameters_ = lora_->parameters();
    } else {
      model_->set_requires_grad(true);
      parameters_ = model_->parameters();
    }
    optimizer_.emplace(optim::AdamWConfig{.weight_decay = 0.1, .states = what.states, .seed = 9},
                       parallel::prepare_parameters(*strategy_, *model_, parameters_));
  }

  void step(uint64_t key) {
    at::Tensor nll = at::zeros({}, at::TensorOptions().dtype(at::kDouble).device(model_->device()));
    for (const bool last : {false, true}) {
      strategy_->begin_micro_batch(last ? parallel::MicroBatch::Last : parallel::MicroBatch::More);
      const train::LabelledBatch batch =
          train::assemble_batch(dataset_, last ? Rows{2, 3} : Rows{0, 1}, model_->device());
      const at::Tensor hidden_TD = model_->hidden_states(
          batch.tokens,
          {.recompute = what_.recompute,
           .kept_inputs = what_.offloads ? nn::KeptInputs::OnHost : nn::KeptInputs::OnDevice,
           .draw_key = 2 * key + last,
           .noise_alpha = what_.noise_alpha});
      const at::Tensor loss =
          kernels::linear_cross_entropy(hidden_TD, model_->head().weight(), batch.labels);
      loss.div(40.0).backward();
      nll.add_(loss.detach());
    }
    strategy_->finish_gradients();
    const at::Tensor squares = kernels::sum_of_squares(parallel::gradients_of(strategy_->shards()));
    const at::Tensor figures = at::stack({nll, squares}).cpu();
    trained_.losses.push_back(figures[0].item<double>());
    trained_.norms.push_back(std::sqrt(figures[1].item<double>()));
    optimizer_->step(1e-2, optim::clip_coefficient(trained_.norms.back(), 0.5));
    strategy_->finish_step();
    for (nn::Linear* linear : model_->block_linears()) linear->weight_changed();
    model_->head().weight_changed();
  }

  TrainedValues result() {
    for (const nn::NamedTensor& parameter : parameters_)
      trained_.parameters.push_back(parameter.value.detach().cpu());
    for (const optim::NamedState& state : optimizer_->state())
      trained_.states.push_back(state.value.detach().cpu());
    return trained_;
  }

 private:
  using Rows = std::vector<int64_t>;

  Case what_;
  std::unique_ptr<nn::CausalLm> model_;
  std::optional<adapters::LoraModel> lora_;
  std::vector<nn::NamedTensor> parameters_;
  std::unique_ptr<comm::Group> group_ = comm::join_group({}, std::chrono::seconds(1));
  std::unique_ptr<parallel::Strategy> strategy_ = parallel::make_strategy({}, *group_);
  std::optional<optim::AdamW> optimizer_;
  data::TokenDataset dataset_ = rows();
  TrainedValues trained_;
};

TrainedValues train(const Case& what, at::Device device) {
  Training training(what, device);
  for (uint64_t step = 0; step < 3; ++step) training.step(step);
  return training.result();
}

void expect_equal(const Tensors& found, const Tensors& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t index = 0; index < found.size(); ++index)
    EXPECT_TRUE(at::equal(found[index], wanted[index])) << index;
}

class OnTheDevice : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override { simulated::install(2); }
  void TearDown() override { EXPECT_TRUE(simulated::take_findings().empty()); }
};

TEST_P(OnTheDevice, TrainsToTheBitsOfTheCpu) {
  const TrainedValues found = train(GetParam(), simulated::device(1));
  const kernels::CpuTableOverride same_ops(kernels::aten_op_table());
  const TrainedValues wanted = train(GetParam(), at::kCPU);
  EXPECT_EQ(found.losses, wanted.losses);
  EXPECT_EQ(found.norms, wanted.norms);
  expect_equal(found.parameters, wanted.parameters);
  expect_equal(found.states, wanted.states);
  EXPECT_LT(found.losses.back(), found.losses.front());
}

TEST_P(OnTheDevice, AStepWaitsOnceForTheDevice) {
  Training training(GetParam(), simulated::device(0));
  training.step(0);  // creates tables and states
  simulated::reset_host_waits();
  training.step(1);
  const std::vector<simulated::HostWait> waits = simulated::host_waits();
  EXPECT_EQ(waits.size(), 1u);
  for (const simulated::HostWait& wait : waits)
    if (waits.size() > 1) ADD_FAILURE() << wait.kind << " in " << wait.origin;
}

constexpr optim::StateFormat kCodes = {
    .moments = optim::MomentType::Int8, .smallest_int8 = 64, .smallest_paged = 64};
constexpr optim::StateFormat kDrawn = {.moments = optim::MomentType::Bf16, .has_masters = false};
constexpr optim::StateFormat kPaged = {.is_paged = true, .smallest_paged = 64};
constexpr optim::StateFormat kPagedCodes = {.moments = optim::MomentType::Int8,
                                            .is_paged = true,
                                            .smallest_int8 = 64,
                                            .smallest_paged = 64};

INSTANTIATE_TEST_SUITE_P(
    All, OnTheDevice,
    ::testing::Values(
        Case{.model = "llama"}, Case{.model = "qwen2", .lora = true},
        Case{.model = "qwen2-window", .lora = true, .recompute = nn::Recompute::Blocks},
        Case{.model = "qwen3", .recompute = nn::Recompute::Selective},
        Case{.model = "gemma3", .lora = true, .dora = true},
        Case{.model = "gemma3", .dtype = at::kBFloat16},
        Case{.model = "mistral", .recompute = nn::Recompute::Blocks},
        Case{.model = "smollm3-window", .lora = true, .recompute = nn::Recompute::Blocks},
        Case{.model = "llama", .states = kCodes},
        Case{.model = "llama", .dtype = at::kBFloat16, .states = kDrawn},
        Case{.model = "llama", .states = kPaged},
        Case{.model = "qwen2", .lora = true, .states = kPagedCodes},
        Case{.model = "qwen3", .lora = true, .noise_alpha = 5},
        Case{.model = "llama", .recompute = nn::Recompute::Blocks, .offloads = true}),
    [](const auto& tested) { return tested.param.name(); });

// The inputs that blocks keep for backward take no memory of the device if they are kept on the
// host.
TEST(OffloadedInputs, TakeTheirMemoryFromTheDevice) {
  simulated::install(2);
  const auto kept_bytes = [](nn::KeptInputs kept) {
    const auto model = models::load_causal_lm(folder_of("llama"), at::kFloat, simulated::device(0));
    model->set_requires_grad(true);
    const train::LabelledBatch batch =
        train::assemble_batch(rows(), {0, 1, 2, 3}, simulated::device(0));
    const size_t before = simulated::memory(0).live_bytes;
    const at::Tensor hidden_TD = model->hidden_states(
        batch.tokens, {.recompute = nn::Recompute::Blocks, .kept_inputs = kept});
    const size_t kept_now = simulated::memory(0).live_bytes - before;
    hidden_TD.sum().backward();
    return std::pair(kept_now, model->num_layers() * hidden_TD.nbytes());
  };
  const auto [with_all, inputs_bytes] = kept_bytes(nn::KeptInputs::OnDevice);
  const auto [without, same_bytes] = kept_bytes(nn::KeptInputs::OnHost);
  EXPECT_EQ(with_all - without, inputs_bytes);
  EXPECT_TRUE(simulated::take_findings().empty());
}

// The device holds the moments of only one parameter at a time.
TEST(PagedMoments, LieOnTheHostBetweenSteps) {
  simulated::install(2);
  constexpr int64_t kNumel = 1000;
  std::vector<optim::OptimizedParameter> parameters;
  for (const char* name : {"a", "b", "c"})
    parameters.push_back({.name = name,
                          .value = at::ones({kNumel}, simulated::device(0)),
                          .gradient = at::ones({kNumel}, simulated::device(0))});
  const size_t before = simulated::memory(0).live_bytes;
  optim::AdamW optimizer({.states = kPaged}, parameters);
  EXPECT_EQ(simulated::memory(0).live_bytes, before);
  simulated::reset_peak(0);
  optimizer.step(1e-2);
  EXPECT_LE(simulated::memory(0).live_bytes, before + 64);
  EXPECT_LT(simulated::memory(0).peak_bytes, before + 3 * 2 * kNumel * sizeof(float));
  for (const optim::NamedState& state : optimizer.state()) EXPECT_TRUE(state.value.is_cpu());
  EXPECT_TRUE(simulated::take_findings().empty());
}

// Shows that the simulated device finds the fault that the tests above look for.
TEST(PlantedFault, ABatchLeftOnTheHostIsFound) {
  simulated::install(2);
  const auto model = models::load_causal_lm(folder_of("llama"), at::kFloat, simulated::device(0));
  const train::LabelledBatch on_host = train::assemble_batch(rows(), {0, 1}, at::kCPU);
  EXPECT_THROW(model->hidden_states(on_host.tokens, {}), c10::Error);
  const train::LabelledBatch elsewhere =
      train::assemble_batch(rows(), {0, 1}, simulated::device(1));
  EXPECT_THROW(model->hidden_states(elsewhere.tokens, {}), c10::Error);
}

TEST(PlantedFaultDeathTest, AReadByTheHostIsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  simulated::install(2);
  const auto model = models::load_causal_lm(folder_of("llama"), at::kFloat, simulated::device(0));
  const at::Tensor weight = model->parameters().front().value;
  EXPECT_DEATH(std::printf("%f", weight.const_data_ptr<float>()[0]), "memory of|block of");
}

TEST(PlantedFault, AWaitThatIsMissingIsFound) {
  simulated::install(2);
  const auto model = models::load_causal_lm(folder_of("llama"), at::kFloat, simulated::device(0));
  const train::LabelledBatch batch = train::assemble_batch(rows(), {0, 1}, simulated::device(0));
  const at::Tensor hidden_TD = model->hidden_states(batch.tokens, {});
  const c10::impl::VirtualGuardImpl guard(simulated::device(0).type());
  const c10::Stream before = guard.exchangeStream(guard.getNewStream(simulated::device(0)));
  EXPECT_THROW(hidden_TD.detach().mul(2), c10::Error);  // on a stream that has not waited
  guard.exchangeStream(before);
  EXPECT_NO_THROW(hidden_TD.detach().mul(2));
}

// Returns the greedy tokens of two rows with prompts of different lengths, computed with the cache.
std::vector<int64_t> greedy(const std::string& name, at::Device device) {
  const at::NoGradGuard no_grad;
  const auto model = models::load_causal_lm(folder_of(name), at::kFloat, device);
  testing::GrowingCache cache(*model, 2);
  std::vector<int64_t> tokens;
  std::vector<std::vector<int64_t>> pending = {{1, 5, 9, 2, 7}, {3, 4}};
  for (int64_t step = 0; step < 8; ++step) {
    std::vector<int64_t> ids, positions, starts = {0}, last;
    for (size_t row = 0; row < pending.size(); ++row) {
      for (size_t at = 0; at < pending[row].size(); ++at)
        positions.push_back(cache.length(static_cast<int64_t>(row)) + static_cast<int64_t>(at));
      ids.insert(ids.end(), pending[row].begin(), pending[row].end());
      starts.push_back(static_cast<int64_t>(ids.size()));
      last.push_back(starts.back() - 1);
    }
    const nn::TokenBatch batch(ids, positions, starts, device);
    cache.grow({{0, batch.rows().length(0)}, {1, batch.rows().length(1)}});
    const at::Tensor hidden_TD = model->hidden_states(batch, {.cache = cache.cache()});
    const at::Tensor picked =
        model->head().forward(hidden_TD).argmax(1).cpu().index_select(0, at::tensor(last));
    for (size_t row = 0; row < pending.size(); ++row) {
      tokens.push_back(picked[static_cast<int64_t>(row)].item<int64_t>());
      pending[row] = {tokens.back()};
    }
  }
  return tokens;
}

TEST(Generation, OnTheDeviceIsThatOfTheCpu) {
  simulated::install(2);
  for (const char* name : {"llama", "qwen2-window", "gemma3", "mistral", "smollm3-window"})
    EXPECT_EQ(greedy(name, simulated::device(1)), greedy(name, at::kCPU)) << name;
}

}  // namespace
}  // namespace convoy

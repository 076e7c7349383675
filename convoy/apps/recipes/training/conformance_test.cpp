// SPDX-License-Identifier: Apache-2.0
//
// Compares every strategy, on 1 to 4 ranks, for a whole model, LoRA and DoRA, in fp32 and bf16,
// with and without accumulation, with one process: losses and weights must be equal, and bit-equal
// on repetition. A deliberately wrong strategy shows that the comparison detects errors.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "convoy/apps/recipes/training/train_stamp.h"
#include "convoy/model/adapters/lora_model.h"
#include "convoy/model/nn/decoder.h"
#include "convoy/model/nn/head_loss.h"
#include "convoy/train/checkpoint/checkpoint.h"
#include "convoy/train/comm/exchange.h"
#include "convoy/train/comm/group.h"
#include "convoy/train/optim/adamw.h"
#include "convoy/train/parallel/dp/replica_threads.h"
#include "convoy/train/parallel/strategy.h"
#include "convoy/train/parallel/trained_parameters.h"
#include "files/temporary_folder.h"

namespace convoy::recipes {
namespace {

constexpr int64_t kVocab = 61;
constexpr int64_t kConformanceRows = 12;
constexpr int64_t kSteps = 3;

enum class Mode { Full, Lora, Dora };

struct Case {
  std::string strategy;
  int ranks = 1;
  Mode mode = Mode::Full;
  at::ScalarType dtype = at::kFloat;
  int64_t grad_accum = 1;
  // Layers that differ, as Gemma 4's, recomputed in backward: keys and values of one layer are read
  // by another, and every block has an input of its own.
  bool layers_differ = false;

  std::string text() const {
    return fmt::format("{} on {} ranks, mode {}, {}, accumulation {}", strategy, ranks,
                       static_cast<int>(mode), c10::toString(dtype), grad_accum);
  }
};

void let_layers_differ(architecture::DecoderSpec& spec) {
  spec.query_key_norm = spec.value_norm = spec.layer_scalars = true;
  spec.attention_gate = false;
  spec.norms = architecture::kNormsAround;
  // Norms of so few features divide by values that nearly cancel. A small epsilon would let the
  // order of sums change what AdamW makes of the smallest gradients.
  spec.norm_epsilon = 1e-2;
  spec.ropes = {architecture::RopeSpec{}, architecture::RopeSpec{.theta = 100.0}};
  spec.layers = {{.rope = 1, .sliding_window = 4},
                 {.head_dim = 12, .num_kv_heads = 1, .keys_are_values = true},
                 {.ffn_size = 56, .keys_of = 0, .rope = 1, .sliding_window = 4},
                 {.head_dim = 12, .num_kv_heads = 1, .keys_of = 1}};
  spec.layer_inputs = {.width = 6, .vocab_size = kVocab};
}

std::unique_ptr<nn::CausalLm> make_model(at::ScalarType dtype, bool layers_differ) {
  architecture::DecoderSpec spec;
  spec.family = "qwen2";
  spec.vocab_size = kVocab;
  spec.hidden_size = 32;
  spec.ffn_size = 48;
  spec.num_heads = 4;
  spec.num_kv_heads = 2;
  spec.head_dim = 8;
  spec.max_positions = 64;
  spec.qkv_bias = true;
  spec.tied_head = true;
  spec.attention_scale = 1 / std::sqrt(8.0);
  spec.ropes = {architecture::RopeSpec{}};
  spec.layers = {architecture::LayerSpec{},
                 architecture::LayerSpec{.mixer = architecture::TokenMixer::GatedDeltaNet}};
  spec.attention_gate = true;
  spec.delta_net = {.num_key_heads = 2,
                    .num_value_heads = 4,
                    .key_head_dim = 6,
                    .value_head_dim = 5,
                    .conv_width = 3};
  if (layers_differ) let_layers_differ(spec);
  at::manual_seed(3);
  return std::make_unique<nn::Decoder>(
      spec, [&](const architecture::ParameterDeclaration& declared) {
        if (declared.name.ends_with("layer_scalar")) return at::full(declared.shape, 0.5, dtype);
        return declared.name.ends_with("norm.weight")
                   ? at::ones(declared.shape, dtype)
                   : at::randn(declared.shape, at::kFloat).mul_(0.2).to(dtype);
      });
}

// A model with what trains in it. Made before the ranks: they share LibTorch's generator.
struct Trained {
  explicit Trained(const Case& one) : model(make_model(one.dtype, one.layers_differ)) {
    if (one.mode == Mode::Full) {
      model->set_requires_grad(true);
      parameters = model->parameters();
      return;
    }
    adapters::LoraConfig config;
    config.r = 3;
    config.alpha = 6;
    config.use_dora = one.mode == Mode::Dora;
    lora = adapters::LoraModel::create(*model, config, 1);
    parameters = lora->parameters();
  }
  std::unique_ptr<nn::CausalLm> model;
  std::optional<adapters::LoraModel> lora;
  std::vector<nn::NamedTensor> parameters;
};

// Row `row` of step `step`: 3 to 8 tokens.
std::vector<int64_t> tokens_of(int64_t step, int64_t row) {
  std::vector<int64_t> tokens;
  for (int64_t token = 0; token < 3 + (7 * row + step) % 6; ++token)
    tokens.push_back((row * 17 + token * 29 + step * 5 + token * row) % kVocab);
  return tokens;
}

double supervised_tokens(int64_t step) {
  int64_t count = 0;
  for (int64_t row = 0; row < kConformanceRows; ++row)
    count += std::ssize(tokens_of(step, row)) - 1;
  return static_cast<double>(count);
}

// The sum of the losses of every `stride`-th row from `first` on.
at::Tensor loss_of(nn::CausalLm& model, int64_t step, int64_t first, int64_t stride,
                   nn::Recompute recompute) {
  std::vector<int64_t> ids, positions, starts = {0}, labels;
  for (int64_t row = first; row < kConformanceRows; row += stride) {
    const std::vector<int64_t> tokens = tokens_of(step, row);
    for (size_t at = 0; at < tokens.size(); ++at) {
      ids.push_back(tokens[at]);
      positions.push_back(static_cast<int64_t>(at));
      labels.push_back(at + 1 < tokens.size() ? tokens[at + 1] : kernels::kIgnoredLabel);
    }
    starts.push_back(std::ssize(ids));
  }
  const nn::TokenBatch batch(ids, positions, starts);
  return nn::head_loss(model, model.hidden_states(batch, {.recompute = recompute}),
                       kernels::LabelledTokens(labels));
}

using Values = std::map<std::string, at::Tensor>;

struct Outcome {
  std::vector<double> losses;
  Values values;
};

// The work of one rank. `spoil` may change the gradients that the optimizer reads.
class Rank {
 public:
  using Spoil = std::function<void(const std::vector<parallel::ParameterShard>&)>;

  Rank(const Case& one, Trained& trained, comm::Group& group, Spoil spoil = {})
      : one_(one), trained_(trained), group_(group), spoil_(std::move(spoil)) {
    settings::ParallelSettings settings;
    settings.strategy = one.strategy;
    settings.keep_whole_below = 0;
    strategy = parallel::make_strategy(settings, group);
    optimizer.emplace(optim::AdamWConfig{.epsilon = 1e-3, .weight_decay = 0.1},
                      parallel::prepare_parameters(*strategy, *trained.model, trained.parameters));
  }

  double step(int64_t number) {
    double own = 0;
    for (int64_t micro = 0; micro < one_.grad_accum; ++micro) {
      strategy->begin_micro_batch(micro + 1 == one_.grad_accum ? parallel::MicroBatch::Last
                                                               : parallel::MicroBatch::More);
      const at::Tensor loss =
          loss_of(*trained_.model, number, micro * group_.size() + group_.rank(),
                  one_.grad_accum * group_.size(),
                  one_.layers_differ ? nn::Recompute::Blocks : nn::Recompute::Nothing)
              .div(supervised_tokens(number));
      loss.backward();
      own += loss.item<double>();
    }
    strategy->finish_gradients();
    if (spoil_) spoil_(strategy->shards());
    optimizer->step(0.01);
    strategy->finish_step();
    double sum = 0;
    for (const double loss : comm::exchange(group_, own)) sum += loss;
    return sum;
  }

  Values values() {
    Values values;
    const at::NoGradGuard no_grad;
    const std::vector<nn::Unit> units = trained_.model->units();
    for (size_t index = 0; index < units.size(); ++index) {
      const nn::UnitUse use(strategy->residency(), index);
      for (const nn::NamedTensor& parameter : units[index].trained)
        values[parameter.name] = parameter.value.detach().to(at::kFloat, false, /*copy=*/true);
    }
    return values;
  }

  std::unique_ptr<parallel::Strategy> strategy;
  std::optional<optim::AdamW> optimizer;

 private:
  const Case& one_;
  Trained& trained_;
  comm::Group& group_;
  Spoil spoil_;
};

// Runs `body` on as many threads as there are ranks, each with a model of its own.
void on_ranks(const Case& one,
              const std::function<void(Trained& trained, comm::Group& group)>& body) {
  std::vector<std::unique_ptr<Trained>> models;
  for (int rank = 0; rank < one.ranks; ++rank) models.push_back(std::make_unique<Trained>(one));
  telemetry::FlightWriter flight;
  parallel::run_replicas(
      {}, one.ranks, flight, [&](const std::shared_ptr<comm::StoreBarrier>& store_barrier) {
        const auto group = comm::join_group_at(store_barrier, std::chrono::seconds(300));
        try {
          body(*models[static_cast<size_t>(store_barrier->rank())], *group);
        } catch (...) {
          group->abort();
          throw;
        }
      });
}

Outcome train(const Case& one, const Rank::Spoil& spoil = {}) {
  Outcome outcome;
  on_ranks(one, [&](Trained& trained, comm::Group& group) {
    Rank rank(one, trained, group, spoil);
    std::vector<double> losses;
    for (int64_t step = 0; step < kSteps; ++step) losses.push_back(rank.step(step));
    const Values values = rank.values();  // collective
    if (group.rank() == 0) outcome = {losses, values};
  });
  return outcome;
}

Outcome alone(Case one) {
  one.strategy = "none";
  one.ranks = 1;
  return train(one);
}

// The largest difference between two outcomes, in units of what may differ.
double distance(const Outcome& found, const Outcome& wanted, at::ScalarType dtype) {
  const double tolerance = dtype == at::kFloat ? 3e-5 : 3e-2;
  double largest = 0;
  for (size_t step = 0; step < wanted.losses.size(); ++step)
    largest = std::max(largest, std::abs(found.losses.at(step) - wanted.losses[step]) / tolerance);
  for (const auto& [name, value] : wanted.values)
    largest =
        std::max(largest, (found.values.at(name) - value).abs().max().item<double>() / tolerance);
  return largest;
}

class Conformance : public ::testing::TestWithParam<const char*> {};

TEST_P(Conformance, EqualsOneProcessAndRepeats) {
  for (const Mode mode : {Mode::Full, Mode::Lora, Mode::Dora})
    for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16})
      for (const int64_t grad_accum : {1, 3}) {
        Case one{GetParam(), 1, mode, dtype, grad_accum};
        const Outcome wanted = alone(one);
        for (one.ranks = 1; one.ranks <= 4; ++one.ranks) {
          const Outcome found = train(one);
          EXPECT_LT(distance(found, wanted, dtype), 1) << one.text();
          const Outcome again = train(one);
          EXPECT_EQ(again.losses, found.losses) << one.text();
          for (const auto& [name, value] : found.values)
            EXPECT_TRUE(again.values.at(name).equal(value)) << name << ": " << one.text();
        }
      }
}

TEST_P(Conformance, OfLayersThatDifferEqualsOneProcess) {
  for (const Mode mode : {Mode::Full, Mode::Lora}) {
    const Case one{.strategy = GetParam(), .ranks = 2, .mode = mode, .layers_differ = true};
    const Outcome wanted = alone(one);
    EXPECT_LT(distance(train(one), wanted, at::kFloat), 1) << one.text();
    for (const auto& [name, value] : wanted.values)
      EXPECT_TRUE(!name.ends_with("layer_scalar") || value.equal(at::full({1}, 0.5))) << name;
  }
}

TEST_P(Conformance, TellsAWrongDivisor) {
  const Case one{GetParam(), 2};
  const Outcome found = train(one, [](const std::vector<parallel::ParameterShard>& shards) {
    for (const parallel::ParameterShard& shard : shards) at::Tensor(shard.gradient).div_(2);
  });
  EXPECT_GT(distance(found, alone(one), at::kFloat), 1);
}

TEST_P(Conformance, TellsASkippedBucket) {
  const Case one{GetParam(), 2};
  const Outcome found = train(one, [](const std::vector<parallel::ParameterShard>& shards) {
    at::Tensor(shards.back().gradient).zero_();
  });
  EXPECT_GT(distance(found, alone(one), at::kFloat), 1);
}

// Two steps on N ranks, a checkpoint, and the third step on M.
TEST_P(Conformance, SavedAtAnyNumberOfRanksLoadsAtAnyOther) {
  const testing::TemporaryFolder folder;
  for (const Mode mode : {Mode::Full, Mode::Dora}) {
    Case one{GetParam(), 1, mode};
    const Outcome wanted = alone(one);
    for (int saved = 1; saved <= 4; ++saved) {
      one.ranks = saved;
      const std::filesystem::path root = folder / fmt::format("{}-{}", one.ranks, int(mode));
      on_ranks(one, [&](Trained& trained, comm::Group& group) {
        Rank rank(one, trained, group);
        for (int64_t step = 0; step + 1 < kSteps; ++step) rank.step(step);
        checkpoint::CheckpointStore store(root, 1);
        if (group.rank() == 0) store.prepare();
        group.barrier();
        checkpoint::TrainState state;
        state.progress.step = kSteps - 1;
        checkpoint::TrainTensors tensors;
        std::vector<checkpoint::Piece>& values = tensors.pieces["model"];
        std::vector<checkpoint::Piece>& states = tensors.pieces["optimizer"];
        const std::vector<parallel::ParameterShard>& shards = rank.strategy->shards();
        // If every rank has whole tensors, rank 0 alone writes them.
        if (rank.strategy->num_owners() < group.size() || group.rank() == 0) {
          for (const parallel::ParameterShard& shard : shards)
            values.push_back({shard.name, shard.shape, shard.begin, shard.value.view({-1})});
          for (const optim::NamedState& one_state : rank.optimizer->state()) {
            const parallel::ParameterShard& shard = shards[one_state.parameter];
            states.push_back(
                {one_state.name, shard.shape, shard.begin, one_state.value.view({-1})});
          }
        }
        store.start_save_together(group, std::move(state), std::move(tensors), false)->wait();
        group.barrier();
      });
      for (one.ranks = 1; one.ranks <= 4; ++one.ranks) {
        Outcome found;
        on_ranks(one, [&](Trained& trained, comm::Group& group) {
          Rank rank(one, trained, group);
          const std::filesystem::path step = root / "last";
          const std::vector<parallel::ParameterShard>& shards = rank.strategy->shards();
          restore_shards(shards, {step, "model"});
          rank.strategy->finish_step();
          rank.optimizer->load_state(kSteps - 1,
                                     saved_state({step, "optimizer"}, *rank.optimizer, shards));
          const double loss = rank.step(kSteps - 1);
          const Values values = rank.values();
          if (group.rank() == 0) found = {{loss}, values};
        });
        EXPECT_LT(distance(found, {{wanted.losses.back()}, wanted.values}, at::kFloat), 1)
            << "saved by " << saved << ", loaded by " << one.ranks;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, Conformance,
                         ::testing::Values("ddp", "zero1", "zero2", "zero3"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace convoy::recipes

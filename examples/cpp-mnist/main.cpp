// SPDX-License-Identifier: Apache-2.0
//
// A convolutional network learns MNIST's digits on any number of ranks, goes on where it was stopped and is tested on all of
// them: the program that pytorch/examples/cpp/distributed writes with MPI.
//   convoy launch --ranks 2 -- cpp_mnist DATA_FOLDER [EPOCHS [STEPS_PER_EPOCH]]
// DATA_FOLDER holds train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte.
#include <convoy/convoy.h>
#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

using torch::data::datasets::MNIST;

struct DigitsImpl : torch::nn::Module {
  DigitsImpl() {
    first = register_module("first", torch::nn::Conv2d(1, 10, 5));
    second = register_module("second", torch::nn::Conv2d(10, 20, 5));
    hidden = register_module("hidden", torch::nn::Linear(320, 50));
    last = register_module("last", torch::nn::Linear(50, 10));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::relu(torch::max_pool2d(first(x), 2));
    x = torch::relu(torch::max_pool2d(torch::dropout(second(x), 0.2, is_training()), 2));
    x = torch::relu(hidden(x.flatten(1)));
    return last(x);
  }
  torch::nn::Conv2d first{nullptr}, second{nullptr};
  torch::nn::Linear hidden{nullptr}, last{nullptr};
};
TORCH_MODULE(Digits);

auto digits_in(const std::string& folder, MNIST::Mode mode) {
  return MNIST(folder, mode)
      .map(torch::data::transforms::Normalize<>(0.1307, 0.3081))
      .map(torch::data::transforms::Stack<>());
}

// The accuracy over all digits. Each rank looks at its share of them.
double accuracy(convoy::ProcessGroup& group, convoy::DistributedDataParallel<Digits>& model,
                const std::string& folder) {
  auto digits = digits_in(folder, MNIST::Mode::kTest);
  const convoy::DistributedSampler sampler(digits.size().value(), group,
                                           {.shuffle = false, .drop_last = true});
  const auto loader = torch::data::make_data_loader(digits, sampler, 1000);
  const torch::NoGradGuard no_grad;
  model.eval();
  auto right_and_all = torch::zeros({2});
  for (const auto& batch : *loader) {
    right_and_all[0] += (model(batch.data).argmax(1) == batch.target).sum();
    right_and_all[1] += batch.target.size(0);
  }
  group.all_reduce(right_and_all);
  return (right_and_all[0] / right_and_all[1]).item<double>();
}

void train(const std::string& folder, int epochs, size_t steps_per_epoch) {
  const auto group = convoy::init();
  auto digits = digits_in(folder, MNIST::Mode::kTrain);
  convoy::DistributedSampler sampler(digits.size().value(), *group);
  const auto loader = torch::data::make_data_loader(digits, sampler, 64 / group->size());

  convoy::DistributedDataParallel model(Digits(), group);
  torch::optim::SGD optimizer(model.parameters(), torch::optim::SGDOptions(0.01).momentum(0.5));
  convoy::CheckpointFolder checkpoints("mnist-checkpoints", group);
  const auto resumed = checkpoints.load(model, optimizer);
  torch::manual_seed(group->rank());  // each rank drops out other units
  for (int epoch = resumed ? static_cast<int>(resumed->step) : 0; epoch < epochs; ++epoch) {
    sampler.set_epoch(epoch);
    model.train();
    const auto start = std::chrono::steady_clock::now();
    size_t step = 0;
    auto loss_sum = torch::zeros({});
    for (const auto& batch : *loader) {
      if (step == steps_per_epoch) break;
      ++step;
      optimizer.zero_grad();
      const auto loss = torch::cross_entropy_loss(model(batch.data), batch.target);
      loss.backward();
      optimizer.step();
      loss_sum += loss.detach();
    }
    auto mean_loss =
        group->start_all_reduce(loss_sum / static_cast<double>(step), convoy::Reduce::Mean);
    const std::chrono::duration<double> own = std::chrono::steady_clock::now() - start;
    auto slowest = torch::full({}, own.count());
    group->all_reduce(slowest, convoy::Reduce::Max);
    checkpoints.save(epoch + 1, model, optimizer);
    const double right = accuracy(*group, model, folder);
    const float loss = mean_loss.wait().item<float>();
    if (group->is_leader())
      std::printf(
          "epoch %d: %.1f %% of the test digits right, loss %.3f, %.1f s on the slowest rank\n",
          epoch + 1, 100 * right, loss, slowest.item<float>());
  }
  if (group->is_leader()) checkpoints.export_model("mnist.safetensors");
}

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: cpp_mnist DATA_FOLDER [EPOCHS [STEPS_PER_EPOCH]]\n");
    return 2;
  }
  return convoy::run_rank([&] {
    train(argv[1], argc > 2 ? std::atoi(argv[2]) : 10,
          argc > 3 ? std::strtoull(argv[3], nullptr, 10) : SIZE_MAX);
  });
}

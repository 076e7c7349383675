// SPDX-License-Identifier: Apache-2.0
//
// Flags that the sweeps of several workloads have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::experiments {

// The words of a cell's parameter, followed by "auto". With "auto" the plan chooses a word.
inline std::vector<std::string> words_or_auto(std::vector<std::string> words) {
  words.emplace_back("auto");
  return words;
}

struct SeedFlags {
  int64_t num_seeds = 8;
  std::vector<int64_t> seeds;
  double target_standard_error = 0;
  std::string config;
  std::string figures_dir;
  std::string checkpoint_dir;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("num_seeds", num_seeds, "seeds 0 to N - 1").at_least(1);
    visit("seeds", seeds, "these seeds, in place of --num-seeds");
    visit("target_standard_error", target_standard_error,
          "a cell ends at this standard error of its mean; 0 = off")
        .at_least(0);
    visit("config", config, "JSON or YAML file of these flags; the command line wins");
    visit("figures_dir", figures_dir, "folder of figures; empty = none are drawn");
    visit("checkpoint_dir", checkpoint_dir, "folder of the store; empty = --results-dir");
  }
};

// The seeds that the flags choose. Throws ConfigError for a seed that no stream of random numbers
// accepts.
std::vector<int64_t> seeds_of(const SeedFlags& flags, int64_t sweep_seed);

// Flags of sweeps that compare guesses with descents.
struct GuessFlags : SeedFlags {
  bool gnc = true;
  int64_t gnc_num_samples = 100'000'000;
  bool gd = true;
  std::string mode = "exact";
  int64_t target_accepted = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    SeedFlags::fields(visit);
    visit("gnc", gnc, "guess and check");
    visit("gnc_num_samples", gnc_num_samples, "guesses of each cell").at_least(1);
    visit("gd", gd, "gradient descent");
    visit("mode", mode,
          "exact: the same bits on every machine; fast: approximate functions and fewer random "
          "bits, which give other numbers")
        .one_of({"exact", "fast"});
    visit("target_accepted", target_accepted, "a cell ends at this many accepted guesses; 0 = off")
        .at_least(0);
  }
};

// Flags of sweeps whose guesses a GPU can compute.
struct GpuFlags {
  int64_t max_gpus = -1;
  std::string device = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("max_gpus", max_gpus, "this many GPUs at most; -1 = all").at_least(-1);
    visit("device", device, "devices that compute: auto = all GPUs and CPUs, cuda = only GPUs, cpu")
        .one_of({"auto", "cuda", "cpu"})
        .flag("devices");
  }
};

}  // namespace convoy::experiments

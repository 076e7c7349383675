// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench train` inside the worker. With a peer, both sides run as processes of their own, in turn, so that
// memory figures are each side's and drift of the machine hits both.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "convoy/apps/worker/worker_command.h"
#include "convoy/base/error.h"
#include "convoy/recipes/bench_train.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The last line a command prints, as JSON. Arguments come from this program's own flags, so quoting is simple.
Json run_and_read(const std::string& command) {
  FILE* pipe = ::popen(command.c_str(), "r");
  CONVOY_CHECK(pipe != nullptr, IoError, "`{}` cannot be started", command);
  std::string output;
  std::array<char, 4096> chunk;
  while (const size_t count = std::fread(chunk.data(), 1, chunk.size(), pipe))
    output.append(chunk.data(), count);
  const int status = ::pclose(pipe);
  CONVOY_CHECK(status == 0, ConfigError,
               "`{}` failed with status {}: does it have torch, transformers and peft?", command,
               WEXITSTATUS(status));
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return Json::parse(output.substr(output.rfind('\n') + 1));
}

fs::path peer_script(const fs::path& program) {
  for (const fs::path& folder : {program.parent_path() / "../../bench/peers",
                                 program.parent_path() / "../share/convoy/bench/peers"})
    if (fs::exists(folder / "hf_train.py")) return fs::canonical(folder / "hf_train.py");
  throw ConfigError("bench/peers/hf_train.py is not beside this program",
                    {.hint = "use --no-peer"});
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Json compare(const settings::BenchFlags& flags) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const char* from_environment = std::getenv("CONVOY_PEER_PYTHON");
  const std::string python = !flags.peer_python.empty()    ? flags.peer_python
                             : from_environment != nullptr ? from_environment
                                                           : "python3";
  const std::string work =
      fmt::format(" --mode {} --dtype {} --geometry {} --seq {} --batch {} --steps {}", flags.mode,
                  flags.dtype, flags.geometry, flags.seq, flags.batch, flags.steps);
  const std::string threads = flags.threads > 0 ? fmt::format(" --threads {}", flags.threads) : "";
  const std::string own =
      fmt::format("'{}' bench train --no-peer{}{}", program.string(), work, threads);
  const std::string peer =
      fmt::format("'{}' '{}'{}{}", python, peer_script(program).string(), work, threads);
  Json result = {{"bench", "train"}, {"convoy", Json::array()}, {"peer", Json::array()}};
  std::vector<double> speed_ratios;
  std::vector<double> memory_ratios;
  for (int64_t round = 0; round < flags.rounds; ++round) {
    const Json ours = run_and_read(own);
    const Json theirs = run_and_read(peer);
    speed_ratios.push_back(ours["tokens_per_s"].get<double>() /
                           theirs["tokens_per_s"].get<double>());
    memory_ratios.push_back(ours["peak_rss_mb"].get<double>() /
                            theirs["peak_rss_mb"].get<double>());
    result["convoy"].push_back(ours);
    result["peer"].push_back(theirs);
  }
  result["tokens_per_s_ratio"] = median(speed_ratios);
  result["peak_memory_ratio"] = median(memory_ratios);
  return result;
}

void print_comparison(const Json& result) {
  const Json& ours = result["convoy"].back();
  const Json& theirs = result["peer"].back();
  std::cout << fmt::format("{:<22}{:>12}{:>12}\n", "", "tokens/s", "peak MiB");
  std::cout << fmt::format("{:<22}{:>12.0f}{:>12}\n", "convoy", ours["tokens_per_s"].get<double>(),
                           ours["peak_rss_mb"].get<int64_t>());
  std::cout << fmt::format("{:<22}{:>12.0f}{:>12}\n", theirs["peer"].get<std::string>(),
                           theirs["tokens_per_s"].get<double>(),
                           theirs["peak_rss_mb"].get<int64_t>());
  std::cout << fmt::format("{:<22}{:>11.2f}x{:>11.2f}x\n", "ratio (median)",
                           result["tokens_per_s_ratio"].get<double>(),
                           result["peak_memory_ratio"].get<double>());
}

}  // namespace

int bench_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::BenchFlags flags;
  const Arguments positionals =
      config::parse_flags({config::list_fields(flags), config::list_fields(worker)}, arguments);
  if (positionals != Arguments{"train"})
    throw ConfigError("wanted the name of one benchmark: train",
                      {.hint = "convoy bench train --mode lora"});
  if (!flags.peer) {
    std::cout << recipes::bench_train(flags).dump() << std::endl;
    return 0;
  }
  const Json result = compare(flags);
  if (worker.json)
    std::cout << result.dump() << std::endl;
  else
    print_comparison(result);
  return 0;
}

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
//
// `convoy bench train|generate|peak` inside the worker. With a peer, both sides run as separate
// processes in turn, so that each memory figure belongs to one side and drift of the machine
// affects both.
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "convoy/apps/recipes/bench/bench_generate.h"
#include "convoy/apps/recipes/bench/bench_train.h"
#include "convoy/apps/recipes/bench/measure_peak.h"
#include "convoy/apps/worker/worker_command.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/settings/worker_calls.h"
#include "convoy/machine/device/threads.h"
#include "convoy/machine/processes/run_child.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Runs a command and returns the last line of its output, as JSON. Arguments come from this
// program's own flags, so simple quoting is enough.
Json run_and_read(const std::string& command, const std::string& packages) {
  auto [end, timed_out, output, errors] = processes::run_child({.program = {"sh", "-c", command},
                                                                .input = STDIN_FILENO,
                                                                .errors = STDERR_FILENO,
                                                                .shares_session = true});
  if (!end.success())
    throw ConfigError(
        fmt::format("`{}` failed with status {}", command, end.exit_code),
        {.hint = fmt::format("install {} into its Python, or use --no-peer", packages)});
  while (!output.empty() && output.back() == '\n') output.pop_back();
  return Json::parse(output.substr(output.rfind('\n') + 1));
}

std::string peer_script(const fs::path& program, const std::string& name) {
  for (const fs::path& folder : {program.parent_path() / "../../bench/peers",
                                 program.parent_path() / "../share/convoy/bench/peers"})
    if (fs::exists(folder / name)) return fs::canonical(folder / name).string();
  throw ConfigError(fmt::format("bench/peers/{} is not beside this program", name),
                    {.hint = "use --no-peer"});
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A benchmark: its name, the peer's script, and the flags that both sides accept.
struct Benchmark {
  std::string name;
  std::string script;
  std::string work;
  std::string own = {};       // flags for Convoy only
  std::string for_peer = {};  // flags for the peer only
  std::string packages = "torch, transformers and peft";
};

// {"bench","convoy":[...],"peer":[...]}: the output of each side, by round.
Json run_in_turn(const Benchmark& benchmark, const settings::BenchFlags& flags,
                 const std::string& devices) {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  const std::string python = !flags.peer_python.empty()
                                 ? flags.peer_python
                                 : environment_variable("CONVOY_PEER_PYTHON").value_or("python3");
  std::string work = fmt::format(" --dtype {} --geometry {} --devices {} {}", flags.dtype,
                                 flags.geometry, devices, benchmark.work);
  const std::string own = fmt::format("'{}' bench-{} --no-peer{}{}", program.string(),
                                      benchmark.name, work, benchmark.own);
  std::string of_peer = work + benchmark.for_peer;
  if (const int threads = device::chosen_threads(); threads > 0)
    of_peer += fmt::format(" --threads {}", threads);
  const std::string peer =
      fmt::format("'{}' '{}'{}", python, peer_script(program, benchmark.script), of_peer);
  Json result = {{"bench", benchmark.name}, {"convoy", Json::array()}, {"peer", Json::array()}};
  for (int64_t round = 0; round < flags.rounds; ++round) {
    result["convoy"].push_back(run_and_read(own, "enough memory"));
    result["peer"].push_back(run_and_read(peer, benchmark.packages));
  }
  return result;
}

// The median over rounds of the values of Convoy and the peer at `path`, and of the ratio per
// round.
struct Compared {
  double convoy = 0;
  double peer = 0;
  double ratio = 0;
};
Compared compared(const Json& result, const Json::json_pointer& path) {
  std::vector<double> convoy;
  std::vector<double> peer;
  std::vector<double> ratios;
  for (size_t round = 0; round < result["convoy"].size(); ++round) {
    convoy.push_back(result["convoy"][round].at(path).get<double>());
    peer.push_back(result["peer"][round].at(path).get<double>());
    ratios.push_back(convoy.back() / peer.back());
  }
  return {median(convoy), median(peer), median(ratios)};
}

// The peak memory of each side on its compute device.
Json::json_pointer memory_figure(const Json& result) {
  const bool on_device = result["convoy"].back().contains("peak_device_mb");
  return Json::json_pointer(on_device ? "/peak_device_mb" : "/peak_rss_mb");
}

std::string peer_name(const Json& result) { return result["peer"].back()["peer"]; }

void print_train(const Json& result) {
  const Compared speed = compared(result, Json::json_pointer("/tokens_per_s"));
  const Compared memory = compared(result, memory_figure(result));
  std::cout << fmt::format("{:<22}{:>12}{:>12}\n", "", "tokens/s", "peak MiB");
  std::cout << fmt::format("{:<22}{:>12.0f}{:>12.0f}\n", "convoy", speed.convoy, memory.convoy);
  std::cout << fmt::format("{:<22}{:>12.0f}{:>12.0f}\n", peer_name(result), speed.peer,
                           memory.peer);
  std::cout << fmt::format("{:<22}{:>11.2f}x{:>11.2f}x\n", "ratio (median)", speed.ratio,
                           memory.ratio);
}

int bench_train(const settings::BenchFlags& flags, const settings::BenchTrainFlags& train,
                const settings::RankFlags& ranks, const CommonFlags& worker) {
  const bool json = worker.json;
  const std::string& devices = ranks.devices;
  if (flags.no_peer || !ranks.ranks_folder.empty()) {
    const Json result = recipes::bench_train(flags, train, ranks, worker.log());
    if (!result.empty()) std::cout << result.dump() << std::endl;
    return 0;
  }
  if (!train.output_dir.empty() || train.global_batch > 0)
    throw ConfigError("the peer has no --output and no --global-batch", {.hint = "add --no-peer"});
  Json result = run_in_turn(
      {.name = "train",
       .script = "hf_train.py",
       .work = fmt::format("--mode {} --seq {} --batch {} --steps {}{}", train.mode, train.seq,
                           train.batch, train.steps, train.recompute ? " --recompute" : "")},
      flags, devices);
  result["tokens_per_s_ratio"] = compared(result, Json::json_pointer("/tokens_per_s")).ratio;
  result["peak_memory_ratio"] = compared(result, memory_figure(result)).ratio;
  if (json)
    std::cout << result.dump() << std::endl;
  else
    print_train(result);
  return 0;
}

void print_generate(const Json& result) {
  std::cout << fmt::format("new tokens/s {:<15}{:>12}{:>24}{:>10}\n", "", "convoy",
                           peer_name(result), "ratio");
  for (const Json& point : result["points"])
    std::cout << fmt::format("batch {:<6}{:<16}{:>12.1f}{:>24.1f}{:>9.2f}x\n",
                             point["batch"].get<int64_t>(), point["sampling"].get<std::string>(),
                             point["convoy"].get<double>(), point["peer"].get<double>(),
                             point["ratio"].get<double>());
  const Compared memory = compared(result, memory_figure(result));
  std::cout << fmt::format("{:<28}{:>12.0f}{:>24.0f}{:>9.2f}x\n", "peak MiB", memory.convoy,
                           memory.peer, memory.ratio);
}

int bench_peak(const std::string& devices, const CommonFlags& worker) {
  const Json result = recipes::measure_peak(devices, worker.log());
  if (worker.json) {
    std::cout << result.dump() << std::endl;
    return 0;
  }
  for (const Json& peak : result["peaks"])
    std::cout << fmt::format("{}  {}  {:>8.0f} GFLOP/s  by {}\n",
                             result["device"].get<std::string>(), peak["dtype"].get<std::string>(),
                             peak["flops_per_second"].get<double>() / 1e9,
                             peak["by"].get<std::string>());
  return 0;
}

// The file type of llama.cpp that is compared with Convoy's weights.
std::string llama_cpp_file_type(const settings::BenchFlags& flags,
                                const settings::BenchGenerateFlags& generate) {
  if (flags.dtype != "bf16" || generate.quantization != "none")
    throw ConfigError("llama.cpp runs beside bf16 models alone, without --quantization",
                      {.key = "peer", .hint = "use --weights int8 or int4, or --no-peer"});
  if (generate.weights == "int8") return "q8_0";
  return generate.weights == "int4" ? "q4_0" : "bf16";
}

int bench_generate(const settings::BenchFlags& flags, const settings::BenchGenerateFlags& generate,
                   const std::string& devices, bool json) {
  if (flags.no_peer) {
    std::cout << recipes::bench_generate(flags, generate, devices).dump() << std::endl;
    return 0;
  }
  const bool llama_cpp = generate.peer == "llama.cpp";
  Json result = run_in_turn(
      {.name = "generate",
       .script = llama_cpp ? "llama_cpp_generate.py" : "hf_generate.py",
       .work =
           fmt::format("--batches {} --prompts {} --prompt-tokens {} --new-tokens {} "
                       "--temperature {} --top-p {} --repeats {}",
                       fmt::join(generate.batches, " "), generate.prompts, generate.prompt_tokens,
                       generate.new_tokens, generate.temperature, generate.top_p, generate.repeats),
       .own = fmt::format(" --weights {} --activations {} --kv-dtype {} --quantization {}{}",
                          generate.weights, generate.activations, generate.kv_dtype,
                          generate.quantization, generate.double_quant ? " --double-quant" : ""),
       .for_peer = llama_cpp ? " --file-type " + llama_cpp_file_type(flags, generate) : "",
       .packages = llama_cpp ? "llama-cpp-python and gguf" : "torch and transformers"},
      flags, devices);
  result["points"] = Json::array();
  for (size_t index = 0; index < result["peer"][0]["points"].size(); ++index) {
    const Json& point = result["peer"][0]["points"][index];
    const Compared speed =
        compared(result, Json::json_pointer(fmt::format("/points/{}/tokens_per_s", index)));
    result["points"].push_back({{"batch", point["batch"]},
                                {"sampling", point["sampling"]},
                                {"convoy", speed.convoy},
                                {"peer", speed.peer},
                                {"ratio", speed.ratio}});
  }
  if (json)
    std::cout << result.dump() << std::endl;
  else
    print_generate(result);
  return 0;
}

void refuse_words(const char* name, const Arguments& words) {
  if (!words.empty())
    throw ConfigError(fmt::format("`{}` is no flag of bench {}", words.front(), name),
                      {.hint = "see convoy help bench"});
}

}  // namespace

int bench_train_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::RankFlags ranks;
  settings::BenchTrainCall call;
  refuse_words("train", parse_call(call.lists(), ranks, worker, arguments));
  return bench_train(call.flags, call.train, ranks, worker);
}

int bench_generate_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::RankFlags ranks;
  settings::BenchGenerateCall call;
  refuse_words("generate", parse_call(call.lists(), ranks, worker, arguments));
  return bench_generate(call.flags, call.generate, ranks.devices, worker.json);
}

int bench_peak_command(const Arguments& arguments) {
  CommonFlags worker;
  settings::RankFlags ranks;
  settings::BenchCall call;
  refuse_words("peak", parse_call(call.lists(), ranks, worker, arguments));
  settings::BenchFlags defaults;
  const auto refused =
      config::flags_that_differ(config::list_fields(call.flags), config::list_fields(defaults));
  if (!refused.empty())
    throw ConfigError(fmt::format("bench peak measures each dtype by itself and does not take {}",
                                  refused.front()),
                      {.key = refused.front(), .hint = "give --devices and --threads"});
  return bench_peak(ranks.devices, worker);
}

}  // namespace convoy::apps

// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/peers/peer_launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/io/hub_cache.h"
#include "convoy/launch/submit/quoting.h"

namespace convoy::apps {
namespace {

bool is_library_variable(std::string_view word) {
  // NCCL_TIMEOUT is a setting of the run, parallel.timeout_s.
  if (word.find('=') == std::string_view::npos || word.starts_with("NCCL_TIMEOUT=")) return false;
  constexpr std::array<std::string_view, 4> kNames = {"NCCL_", "GLOO_",
                                                      "CUDA_VISIBLE_DEVICES=", "OMP_NUM_THREADS="};
  return std::any_of(kNames.begin(), kNames.end(),
                     [word](std::string_view name) { return word.starts_with(name); });
}

int64_t number_of(const settings::RequestedValue& requested, std::string_view flag) {
  const auto number = text_as<int64_t>(requested.value);
  if (!number)
    throw ConfigError(
        fmt::format("{}: wanted a number for --{}, found \"{}\"", requested.origin, flag,
                    requested.value),
        {.key = std::string(flag), .hint = fmt::format("write a whole number for --{}", flag)});
  return *number;
}

void say(const Log& log, std::string_view flag, const settings::RequestedValue& requested) {
  log.info(fmt::format("--{} {}: {}", flag, requested.value, requested.origin));
}

void take(const settings::RequestedValue& requested, std::string& flag_value,
          const std::string& unset, std::string_view flag, const Log& log) {
  if (requested.value.empty() || flag_value != unset) return;
  flag_value = requested.value;
  say(log, flag, requested);
}

void take(const settings::RequestedValue& requested, int64_t& flag_value, int64_t unset,
          std::string_view flag, const Log& log) {
  if (requested.value.empty() || flag_value != unset) return;
  flag_value = number_of(requested, flag);
  say(log, flag, requested);
}

}  // namespace

void export_library_variables(std::vector<std::string>& words, const Log& log) {
  for (const std::string& word : words) {
    if (!is_library_variable(word)) continue;
    const size_t equals = word.find('=');
    ::setenv(word.substr(0, equals).c_str(), word.substr(equals + 1).c_str(), 1);
    log.info(fmt::format("command line: {} goes to the ranks' environment", word));
  }
  std::erase_if(words, is_library_variable);
}

void take_node_words(std::vector<std::string>& words, settings::LaunchRequest& launch_request) {
  const std::pair<std::string_view, settings::RequestedValue*> names[] = {
      {"NNODES=", &launch_request.nodes},
      {"NODE_RANK=", &launch_request.node_rank},
      {"MASTER_ADDR=", &launch_request.master_addr},
      {"MASTER_PORT=", &launch_request.master_port},
      {"NPROC_PER_NODE=", &launch_request.ranks_of_node}};
  std::erase_if(words, [&](const std::string& word) {
    for (const auto& [name, value] : names) {
      if (!word.starts_with(name)) continue;
      *value = {word.substr(name.size()), "command line, " + word};
      return true;
    }
    return false;
  });
}

void refuse_launcher_words(const std::vector<std::string>& words) {
  bool has_config = false;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == word.npos) {
      config::FileStack beside;
      if (std::exchange(has_config, true)) beside.load(word);
      refuse_accelerate_file(beside);
      continue;
    }
    const std::string name = word.substr(0, equals);
    if (name != "WORLD_SIZE" && name != "RANK" && name != "LOCAL_RANK" &&
        name != "LOCAL_WORLD_SIZE")
      continue;
    const std::string count = word.substr(equals + 1);
    const std::string ranks = name.ends_with("WORLD_SIZE") && !count.empty() ? count : "N";
    throw ConfigError(
        fmt::format("{} is a variable that a launcher gives to each rank, and no setting", name),
        {.key = name,
         .hint = fmt::format("convoy train starts its ranks itself: --ranks {}; a launcher of your "
                             "own sets it before the command: {} convoy train ...",
                             ranks, word)});
  }
}

void refuse_accelerate_file(const config::FileStack& files) {
  if (files.trees().empty()) return;
  const config::Node& tree = files.trees().back();
  if (tree.find("compute_environment") == nullptr && tree.find("distributed_type") == nullptr)
    return;
  const std::string& file = files.names().front();
  throw ConfigError("this is a file of `accelerate config`, and no training's",
                    {.file = file,
                     .key = "--accelerate-config",
                     .hint = fmt::format("convoy train CONFIG.yaml --accelerate-config {}",
                                         launch::shell_word(file))});
}

void take_launch_request(const settings::LaunchRequest& launch_request,
                         launch::MemberFlags& members, launch::DeviceFlags& devices,
                         const Log& log) {
  const launch::MemberFlags unset;
  take(launch_request.devices, devices.devices, launch::DeviceFlags().devices, "devices", log);
  take(launch_request.ranks_of_node, members.nproc_per_node, unset.nproc_per_node, "nproc-per-node",
       log);
  take(launch_request.nodes, members.nnodes, unset.nnodes, "nnodes", log);
  take(launch_request.node_rank, members.node_rank, unset.node_rank, "node-rank", log);
  if (!members.rdzv_endpoint.empty()) return;
  take(launch_request.master_addr, members.master_addr, unset.master_addr, "master-addr", log);
  take(launch_request.master_port, members.master_port, unset.master_port, "master-port", log);
}

void say_unread_accelerate_file(const settings::LaunchRequest& launch_request, const Log& log) {
  if (launch_request.reads_accelerate) return;
  for (const char* const ending : {"yaml", "json"}) {
    const std::filesystem::path file =
        io::hub_home_folder() / "accelerate" / fmt::format("default_config.{}", ending);
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(file, ignored)) continue;
    log.info(fmt::format("{}, which `accelerate config` wrote, is not read: --accelerate-config {}",
                         file.string(), file.string()));
    return;
  }
}

int64_t ranks_of_job(const launch::JobSetup& setup) {
  if (setup.adopted()) return setup.place.world_size;
  return setup.several_nodes() ? 0 : setup.num_local_ranks;
}

}  // namespace convoy::apps

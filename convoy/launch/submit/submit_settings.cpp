// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/submit/submit_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <optional>

#include "convoy/core/base/error.h"
#include "convoy/core/base/text_as.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/field_list.h"
#include "convoy/core/config/flags.h"
#include "convoy/launch/submit/submitted_command.h"

namespace convoy::launch {
namespace {

constexpr int64_t kMaxRequeues = 3;      // submitit's default
constexpr int64_t kSignalBefore_s = 90;  // submitit's and Lightning's

[[noreturn]] void refuse(std::string_view flag, const std::string& wanted, std::string_view found,
                         std::string hint = {}) {
  throw ConfigError(
      fmt::format("--{} needs {}; found `{}`", flag, wanted, found),
      {.key = std::string(flag),
       .hint = hint.empty() ? fmt::format("change --{}, or leave it out", flag) : std::move(hint)});
}

// The flags that one engine accepts. Every engine also accepts engine, go, output, name, nodes,
// nproc-per-node, env, port.
struct EngineFlags {
  std::string_view engine;
  std::vector<std::string_view> honoured;
};

const std::vector<EngineFlags>& engine_flags() {
  static const std::vector<EngineFlags> table = {
      {"slurm",
       {"task_per_rank", "gpus_per_node", "cpus_per_task", "mem", "time", "partition", "account",
        "qos", "log_dir", "requeue", "no_requeue", "max_requeues", "signal_before", "extra"}},
      {"kubernetes",
       {"gpus_per_node", "cpus_per_task", "mem", "time", "image", "namespace", "volume", "requeue",
        "no_requeue", "max_requeues", "signal_before"}},
      {"mpi", {"task_per_rank", "hostfile", "log_dir", "extra"}},
  };
  return table;
}

constexpr std::string_view kEveryEngine[] = {"engine",         "go",  "output", "name", "nodes",
                                             "nproc_per_node", "env", "port"};

template <class List>
bool names_word(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

void check_engine(SubmitSettings settings) {
  if (settings.engine.empty())
    throw ConfigError("submit needs --engine slurm, kubernetes or mpi",
                      {.key = "engine", .hint = "such as --engine slurm"});
  const auto own =
      std::find_if(engine_flags().begin(), engine_flags().end(),
                   [&](const EngineFlags& flags) { return flags.engine == settings.engine; });
  if (own == engine_flags().end()) refuse("engine", "slurm, kubernetes or mpi", settings.engine);
  SubmitSettings plain;
  const config::Section given = config::list_fields(settings);
  const config::Section defaults = config::list_fields(plain);
  for (size_t at = 0; at < given.fields.size(); ++at) {
    const config::Field& field = given.fields[at];
    if (names_word(kEveryEngine, field.name) || names_word(own->honoured, field.name)) continue;
    if (config::value_json(field) == config::value_json(defaults.fields[at])) continue;
    std::vector<std::string_view> others;
    for (const EngineFlags& other : engine_flags())
      if (names_word(other.honoured, field.name)) others.push_back(other.engine);
    throw ConfigError(
        fmt::format("--engine {} cannot honour --{}", settings.engine, config::dashed(field.name)),
        {.key = config::dashed(field.name),
         .hint = fmt::format("it belongs to {}; leave it out", fmt::join(others, " and "))});
  }
}

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0 &&
         std::all_of(name.begin(), name.end(), is_name_letter);
}

// True for a label of RFC 1035, which is the form of a service's name.
bool is_label(std::string_view name) {
  const auto inner = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') || letter == '-';
  };
  return !name.empty() && name[0] >= 'a' && name[0] <= 'z' && name.back() != '-' &&
         std::all_of(name.begin(), name.end(), inner);
}

void check_name(const SubmitSettings& settings) {
  if (settings.name.empty()) return;
  if (settings.engine == "kubernetes") {
    // A pod's host name is the job's name, a dash and its index, and is one label of at most 63
    // letters.
    const size_t index_letters = fmt::format("-{}", settings.nodes - 1).size();
    if (!is_label(settings.name) || settings.name.size() + index_letters > 63)
      refuse("name",
             fmt::format("at most {} small letters, digits and dashes, a letter first",
                         63 - index_letters),
             settings.name);
    return;
  }
  const bool plain = std::all_of(settings.name.begin(), settings.name.end(), [](char letter) {
    return is_name_letter(letter) || letter == '-' || letter == '.';
  });
  if (!plain || settings.name[0] == '-' || settings.name[0] == '.')
    refuse("name", "letters, digits, dots, dashes and underscores", settings.name);
}

// sbatch reads an #SBATCH line by its own rules: special characters would end or change the value.
void check_directive_value(std::string_view flag, const std::string& value) {
  const bool plain = std::all_of(value.begin(), value.end(), [](unsigned char letter) {
    return letter > ' ' && letter != 0x7f &&
           std::string_view("\"'\\#`$").find(static_cast<char>(letter)) == std::string_view::npos;
  });
  if (!plain) refuse(flag, "a word without spaces, quotes and backslashes", value);
}

void check_line(std::string_view flag, const std::string& value) {
  const bool one_line = std::none_of(value.begin(), value.end(), [](unsigned char letter) {
    return letter < ' ' || letter == 0x7f;
  });
  if (!one_line || value.empty()) refuse(flag, "one line", value);
}

std::optional<int64_t> number(std::string_view text) {
  const auto value = text_as<int64_t>(text);
  return value && *value >= 0 ? value : std::nullopt;
}

void check_memory(const std::string& text) {
  std::string_view digits = text;
  if (!digits.empty() && std::string_view("KMGT").find(digits.back()) != std::string_view::npos)
    digits.remove_suffix(1);
  if (number(digits).value_or(0) < 1)
    refuse("mem", "a number and K, M, G or T (1024 each; M when it is missing)", text);
}

void check_ranks(const SubmitSettings& settings) {
  const std::string& ranks = settings.nproc_per_node;
  const bool counted = number(ranks).value_or(0) >= 1;
  if (settings.task_per_rank && !counted)
    throw ConfigError("--task-per-rank needs --ranks with a number",
                      {.key = "task-per-rank", .hint = "such as --ranks 8"});
  if (!counted && ranks != "auto" && ranks != "gpu" && ranks != "cpu")
    refuse("nproc-per-node", "auto, gpu, cpu or a number from 1 up", ranks);
}

void check_log_dir(const SubmitSettings& settings) {
  check_line("log-dir", settings.log_dir);
  // sbatch gives % and \ a meaning of their own in file names.
  if (settings.engine == "slurm" && settings.log_dir.find_first_of("%\\\"'") != std::string::npos)
    refuse("log-dir", "a path without %, \\ and quotes", settings.log_dir);
}

}  // namespace

int64_t max_requeues(const SubmitSettings& settings) {
  return settings.no_requeue ? 0 : settings.max_requeues.value.value_or(kMaxRequeues);
}

int64_t signal_before_seconds(const SubmitSettings& settings) {
  return settings.signal_before.value.value_or(kSignalBefore_s);
}

int64_t time_limit_seconds(std::string_view text) {
  const auto wrong = [&]() {
    refuse("time", "M, M:S, H:M:S, D-H, D-H:M or D-H:M:S", text, "such as 30 or 1-12:00:00");
  };
  const size_t dash = text.find('-');
  std::string_view clock = text;
  int64_t days = 0;
  if (dash != std::string_view::npos) {
    const std::optional<int64_t> count = number(text.substr(0, dash));
    if (!count || *count > 100'000) wrong();
    days = *count;
    clock = text.substr(dash + 1);
  }
  std::vector<int64_t> parts;
  for (size_t begin = 0; begin <= clock.size();) {
    const size_t end = std::min(clock.find(':', begin), clock.size());
    const std::optional<int64_t> part = number(clock.substr(begin, end - begin));
    if (!part || *part > 100'000'000 || parts.size() == 3) wrong();
    parts.push_back(*part);
    begin = end + 1;
  }
  // Without days, the first of one or two parts is minutes. After days, and with three parts, it is
  // hours. Each further part is the next smaller unit.
  const bool hours_first = dash != std::string_view::npos || parts.size() == 3;
  int64_t unit_s = hours_first ? 3600 : 60;
  int64_t seconds = days * 86'400;
  for (const int64_t part : parts) {
    seconds += part * unit_s;
    unit_s /= 60;
  }
  if (seconds < 1) wrong();
  return seconds;
}

std::vector<ClaimedVolume> claimed_volumes(const SubmitSettings& settings) {
  std::vector<ClaimedVolume> volumes;
  for (const std::string& text : settings.volume.names) {
    const size_t colon = text.find(':');
    const std::string path = colon == std::string::npos ? "" : text.substr(colon + 1);
    const std::string claim = text.substr(0, colon);
    if (!is_label(claim) || !path.starts_with('/') || path.find(':') != std::string::npos)
      refuse("volume", "CLAIM:/PATH", text);
    for (const ClaimedVolume& other : volumes)
      if (other.path == path) refuse("volume", "one volume at each path", text);
    if (path == "/dev/shm") refuse("volume", "another path: memory is mounted there", text);
    volumes.push_back({claim, path});
  }
  return volumes;
}

std::vector<TravellingVariable> travelling_variables(const SubmitSettings& settings) {
  std::vector<TravellingVariable> variables;
  for (const std::string& text : settings.env.names) {
    const size_t equals = text.find('=');
    TravellingVariable variable;
    variable.name = text.substr(0, equals);
    variable.has_value = equals != std::string::npos;
    if (variable.has_value) variable.value = text.substr(equals + 1);
    if (!is_variable_name(variable.name)) refuse("env", "NAME or NAME=VALUE", text);
    for (const std::string_view own :
         {"PET_", "SLURM_", "CONVOY_JOB_TOKEN", "JOB_COMPLETION_INDEX"})
      if (variable.name.starts_with(own))
        throw ConfigError(fmt::format("--env cannot set {}: the job sets it itself", variable.name),
                          {.key = "env", .hint = "leave it out of --env"});
    for (const TravellingVariable& other : variables)
      if (other.name == variable.name)
        throw ConfigError(fmt::format("--env names {} twice", variable.name),
                          {.key = "env", .hint = "name it once"});
    variables.push_back(std::move(variable));
  }
  return variables;
}

void check_submit_settings(const SubmitSettings& settings,
                           const std::vector<std::string>& command) {
  check_engine(settings);
  if (command.empty())
    throw ConfigError("submit needs a command after --",
                      {.hint = "convoy submit --engine slurm --nodes 2 -- convoy train run.yaml"});
  check_name(settings);
  check_ranks(settings);
  check_log_dir(settings);
  for (const auto& [flag, value] :
       {std::pair<std::string_view, std::string>{"partition", settings.partition},
        {"account", settings.account},
        {"qos", settings.qos}})
    check_directive_value(flag, value);
  for (const std::string& line : settings.extra.names) check_line("extra", line);
  if (!settings.mem.empty()) check_memory(settings.mem);
  if (!settings.time.empty() &&
      time_limit_seconds(settings.time) <= signal_before_seconds(settings))
    refuse("time",
           fmt::format("more than the {} s of --signal-before", signal_before_seconds(settings)),
           settings.time);
  if (signal_before_seconds(settings) > 65'535)
    refuse("signal-before", "at most 65535 s", std::to_string(signal_before_seconds(settings)));
  if (settings.requeue && settings.no_requeue)
    throw ConfigError("--requeue and --no-requeue contradict each other",
                      {.key = "requeue", .hint = "leave one of them out"});
  if (settings.engine == "kubernetes") {
    if (settings.image.empty())
      throw ConfigError("--engine kubernetes needs --image",
                        {.key = "image",
                         .hint = "--image names the container's image: --image REGISTRY/NAME:TAG"});
    check_directive_value("image", settings.image);
    if (!settings.name_space.empty() &&
        (!is_label(settings.name_space) || settings.name_space.size() > 63))
      refuse("namespace", "a namespace's name", settings.name_space);
  }
  claimed_volumes(settings);
  travelling_variables(settings);
  refuse_foreign_launcher(settings, command);
}

}  // namespace convoy::launch

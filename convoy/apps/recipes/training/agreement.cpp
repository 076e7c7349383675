// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/training/agreement.h"

#include <fmt/ranges.h>  // join lies here in the fmt of LibTorch

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/io/foreign_checkpoint.h"
#include "convoy/core/io/json_reader.h"
#include "convoy/core/io/model_folder.h"
#include "convoy/core/settings/resolve_train.h"
#include "convoy/core/telemetry/runs/run_folder.h"

namespace convoy::recipes {
namespace {

namespace fs = std::filesystem;
using io::Json;

// Keys that may differ between nodes: the content of files is compared instead of their paths, and
// the name of the run is that of rank 0.
constexpr std::array<const char*, 12> kOwnKeys = {"run_name",
                                                  "model.name",
                                                  "data.train_path",
                                                  "data.val_path",
                                                  "data.test_path",
                                                  "data.cache_dir",
                                                  "data.template_path",
                                                  "train.output_dir",
                                                  "tuning.lora.adapter",
                                                  "classify.data_dir",
                                                  "classify.encoder_path",
                                                  "preference.reference"};

Json placed(const comm::StoreBarrier& store_barrier, Json json) {
  json["host"] = telemetry::host_name();
  json["local_rank"] = store_barrier.environment().local_rank;
  return json;
}

std::vector<Json> parsed(const std::vector<std::string>& brought) {
  std::vector<Json> ranks;
  for (const std::string& text : brought) ranks.push_back(io::parse_json(text, "another rank"));
  return ranks;
}

// Replaces invalid UTF-8, because paths may hold any bytes.
std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string text_of(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

std::string name_of(size_t rank, const Json& brought) {
  return fmt::format("rank {} on {}", rank, text_of(brought, "host"));
}

// An error that all ranks throw.
struct Refusal {
  ExitCode code = ExitCode::Usage;
  std::string message;
  ErrorLocation place;
};

Json to_json(const Refusal& refusal) {
  return {{"code", static_cast<int>(refusal.code)},
          {"message", refusal.message},
          {"file", refusal.place.file},
          {"key", refusal.place.key},
          {"hint", refusal.place.hint},
          {"rank", refusal.place.rank}};
}

[[noreturn]] void refuse(const Json& json) {
  const std::string message = text_of(json, "message");
  const ErrorLocation place{.file = text_of(json, "file"),
                            .key = text_of(json, "key"),
                            .hint = text_of(json, "hint"),
                            .rank = json.at("rank").get<int>()};
  switch (static_cast<ExitCode>(json.at("code").get<int>())) {
    case ExitCode::BadInput:
      throw DataError(message, place);
    case ExitCode::NoCheckpoint:
      throw CheckpointError(message, place);
    default:
      throw ConfigError(message, place);
  }
}

using Judge = std::function<std::optional<Refusal>(const std::vector<Json>& ranks)>;

// Returns rank 0's part of an agreement.
Json decide(comm::StoreBarrier& store_barrier, Json own, const Judge& judge,
            const std::function<Json(const std::vector<Json>&)>& add = {}) {
  const std::string answer = store_barrier.decide(
      text_of(placed(store_barrier, std::move(own))), [&](const std::vector<std::string>& brought) {
        const std::vector<Json> ranks = parsed(brought);
        Json result = Json::object();
        if (const std::optional<Refusal> refusal = judge(ranks))
          result["refusal"] = to_json(*refusal);
        else if (add)
          result["added"] = add(ranks);
        return text_of(result);
      });
  const Json result = io::parse_json(answer, "rank 0");
  if (result.contains("refusal")) refuse(result["refusal"]);
  return result.value("added", Json::object());
}

// ---- settings

Json settings_json(const config::Resolved& resolved) {
  Json values = {{"version of convoy", CONVOY_VERSION}};
  const nlohmann::json with_origins = resolved.json_with_origins();
  for (const auto& [key, value] : with_origins.items())
    if (!is_own_to_a_node(key)) values[key] = value.at("value");
  return values;
}

// The paths in `settings` that this host lacks, by key.
Json missing_places(const settings::TrainSettings& settings) {
  Json missing = Json::object();
  const auto look = [&missing](const char* key, const std::string& place) {
    std::error_code unreadable;
    if (!place.empty() && !fs::exists(place, unreadable)) missing[key] = place;
  };
  if (settings.task_facts().data == settings::TaskData::Windows) {
    look("classify.data_dir", settings.classify.data_dir);
    look("classify.encoder_path", settings.classify.encoder_path);
    return missing;
  }
  try {
    const auto base = io::base_of_adapter_folder(settings.model.name);
    const auto folder =
        io::ModelFolder::open(base.value_or(settings.model.name), settings.model.revision);
    for (const std::string& name : folder.weight_file_names()) folder.require(name);
  } catch (const Error&) {
    missing["model.name"] = settings.model.name;
  }
  look("data.train_path", settings.data.train_path);
  look("data.val_path", settings.data.val_path);
  look("data.template_path", settings.data.template_path);
  if (settings.tuning.mode != "full") look("tuning.lora.adapter", settings.tuning.lora.adapter);
  return missing;
}

std::optional<Refusal> other_settings(const std::vector<Json>& ranks) {
  constexpr size_t kMostNamed = 4;
  const Json& wanted = ranks[0].at("settings");
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    const Json& found = ranks[rank].at("settings");
    if (found == wanted) continue;
    std::vector<std::string> differences;
    std::string first;
    for (const auto& [key, value] : wanted.items()) {
      const Json other = found.value(key, Json());
      if (other == value) continue;
      if (first.empty()) first = key;
      differences.push_back(fmt::format("{} is {} for {} and {} for {}", key, value.dump(),
                                        name_of(0, ranks[0]), other.dump(),
                                        name_of(rank, ranks[rank])));
    }
    const size_t left = differences.size() - std::min(differences.size(), kMostNamed);
    differences.resize(std::min(differences.size(), kMostNamed));
    return Refusal{ExitCode::Usage,
                   fmt::format("the nodes were started with other settings: {}{}",
                               fmt::join(differences, "; "),
                               left > 0 ? fmt::format("; and {} more", left) : ""),
                   {.key = first,
                    .hint = "start every node with the same configuration, or leave it out on all "
                            "but rank 0's",
                    .rank = static_cast<int>(rank)}};
  }
  return std::nullopt;
}

// A path that all ranks lack needs no agreement: the first reader reports it.
std::optional<Refusal> missing_somewhere(const std::vector<Json>& ranks) {
  for (size_t rank = 0; rank < ranks.size(); ++rank)
    for (const auto& [key, place] : ranks[rank].at("missing").items()) {
      const auto has = std::find_if(ranks.begin(), ranks.end(), [&key](const Json& other) {
        return !other.at("missing").contains(key);
      });
      if (has == ranks.end()) continue;
      return Refusal{
          ExitCode::BadInput,
          fmt::format("{} is not on every node: {} lacks {}, {} has it", key,
                      name_of(rank, ranks[rank]), place.get<std::string>(),
                      name_of(static_cast<size_t>(has - ranks.begin()), *has)),
          {.file = place.get<std::string>(),
           .key = key,
           .hint = fmt::format("copy it to that host, give its path there ({}=PATH), or use a "
                               "file system that all nodes see",
                               key),
           .rank = static_cast<int>(rank)}};
    }
  return std::nullopt;
}

// ---- starting point

Json to_json(const StartingPoint& start) {
  Json inputs = Json::array();
  for (const SharedInput& input : start.inputs)
    inputs.push_back({{"what", input.what}, {"identity", input.identity}, {"place", input.place}});
  return {{"inputs", std::move(inputs)},
          {"stamp", start.stamp.to_json()},
          {"newest_checkpoint", start.newest_checkpoint},
          {"checkpoints_folder", start.checkpoints_folder}};
}

std::optional<Refusal> other_inputs(const std::vector<Json>& ranks) {
  const Json& wanted = ranks[0].at("inputs");
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    const Json& found = ranks[rank].at("inputs");
    for (size_t index = 0; index < std::min(wanted.size(), found.size()); ++index) {
      const std::string identity = text_of(found[index], "identity");
      if (identity.empty() || identity == text_of(wanted[index], "identity")) continue;
      return Refusal{
          ExitCode::BadInput,
          fmt::format(
              "{0} of {1} differ from those of {2}: {2} has {3:.12} in {4}, {1} has {5:.12} in {6}",
              text_of(found[index], "what"), name_of(rank, ranks[rank]), name_of(0, ranks[0]),
              text_of(wanted[index], "identity"), text_of(wanted[index], "place"), identity,
              text_of(found[index], "place")),
          {.file = text_of(found[index], "place"),
           .hint = "every node needs the same content: copy it from one to the others, or use a "
                   "file system that all nodes see",
           .rank = static_cast<int>(rank)}};
    }
  }
  return std::nullopt;
}

std::optional<Refusal> other_stamp(const std::vector<Json>& ranks) {
  const auto stamp_of = [&ranks](size_t rank) {
    return checkpoint::Stamp::from_json(ranks[rank].at("stamp"), name_of(rank, ranks[rank]));
  };
  const checkpoint::Stamp wanted = stamp_of(0);
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    const auto differences = checkpoint::compare(wanted, stamp_of(rank));
    if (differences.empty()) continue;
    const checkpoint::StampDifference& first = differences.front();
    return Refusal{
        ExitCode::Usage,
        fmt::format("the ranks start differently: {} is `{}` for {} and `{}` for {}", first.field,
                    first.saved, name_of(0, ranks[0]), first.current, name_of(rank, ranks[rank])),
        {.key = first.field,
         .hint = "start every node with the same program, configuration and files",
         .rank = static_cast<int>(rank)}};
  }
  return std::nullopt;
}

std::optional<Refusal> newer_checkpoint(const std::vector<Json>& ranks) {
  const auto newest = [&ranks](size_t rank) {
    return ranks[rank].at("newest_checkpoint").get<int64_t>();
  };
  for (size_t rank = 1; rank < ranks.size(); ++rank) {
    if (newest(rank) <= newest(0)) continue;
    const std::string folder = text_of(ranks[rank], "checkpoints_folder");
    const std::string own = newest(0) < 0 ? "none" : fmt::format("none after step {}", newest(0));
    return Refusal{
        ExitCode::NoCheckpoint,
        fmt::format(
            "{} holds a checkpoint of step {}, but {}, whose checkpoints count, has {} in {}",
            name_of(rank, ranks[rank]), newest(rank), name_of(0, ranks[0]), own,
            text_of(ranks[0], "checkpoints_folder")),
        {.file = folder,
         .hint = "start that host as node 0, copy its run folder there, remove checkpoints that "
                 "are no longer needed, or start a new run with --resume never",
         .rank = static_cast<int>(rank)}};
  }
  return std::nullopt;
}

}  // namespace

bool is_own_to_a_node(const std::string& key) {
  return std::find(kOwnKeys.begin(), kOwnKeys.end(), key) != kOwnKeys.end();
}

void agree_on_settings(comm::StoreBarrier& store_barrier, const SettingsSource& source,
                       settings::TrainSettings& settings) {
  const bool is_here = fs::exists(source.file);
  const std::string of_rank_zero =
      store_barrier.word_of_rank_zero(store_barrier.rank() == 0 ? read_file(source.file) : "");
  if (!is_here) write_file_atomic(source.file, of_rank_zero);
  const config::Resolved resolved = settings::resolve_train(
      settings, config::Sources{.file = source.file, .overrides = source.overrides});
  decide(store_barrier,
         {{"settings", settings_json(resolved)}, {"missing", missing_places(settings)}},
         [](const std::vector<Json>& ranks) {
           std::optional<Refusal> refusal = other_settings(ranks);
           return refusal ? refusal : missing_somewhere(ranks);
         });
}

std::vector<std::string> agree_on_start(comm::StoreBarrier& store_barrier,
                                        const StartingPoint& start) {
  const Json hosts = decide(
      store_barrier, to_json(start),
      [](const std::vector<Json>& ranks) {
        for (const auto look : {other_inputs, other_stamp, newer_checkpoint})
          if (std::optional<Refusal> refusal = look(ranks)) return refusal;
        return std::optional<Refusal>();
      },
      [](const std::vector<Json>& ranks) {
        Json names = Json::array();
        for (const Json& rank : ranks)
          if (rank.at("local_rank") == 0) names.push_back(rank.at("host"));
        return names;
      });
  return hosts.get<std::vector<std::string>>();
}

}  // namespace convoy::recipes

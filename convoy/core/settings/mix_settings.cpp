// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/settings/mix_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::settings {
namespace {

using Json = nlohmann::ordered_json;

const std::vector<std::string>& known_names() {
  static const std::vector<std::string> kNames = {"name",     "path",      "type",  "weight",
                                                  "val_path", "val_ratio", "schema"};
  return kNames;
}

[[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& hint) {
  throw ConfigError(fmt::format("{}: {}", key, what), {.key = key, .hint = hint});
}

std::string text_of(const Json& item, const std::string& key, const char* name) {
  const auto found = item.find(name);
  if (found == item.end() || found->is_null()) return {};
  if (!found->is_string())
    fail(fmt::format("{}.{}", key, name), "wanted a text", "write it in quotes");
  return found->get<std::string>();
}

std::string task_of(const Json& item, const std::string& key) {
  const std::string type = text_of(item, key, "type");
  if (type == "cpt" || type == "pretrain") return "pretrain";
  if (type == "chat" || type == "sft") return "sft";
  fail(key + ".type",
       fmt::format("wanted cpt (text, all of it learnt) or chat (conversations), found {}",
                   type.empty() ? "nothing" : "`" + type + "`"),
       "write type: cpt, or type: chat");
}

double weight_of(const Json& item, const std::string& key) {
  const auto found = item.find("weight");
  if (found == item.end()) return 1;
  const double weight = found->is_number() ? found->get<double>() : NAN;
  if (!(weight > 0) || !std::isfinite(weight))
    fail(key + ".weight", fmt::format("wanted a number above 0, found {}", found->dump()),
         "write weight: 1, or take the data set out of the list");
  return weight;
}

double val_ratio_of(const Json& item, const std::string& key) {
  const auto found = item.find("val_ratio");
  if (found == item.end()) return 0;
  const double ratio = found->is_number() ? found->get<double>() : NAN;
  if (!(ratio >= 0 && ratio < 1))
    fail(key + ".val_ratio",
         fmt::format("wanted a share from 0 to below 1, found {}", found->dump()),
         "write val_ratio: 0.05, or leave it out");
  if (ratio > 0 && item.contains("val_path"))
    fail(key + ".val_ratio", "wanted one of val_path and val_ratio", "leave one of them out");
  return ratio;
}

MixedDataset dataset_of(const Json& item, const std::string& key, size_t number) {
  for (const auto& [name, value] : item.items()) {
    const auto& known = known_names();
    if (std::find(known.begin(), known.end(), name) == known.end())
      fail(fmt::format("{}.{}", key, name),
           fmt::format("there is no such key{}; known: {}", did_you_mean(name, known),
                       fmt::join(known, ", ")),
           "remove it, or write it as one of these");
  }
  MixedDataset dataset{.name = text_of(item, key, "name"),
                       .path = text_of(item, key, "path"),
                       .val_path = text_of(item, key, "val_path"),
                       .val_ratio = val_ratio_of(item, key),
                       .task = task_of(item, key),
                       .schema = text_of(item, key, "schema"),
                       .weight = weight_of(item, key)};
  if (dataset.path.empty())
    fail(key + ".path", "wanted the rows of the data set", "write path: FILE");
  if (dataset.name.empty()) dataset.name = fmt::format("dataset-{}", number);
  if (dataset.schema.empty()) dataset.schema = "auto";
  return dataset;
}

}  // namespace

std::vector<MixedDataset> mixed_datasets(const config::JsonList& list) {
  std::vector<MixedDataset> datasets;
  std::set<std::string> names;
  for (const Json& item : Json::parse(list.json)) {
    const std::string key = fmt::format("datasets[{}]", datasets.size());
    datasets.push_back(dataset_of(item, key, datasets.size() + 1));
    if (!names.insert(datasets.back().name).second)
      fail(key + ".name", fmt::format("another data set is called `{}` too", datasets.back().name),
           "give each a name of its own");
  }
  return datasets;
}

}  // namespace convoy::settings

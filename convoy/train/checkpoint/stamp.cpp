// SPDX-License-Identifier: Apache-2.0
#include "convoy/train/checkpoint/stamp.h"

#include <fmt/ranges.h>  // LibTorch's fmt declares fmt::join here

#include <algorithm>
#include <utility>

#include "convoy/core/base/error.h"
#include "convoy/core/io/json_reader.h"

namespace convoy::checkpoint {
namespace {

constexpr const char* kAbsent = "(absent)";

}  // namespace

void Stamp::put(StampField field) {
  const auto same = std::find_if(fields_.begin(), fields_.end(),
                                 [&](const StampField& other) { return other.name == field.name; });
  if (same == fields_.end())
    fields_.push_back(std::move(field));
  else
    *same = std::move(field);
}

void Stamp::set(const std::string& name, const std::string& value) { put({name, value, false}); }

void Stamp::set(const std::string& name, int64_t value) {
  put({name, fmt::format("{}", value), false});
}

void Stamp::set_informational(const std::string& name, const std::string& value) {
  put({name, value, true});
}

void Stamp::set_of_state(const std::string& name, const std::string& value) {
  put({.name = name, .value = value, .decides_state = true});
}

const StampField* Stamp::find(const std::string& name) const {
  for (const StampField& field : fields_)
    if (field.name == name) return &field;
  return nullptr;
}

io::Json Stamp::to_json() const {
  io::Json json = {{"fields", io::Json::object()}, {"informational", io::Json::object()}};
  for (const StampField& field : fields_)
    json[field.informational ? "informational" : "fields"][field.name] = field.value;
  return json;
}

Stamp Stamp::from_json(const io::Json& json, const std::string& place) {
  const io::JsonReader reader(json, place);
  Stamp stamp;
  const io::JsonReader fields = reader.require_object("fields");
  for (const std::string& name : fields.keys())
    stamp.put({name, fields.require_string(name), false});
  const io::JsonReader informational = reader.require_object("informational");
  for (const std::string& name : informational.keys())
    stamp.put({name, informational.require_string(name), true});
  return stamp;
}

std::string StampDifference::sentence() const {
  return fmt::format("{}: the checkpoint has `{}`, this run `{}`", field, saved, current);
}

std::vector<StampDifference> compare(const Stamp& saved, const Stamp& current) {
  std::vector<StampDifference> differences;
  for (const StampField& field : saved.fields()) {
    const StampField* now = current.find(field.name);
    const std::string value = now == nullptr ? kAbsent : now->value;
    const bool informational = field.informational && (now == nullptr || now->informational);
    if (value != field.value)
      differences.push_back(
          {field.name, field.value, value, informational, now != nullptr && now->decides_state});
  }
  for (const StampField& field : current.fields())
    if (saved.find(field.name) == nullptr)
      differences.push_back(
          {field.name, kAbsent, field.value, field.informational, field.decides_state});
  return differences;
}

std::vector<std::string> require_same_stamp(const Stamp& saved, const Stamp& current,
                                            const std::vector<std::string>& forced,
                                            const std::string& checkpoint) {
  std::vector<std::string> notices;
  std::vector<std::string> refused;
  std::vector<std::string> also_changed;
  std::string first_field;
  for (const StampDifference& difference : compare(saved, current)) {
    const bool is_forced = !difference.decides_state &&
                           std::any_of(forced.begin(), forced.end(), [&](const std::string& name) {
                             return name == "all" || name == difference.field;
                           });
    if (difference.informational) also_changed.push_back(difference.sentence());
    if (difference.informational || is_forced) {
      notices.push_back(difference.sentence() +
                        (difference.informational ? "; applied" : "; forced"));
      continue;
    }
    if (first_field.empty()) first_field = difference.field;
    refused.push_back(fmt::format("{} ({})", difference.sentence(),
                                  difference.decides_state
                                      ? std::string("its state cannot be read so")
                                      : fmt::format("--force-stamp {}", difference.field)));
  }
  if (!refused.empty())
    throw ConfigError(
        fmt::format(
            "the checkpoint was made with other settings. {}{}{}", fmt::join(refused, ". "),
            // A hash does not show which setting changed it, so other changes are listed too.
            also_changed.empty() ? "" : ". Changed as well: ", fmt::join(also_changed, ", ")),
        {.file = checkpoint,
         .key = first_field,
         .hint = "restore the settings, force the fields you mean to change, or start anew with "
                 "--resume never"});
  return notices;
}

}  // namespace convoy::checkpoint

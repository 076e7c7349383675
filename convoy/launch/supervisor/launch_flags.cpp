// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/supervisor/launch_flags.h"

#include <algorithm>
#include <cctype>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"
#include "convoy/core/config/describe.h"
#include "convoy/core/config/document.h"
#include "convoy/core/config/flags.h"
#include "convoy/core/config/value.h"

namespace convoy::launch {
namespace {

std::string pet_name(const std::string& field) {
  std::string name = "PET_" + field;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::toupper(letter)); });
  return name;
}

// The value as a person would type it.
std::string plain_text(const config::Field& field) {
  if (const auto* text = std::get_if<std::string*>(&field.value)) return **text;
  return config::value_yaml(field);
}

}  // namespace

std::string flag_name(const std::string& field) { return "--" + config::dashed(field); }

std::vector<std::string> misspelt_pet_variables(
    const std::vector<config::Section>& lists,
    const std::map<std::string, std::string>& environment) {
  std::vector<std::string> known, found;
  for (const config::Section& list : lists)
    for (const config::Field& field : list.fields) known.push_back(pet_name(field.name));
  for (const auto& [name, value] : environment) {
    if (!name.starts_with("PET_") || std::count(known.begin(), known.end(), name) > 0) continue;
    // A name that resembles none of ours may belong to another program.
    const std::string meant = did_you_mean(name, known);
    if (!meant.empty())
      found.push_back(
          fmt::format("the variable {} matches no flag and is not read{}", name, meant));
  }
  return found;
}

void read_pet_variables(const std::vector<config::Section>& lists,
                        const std::map<std::string, std::string>& environment) {
  for (const config::Section& list : lists) {
    for (const config::Field& field : list.fields) {
      const auto found = environment.find(pet_name(field.name));
      if (found == environment.end() || found->second.empty()) continue;
      config::Node node;
      node.kind = config::NodeKind::Scalar;
      node.text = found->second;
      // torchrun accepts 1 and 0 for its switches.
      if (std::holds_alternative<bool*>(field.value) && (node.text == "1" || node.text == "0"))
        node.text = node.text == "1" ? "true" : "false";
      config::set_value(field, node, found->first);
    }
  }
}

std::vector<Origin> flag_origins(const std::vector<config::Section>& defaults,
                                 const std::vector<config::Section>& after_pet,
                                 const std::vector<config::Section>& final_values) {
  std::vector<Origin> rows;
  for (size_t list = 0; list < final_values.size(); ++list) {
    for (size_t index = 0; index < final_values[list].fields.size(); ++index) {
      const config::Field& field = final_values[list].fields[index];
      const std::string value = plain_text(field);
      const std::string pet = plain_text(after_pet[list].fields[index]);
      const std::string otherwise = plain_text(defaults[list].fields[index]);
      if (value == otherwise && pet == otherwise) continue;
      Origin row;
      row.field = field.name;
      row.value = value;
      row.decided_by = value != pet ? flag_name(field.name) : pet_name(field.name);
      if (value != pet && pet != otherwise) row.overrode = pet_name(field.name) + "=" + pet;
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
//
// The field list of one settings struct, made once by its fields() and read by every consumer:
// YAML, environment, command line, help, schema, run record. Points into the struct, which must
// outlive it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::config {

using ValueRef =
    std::variant<bool*, int64_t*, double*, std::string*, AutoOr<bool>*, AutoOr<int64_t>*,
                 AutoOr<double>*, NameList*, std::vector<std::string>*, std::vector<int64_t>*,
                 std::vector<double>*, OrderedMap<int64_t>*, OrderedMap<double>*, JsonMap*,
                 JsonList*>;

struct Field {
  std::string name;
  std::string help;
  ValueRef value;
  std::optional<double> minimum;
  bool minimum_excluded = false;  // set by above(x)
  std::optional<double> maximum;
  std::vector<std::string> choices;       // empty = any
  std::vector<std::string> aliases;       // other names in the same section
  std::vector<std::string> root_aliases;  // other full paths, "train.run_name"
  std::string winning_alias;              // beats the name when one file gives both
  std::string flag;     // name of the flag on command lines; empty: the same as `name`
  bool hidden = false;  // accepted on command lines, and in no help text
};

struct Section {
  std::string name;  // empty at the root
  std::string help;
  std::vector<std::string> aliases;
  std::vector<Field> fields;
  std::vector<Section> sections;
};

// The handle that visit() returns for a plain member.
class FieldHandle {
 public:
  explicit FieldHandle(Field& field) : field_(field) {}
  FieldHandle& at_least(double bound);
  FieldHandle& above(double bound);
  FieldHandle& at_most(double bound);
  FieldHandle& one_of(std::vector<std::string> choices);
  FieldHandle& alias(std::string name);
  FieldHandle& alias_at_root(std::string path);
  FieldHandle& winning_alias(std::string name);
  // Help and messages show `word` as the name of the flag; the field's own name stays accepted.
  FieldHandle& flag(std::string word);
  FieldHandle& hidden();

 private:
  Field& field_;
};

// The handle that visit() returns for a nested struct.
class SectionHandle {
 public:
  explicit SectionHandle(Section& parent) : parent_(parent) {}
  SectionHandle& alias(std::string name);
  // Makes the members keys of the parent section; the struct's own name is then no key.
  void flat();

 private:
  Section& parent_;
};

// The visitor that is passed to fields().
class FieldCollector {
 public:
  explicit FieldCollector(Section& section) : section_(section) {}

  template <class T>
  auto operator()(std::string_view name, T& member, std::string_view help) {
    if constexpr (requires(FieldCollector & visit) { member.fields(visit); }) {
      Section child;
      child.name = name;
      child.help = help;
      FieldCollector visit(child);
      member.fields(visit);
      section_.sections.push_back(std::move(child));
      return SectionHandle(section_);
    } else {
      Field field;
      field.name = name;
      field.help = help;
      field.value = &member;
      section_.fields.push_back(std::move(field));
      return FieldHandle(section_.fields.back());
    }
  }

 private:
  Section& section_;
};

template <class Settings>
Section list_fields(Settings& settings) {
  Section root;
  FieldCollector visit(root);
  settings.fields(visit);
  return root;
}

}  // namespace convoy::config

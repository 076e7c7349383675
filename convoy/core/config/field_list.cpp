// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/field_list.h"

#include <iterator>

namespace convoy::config {

FieldHandle& FieldHandle::at_least(double bound) {
  field_.minimum = bound;
  return *this;
}

FieldHandle& FieldHandle::above(double bound) {
  field_.minimum = bound;
  field_.minimum_excluded = true;
  return *this;
}

FieldHandle& FieldHandle::at_most(double bound) {
  field_.maximum = bound;
  return *this;
}

FieldHandle& FieldHandle::one_of(std::vector<std::string> choices) {
  field_.choices = std::move(choices);
  return *this;
}

FieldHandle& FieldHandle::alias(std::string name) {
  field_.aliases.push_back(std::move(name));
  return *this;
}

FieldHandle& FieldHandle::alias_at_root(std::string path) {
  field_.root_aliases.push_back(std::move(path));
  return *this;
}

FieldHandle& FieldHandle::winning_alias(std::string name) {
  field_.winning_alias = std::move(name);
  return *this;
}

FieldHandle& FieldHandle::flag(std::string word) {
  field_.flag = std::move(word);
  return *this;
}

FieldHandle& FieldHandle::hidden() {
  field_.hidden = true;
  return *this;
}

SectionHandle& SectionHandle::alias(std::string name) {
  parent_.sections.back().aliases.push_back(std::move(name));
  return *this;
}

void SectionHandle::flat() {
  Section child = std::move(parent_.sections.back());
  parent_.sections.pop_back();
  parent_.fields.insert(parent_.fields.end(), std::make_move_iterator(child.fields.begin()),
                        std::make_move_iterator(child.fields.end()));
  parent_.sections.insert(parent_.sections.end(), std::make_move_iterator(child.sections.begin()),
                          std::make_move_iterator(child.sections.end()));
}

}  // namespace convoy::config

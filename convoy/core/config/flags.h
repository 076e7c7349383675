// SPDX-License-Identifier: Apache-2.0
//
// Command-line flags over field lists. A command lists its flags as a settings struct; parser, help
// and docs read that list. `--max-new-tokens 5`, `--max_new_tokens=5`, `--render`, `--no-render`; a
// one-letter alias is `-x`. A list of numbers is `--dims 4,8,16` or `--dims 4 8 16`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "convoy/core/config/field_list.h"

namespace convoy::config {

enum class Positionals {
  Anywhere,  // flags may follow positionals; `--` ends the flags
  EndFlags,  // the first positional ends the flags: the rest belongs to another program
};

// Sets the members behind `lists` and returns the positional arguments. A list flag that is
// repeated adds values; for other flags the last value wins. Throws ConfigError for an unknown flag
// (with "did you mean") and for a missing or wrong value.
std::vector<std::string> parse_flags(const std::vector<Section>& lists,
                                     const std::vector<std::string>& arguments,
                                     Positionals positionals = Positionals::Anywhere);

struct TakenFlags {
  std::vector<std::string> left;         // all words that belong to no flag of `taken`
  std::vector<std::string> positionals;  // as parse_flags() returns them
  std::vector<std::string> given;        // names of the fields of `taken` that are set
};

// Like parse_flags() over the lists `taken` and `left` together. TakenFlags::left keeps its words
// in order, so that another program can parse the flags of the list `left` from them.
TakenFlags take_flags(const std::vector<Section>& taken, const std::vector<Section>& left,
                      const std::vector<std::string>& arguments);

// Sets the fields of `to` that `names` lists to their values in `from`. Both are lists of the same
// struct type.
void copy_values(const Section& from, const Section& to, const std::vector<std::string>& names);

// "node-rank" for "node_rank": the spelling of flags and commands.
std::string dashed(std::string_view name);

// "ranks" for the field nproc_per_node: the name of its flag in help and messages.
std::string flag_word(const Field& field);

// True when `name`, with - or _ and without leading dashes, is a flag of the field.
bool is_flag_of(const Field& field, std::string_view name);

// The arguments that set the values of `flags` that differ from `defaults`: {"--nproc-per-node",
// "2"}. Both lists come from the same struct type and hold plain values only. parse_flags() of the
// result gives `flags` again.
std::vector<std::string> flags_that_differ(const Section& flags, const Section& defaults);

// Throws ConfigError when a flag of `names` differs from its default: "--limit has no effect
// WHERE". `flags` and `defaults` are lists of the same struct type.
void refuse_without_effect(const Section& flags, const Section& defaults,
                           const std::vector<std::string>& names, std::string_view where);

template <class Flags>
void refuse_without_effect(Flags flags, const std::vector<std::string>& names,
                           std::string_view where) {
  Flags defaults;
  refuse_without_effect(list_fields(flags), list_fields(defaults), names, where);
}

// Spelling, kind of value, help and default of one flag, as one line of a table.
std::string flag_line(const Field& field);
// The lines of all flags that are not hidden.
std::string flag_table(const Section& list);

template <class Flags>
std::string flag_table_of() {
  Flags flags;
  return flag_table(list_fields(flags));
}

}  // namespace convoy::config

// SPDX-License-Identifier: Apache-2.0
//
// Turns the tree of one source into values by canonical path. Handles aliases, other programs' keys
// and names of variables.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "convoy/core/config/document.h"
#include "convoy/core/config/meant_keys.h"
#include "convoy/core/config/resolve.h"

namespace convoy::config {

// The names of keys as environment variables.
struct EnvironmentNames {
  std::map<std::string, std::string> paths;            // name -> key path
  std::map<std::string, std::string> other_spellings;  // name of an alias -> name

  EnvironmentNames(const Section& list, const Sources& sources);

  // The key with the environment name `word`; empty when there is none.
  std::string key_of(const std::string& word) const;
  // The known name in the same section that is nearest to the misspelt `name`; empty when none is
  // near.
  std::string nearest(const std::string& name) const;
};

// Turns the trees of sources into layers by the field list and the rules. Keeps references to all
// constructor arguments.
class Flattener {
 public:
  Flattener(const Section& list, const Sources& sources, const EnvironmentNames& names,
            std::vector<std::string>& notices, ErrorList& errors);

  Layer flatten(const Node& tree);

  // The nodes of import keys, from the highest source so far that has them.
  const std::map<std::string, Node>& imports() const { return imports_; }

 private:
  void walk(const Node& map, const Section& section, const std::string& canonical,
            const std::string& spelled);
  void read_key(const std::string& key, Node node, const Section& section,
                const std::string& canonical, const std::string& spelled);
  bool is_known(const Section& section, const std::string& key, const std::string& path) const;
  // True when rules or root aliases have keys in this section, as in train.lr_scheduler_kwargs.
  bool has_keys_below(const std::string& section) const;
  // Returns false when a rule has handled the value completely.
  bool apply_rules(Node& node, const std::string& path, const std::string& spelling);
  void record(const std::string& path, const Field& field, const std::string& key, Given given);
  void fail_unknown(const Node& node, const Section& section, const std::string& key,
                    const std::string& spelling);
  // Handles an unknown section whose keys resemble known keys elsewhere: each key becomes an error
  // of its own. Returns false when no key resembles one.
  bool add_unknown_entries(const Node& section, const std::string& spelling);

  const Section& list_;
  const std::vector<KeyRule>& rules_;
  const EnvironmentNames& names_;
  std::vector<std::string>& notices_;
  ErrorList& errors_;
  const MeantKeys meant_keys_;
  std::map<std::string, std::pair<std::string, const Field*>> root_aliases_;
  std::set<std::string> import_keys_;
  std::map<std::string, Node> imports_;
  Layer layer_;
};

}  // namespace convoy::config

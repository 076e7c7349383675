// SPDX-License-Identifier: Apache-2.0
//
// Chooses, among the launchers that left variables here, the one that started this process.
#pragma once

#include <string>
#include <vector>

#include "convoy/launch/place/environment_resolver.h"
#include "convoy/launch/place/rank_source.h"

namespace convoy::launch {

// True for torch's variables without a run id, which any program can set.
bool is_plain(const RankSource& source);

// True when --nproc-per-node is given and no node has two tasks: the task then starts the ranks of
// its node.
bool is_node_task(const RankSource& source, const ResolveOptions& options);

class SourceChoice {
 public:
  // `node_described`: Kubernetes or PET_* describe this process as a node. Throws ConfigError as
  // resolve_place does.
  SourceChoice(const Variables& variables, const ResolveOptions& options, bool node_described);

  const std::vector<RankSource>& seen() const { return sources_; }  // innermost first
  const RankSource* chosen() const;                                 // null = none describes a rank
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void read();
  int choose() const;
  int by_name(const std::string& wanted) const;
  int innermost() const;
  bool describes_rank(const RankSource& source) const;
  bool flags_say_which_node() const;
  void note_bare_ranks();
  void check_agreement(const RankSource& chosen) const;
  std::string text_of_seen() const;

  const Variables& variables_;
  const ResolveOptions& options_;
  bool node_described_;
  std::vector<RankSource> sources_;
  std::vector<std::string> notes_;
  int chosen_ = -1;
};

}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
#include "convoy/launch/place/source_choice.h"

#include <algorithm>
#include <map>

#include "convoy/core/base/error.h"
#include "convoy/core/base/suggest.h"

namespace convoy::launch {
namespace {

const std::vector<std::string>& source_names() {
  static const std::vector<std::string> kNames = {"torchrun",   "env",     "deepspeed", "openmpi",
                                                  "mpich",      "mvapich", "jsrun",     "srun",
                                                  "kubernetes", "none"};
  return kNames;
}

void check_complete(const RankSource& source) {
  if (source.missing.empty()) return;
  const std::string seen = source.seen();
  throw ConfigError(
      fmt::format("the environment describes a rank only in part: {} {} set, {} {} not", seen,
                  seen.find(',') == std::string::npos ? "is" : "are",
                  fmt::join(source.missing, ", "), source.missing.size() == 1 ? "is" : "are"),
      {.hint = is_plain(source) ? "set the missing ones, unset all of them, give --env-source "
                                  "none, or give --nnodes and --node-rank"
                                : "set the missing ones, unset all of them, or give --env-source "
                                  "none"});
}

void compare(const Fact& one, const Fact& two, const RankSource& chosen, const RankSource& other) {
  if (!one.known() || !two.known() || one.number == two.number) return;
  throw ConfigError(
      fmt::format("the environment contradicts itself: {} ({}) and {} ({})", one.text(),
                  chosen.name, two.text(), other.name),
      {.hint = fmt::format("unset one, or choose with --env-source {} or --env-source {}",
                           chosen.name, other.name)});
}

// True for variables left over in a shell or an image: number 0 without a number of ranks. A number
// above 0 implies other ranks.
bool is_stray(const RankSource& source) {
  return is_plain(source) && (source.rank.known() || source.local_rank.known()) &&
         source.rank.number <= 0 && source.local_rank.number <= 0 && !source.world_size.known() &&
         !source.local_world_size.known();
}

// The --env-source name for a common name of a launcher; empty = none.
std::string known_as(const std::string& wanted) {
  static const std::map<std::string, std::string> kNames = {
      {"slurm", "srun"},     {"sbatch", "srun"},         {"mpirun", "openmpi"},
      {"mpi", "openmpi"},    {"ompi", "openmpi"},        {"prrte", "openmpi"},
      {"intelmpi", "mpich"}, {"impi", "mpich"},          {"lsf", "jsrun"},
      {"k8s", "kubernetes"}, {"kubeflow", "kubernetes"}, {"torch", "torchrun"}};
  const auto found = kNames.find(wanted);
  return found == kNames.end() ? "" : found->second;
}

}  // namespace

bool is_plain(const RankSource& source) {
  return source.name == "env" || source.name == "deepspeed";
}

bool is_node_task(const RankSource& source, const ResolveOptions& options) {
  if (!options.nproc_per_node_given) return false;
  if (source.num_nodes.known()) return source.world_size.number <= source.num_nodes.number;
  return source.local_world_size.number <= 1;
}

SourceChoice::SourceChoice(const Variables& variables, const ResolveOptions& options,
                           bool node_described)
    : variables_(variables), options_(options), node_described_(node_described) {
  const std::string& wanted = options.env_source;
  const bool known = std::count(source_names().begin(), source_names().end(), wanted) > 0;
  if (!wanted.empty() && !known)
    throw ConfigError(fmt::format("--env-source has no `{}`{}", wanted,
                                  known_as(wanted).empty()
                                      ? did_you_mean(wanted, source_names())
                                      : fmt::format(", its name here is `{}`", known_as(wanted))),
                      {.hint = fmt::format("one of {}", fmt::join(source_names(), ", "))});
  read();
  chosen_ = choose();
  if (chosen_ < 0 && options.env_source.empty()) note_bare_ranks();
}

const RankSource* SourceChoice::chosen() const {
  return chosen_ < 0 ? nullptr : &sources_[static_cast<size_t>(chosen_)];
}

void SourceChoice::read() {
  try {
    sources_ = read_rank_sources(variables_, notes_);
  } catch (const ConfigError&) {
    // An error in other sources does not matter when the user has excluded them.
    if (options_.env_source != "none" && options_.env_source != "kubernetes") throw;
  }
}

int SourceChoice::choose() const {
  const std::string& wanted = options_.env_source;
  if (wanted.empty()) return innermost();
  if (wanted == "none" || (wanted == "kubernetes" && node_described_)) return -1;
  return by_name(wanted);
}

int SourceChoice::by_name(const std::string& wanted) const {
  for (size_t index = 0; index < sources_.size(); ++index) {
    if (sources_[index].name != wanted) continue;
    check_complete(sources_[index]);
    return static_cast<int>(index);
  }
  throw ConfigError(fmt::format("--env-source {}: the environment has no such source, found: {}",
                                wanted, text_of_seen()),
                    {.hint = "leave --env-source out to choose by what is set, or take none"});
}

int SourceChoice::innermost() const {
  int best = -1;
  for (size_t index = 0; index < sources_.size(); ++index) {
    const RankSource& source = sources_[index];
    if (is_plain(source)) continue;
    const RankSource* const so_far = best < 0 ? nullptr : &sources_[static_cast<size_t>(best)];
    const bool nearer = so_far == nullptr || source.level < so_far->level;
    const bool fuller = so_far != nullptr && source.level == so_far->level &&
                        !so_far->missing.empty() && source.missing.empty();
    if (nearer || fuller) best = static_cast<int>(index);
  }
  for (size_t index = 0; best < 0 && index < sources_.size(); ++index)
    if (is_plain(sources_[index]) && describes_rank(sources_[index]))
      best = static_cast<int>(index);
  if (best < 0) return best;
  check_complete(sources_[static_cast<size_t>(best)]);
  check_agreement(sources_[static_cast<size_t>(best)]);
  return best;
}

// Plain variables describe a rank only when they hold its number: batch scripts set WORLD_SIZE and
// MASTER_ADDR for other programs, and Kubeflow's RANK is the number of the pod.
bool SourceChoice::describes_rank(const RankSource& source) const {
  if (is_stray(source)) return false;
  if (source.local_rank.known()) return true;
  if (flags_say_which_node()) return false;
  return source.rank.known() && !variables_.has("PET_NNODES") && !variables_.has("PET_NODE_RANK");
}

// Operators of clusters number their pods by RANK and WORLD_SIZE, and users pass both on as flags.
bool SourceChoice::flags_say_which_node() const {
  return options_.num_nodes > 0 && options_.node_rank >= 0;
}

void SourceChoice::note_bare_ranks() {
  for (const RankSource& source : sources_) {
    if (!is_plain(source)) continue;
    if (is_stray(source) && !node_described_)
      notes_.push_back(
          fmt::format("{} without WORLD_SIZE describes no rank and is ignored", source.seen()));
    else if (source.rank.known() && flags_say_which_node() && !variables_.has("PET_NODE_RANK"))
      notes_.push_back(
          fmt::format("{} without LOCAL_RANK {} no rank: --nnodes {} and --node-rank {} decide",
                      source.seen(), source.world_size.known() ? "describe" : "describes",
                      options_.num_nodes, options_.node_rank));
  }
}

void SourceChoice::check_agreement(const RankSource& chosen) const {
  if (chosen.level == SourceLevel::Torchrun) return;
  for (const RankSource& other : sources_) {
    if (&other == &chosen) continue;
    if (is_plain(other)) {
      // The launcher of a node sets these variables itself for the ranks that it starts.
      if (is_node_task(chosen, options_) && !other.local_rank.known()) continue;
    } else if (other.level != chosen.level) {
      continue;
    }
    compare(chosen.rank, other.rank, chosen, other);
    compare(chosen.world_size, other.world_size, chosen, other);
    compare(chosen.local_rank, other.local_rank, chosen, other);
    compare(chosen.local_world_size, other.local_world_size, chosen, other);
  }
}

std::string SourceChoice::text_of_seen() const {
  std::string text;
  for (const RankSource& source : sources_)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", source.name, source.seen());
  if (node_described_) text += text.empty() ? "kubernetes" : ", kubernetes";
  return text.empty() ? "none" : text;
}

}  // namespace convoy::launch

// SPDX-License-Identifier: Apache-2.0
//
// Chooses the engine of a request: the one whose prefix cache holds most of its prompt, unless it
// is much busier than another; else the least busy one. The rule of SGLang's router, with hashes
// of blocks of text in place of a tree.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace convoy::serving {

// For each engine: the number of its requests; empty when the engine takes no requests.
using EngineLoads = std::vector<std::optional<int64_t>>;

// For each block of a prompt: the hash of all text up to the end of the block.
using PromptPrefixes = std::vector<uint64_t>;

class EngineChoice {
 public:
  explicit EngineChoice(size_t engines) : seen_(engines) {}

  // Returns the engine for a prompt and remembers that this engine has seen the prompt. Empty when
  // no engine takes requests.
  std::optional<size_t> choose(const EngineLoads& loads, const PromptPrefixes& prefixes);
  void forget(size_t engine);  // call it when the engine's cache is lost

 private:
  // Hashes of the prefixes that an engine has seen. The older half is dropped when there are too
  // many.
  struct SeenPrefixes {
    std::unordered_set<uint64_t> recent, older;
    bool has(uint64_t prefix) const { return recent.contains(prefix) || older.contains(prefix); }
    void add(uint64_t prefix);
  };

  std::vector<SeenPrefixes> seen_;
};

// Prefixes of model and prompt of a request in the form of OpenAI's API. Empty without a prompt.
PromptPrefixes prompt_prefixes(std::string_view body);

}  // namespace convoy::serving

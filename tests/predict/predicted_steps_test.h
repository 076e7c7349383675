// SPDX-License-Identifier: Apache-2.0
//
// Has the models and the steps for the tests of predictions.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "convoy/apps/recipes/bench/bench_predict.h"

namespace convoy::recipes {

using Json = nlohmann::ordered_json;

struct Sizes {
  int64_t hidden, ffn, layers, heads, kv_heads, vocab;
  bool tied;
};
inline constexpr Sizes kQwen7B{3584, 18944, 28, 28, 4, 152064, false};
inline constexpr Sizes kSmall{64, 160, 2, 4, 2, 512, false};

inline std::string write_config(const std::filesystem::path& folder, const Sizes& sizes) {
  const std::filesystem::path file = folder / "config.json";
  std::ofstream(file) << Json{{"model_type", "qwen2"},
                              {"hidden_size", sizes.hidden},
                              {"intermediate_size", sizes.ffn},
                              {"num_hidden_layers", sizes.layers},
                              {"num_attention_heads", sizes.heads},
                              {"num_key_value_heads", sizes.kv_heads},
                              {"vocab_size", sizes.vocab},
                              {"tie_word_embeddings", sizes.tied},
                              {"max_position_embeddings", 32768},
                              {"rms_norm_eps", 1e-6},
                              {"hidden_act", "silu"}};
  return file.string();
}

inline settings::BenchPredictFlags decode_of(const std::string& config, int64_t rows,
                                             int64_t context) {
  settings::BenchPredictFlags flags;
  flags.config = config;
  flags.decode = true;
  flags.rows = rows;
  flags.context = context;
  return flags;
}

// Returns the launches of each op, or its calls if the op launches nothing.
inline std::map<std::string, int64_t> launches_by_op(const Json& result) {
  std::map<std::string, int64_t> launches;
  for (const Json& op : result.at("ops"))
    launches[op.at("op")] =
        std::max(op.at("launches").get<int64_t>(), op.at("calls").get<int64_t>());
  return launches;
}

inline double ratio(const Json& result, const char* of, const char* to) {
  return result.at(of).get<double>() / result.at(to).get<double>();
}

inline settings::BenchPredictFlags training_of(const std::string& config, const std::string& mode,
                                               int64_t rows, int64_t tokens) {
  settings::BenchPredictFlags flags;
  flags.config = config;
  flags.train = true;
  flags.mode = mode;
  flags.rows = rows;
  flags.tokens = tokens;
  return flags;
}

inline int64_t products_in(const std::map<std::string, int64_t>& launches) {
  int64_t all = 0;
  for (const char* op : {"mm", "addmm", "addmm_"})
    if (const auto found = launches.find(op); found != launches.end()) all += found->second;
  return all;
}

}  // namespace convoy::recipes

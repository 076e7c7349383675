// SPDX-License-Identifier: Apache-2.0
//
// A language model as an engine of data processing: prompts become tokens, completions become
// texts. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>

#include "convoy/apps/recipes/loaded_model.h"
#include "convoy/core/base/log.h"
#include "convoy/farm/process/pipeline/stage_schemas.h"
#include "convoy/farm/process/text_engine.h"

namespace convoy::recipes {

struct TextEngineOptions {
  int64_t rows = 16;                 // rows that are generated together
  int64_t longest_row_tokens = 0;    // prompt and answer, if known; 0: the model's positions
  int64_t kv_blocks = 0;             // 0: enough for `rows` rows, if the device has room
  int64_t workers_on_host = 1;       // workers that share this memory
  bool kv_int8 = false;              // keys and values in 8 bits
  int64_t prefill_chunk = 0;         // most tokens of a step; 0: chosen by the device
  std::string cuda_graphs = "auto";  // settings::EngineFlags
  nlohmann::ordered_json template_kwargs = {};  // variables for the chat template
  process::StageSchemas schemas = {};           // schemas of requests, read beforehand
};

// `loaded` must outlive it. Prompts that cannot be encoded or answered end as TextFinish::Error.
// Throws ConfigError on options out of range, and on a schema that the tokenizer cannot write.
std::unique_ptr<process::TextEngine> make_text_engine(const LoadedModel& loaded,
                                                      TextEngineOptions options,
                                                      const Log& log = Log(LogLevel::Quiet));

}  // namespace convoy::recipes

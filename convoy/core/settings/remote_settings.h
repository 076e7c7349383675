// SPDX-License-Identifier: Apache-2.0
//
// Servers of OpenAI's HTTP API that give the texts, in place of a model that Convoy loads. Plain
// data. Their key comes from the environment alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace convoy::settings {

struct RemoteSettings {
  std::vector<std::string> engine;
  std::string engine_model;
  int64_t engine_timeout = 600;

  bool is_used() const { return !engine.empty(); }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("engine", engine,
          "servers of OpenAI's HTTP API that give the texts, such as http://HOST:8000/v1, with "
          "commas between; their key is CONVOY_ENGINE_KEY or OPENAI_API_KEY");
    visit("engine_model", engine_model, "model that they are asked for; empty = as --model");
    visit("engine_timeout", engine_timeout, "seconds after which a request to them is given up")
        .at_least(1)
        .at_most(86400);
  }
};

}  // namespace convoy::settings

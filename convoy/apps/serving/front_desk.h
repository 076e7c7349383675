// SPDX-License-Identifier: Apache-2.0
//
// Where requests arrive, on the threads of the HTTP server: it answers requests that need no
// engine, checks keys, and passes the rest on. Thread-safe.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "convoy/apps/serving/engine_group.h"
#include "convoy/apps/serving/json_answer.h"

namespace convoy::serving {

// Reads one key per line. Throws ConfigError when the file has no key.
std::vector<std::string> read_api_keys(const std::string& file);

class FrontDesk {
 public:
  // `keys`: a request must carry one of them; empty: none is required. `engines` must outlive it.
  FrontDesk(std::vector<std::string> model_names, std::vector<std::string> keys,
            EngineGroup& engines)
      : model_names_(std::move(model_names)), keys_(std::move(keys)), engines_(engines) {}

  void take(std::unique_ptr<http::Exchange> exchange);
  void close() { closed_ = true; }  // from here on requests get 503

 private:
  void direct(std::unique_ptr<http::Exchange>& exchange);
  void require_key(const http::Exchange& exchange) const;
  void require_open() const;
  Json model(const std::string& name) const;
  Json models() const;
  Json named_model(const std::string& name) const;

  std::vector<std::string> model_names_;
  std::vector<std::string> keys_;
  EngineGroup& engines_;
  std::atomic<bool> closed_{false};
  int64_t started_ = now_seconds();
};

}  // namespace convoy::serving

// SPDX-License-Identifier: Apache-2.0
//
// Flags of `convoy serve`. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "convoy/core/config/field.h"
#include "convoy/core/settings/command_flags.h"

namespace convoy::settings {

// ModelFlags without the adapter, which would apply to all requests.
struct ServedModelFlags {
  ModelFlags model;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model.model,
          "model folder in Hugging Face layout, GGUF file, or hub id found in the local hub cache");
    visit("revision", model.revision, "hub revision looked up in the cache");
    model.compute_fields(visit);
  }
};

// Flags of the front, which listens for requests.
struct ServerFlags {
  std::string host = "127.0.0.1";
  int64_t port = 8000;
  std::string api_key_file;
  int64_t engines = 0;
  int64_t engine_timeout = 300;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("host", host, "address to listen on; beyond this machine --api-key-file is required");
    visit("port", port, "port to listen on; 0 = any free one").at_least(0).at_most(65535);
    visit("api_key_file", api_key_file,
          "file with one key a line; a request must carry one of them (Authorization: Bearer KEY)");
    visit("engines", engines,
          "processes that compute, each with the whole model; 0 = one for each GPU, on CPUs one "
          "for each NUMA node")
        .at_least(0);
    visit("engine_timeout", engine_timeout,
          "seconds after which an engine that gives no sign, between two of its steps, is killed "
          "and replaced")
        .at_least(1)
        .at_most(86400);
  }
};

// Flags of each engine.
struct ServeFlags {
  config::NameList adapters;
  std::string served_name;
  int64_t max_waiting = 256;
  double shutdown_time = 30;
  std::string template_path;
  config::JsonMap template_kwargs;
  SamplingValues sampling;
  std::string tool_call_parser = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(
        "adapters", adapters,
        "NAME=DIR: a PEFT adapter, or a LoRA file in GGUF, served as the model NAME; may be given "
        "more than once")
        .flag("adapter");
    visit("served_name", served_name, "name of the model for clients; empty = as --model");
    visit("max_waiting", max_waiting,
          "answers that may wait for a place in an engine's batch; further requests get status 429")
        .at_least(0);
    visit("shutdown_time", shutdown_time,
          "seconds that running answers have to end after SIGTERM or Ctrl-C")
        .at_least(0);
    visit("template_path", template_path, "chat template file that replaces the model's own");
    visit("template_kwargs", template_kwargs,
          "variables for the chat template; a request's chat_template_kwargs override them");
    sampling.fields(visit);
    visit("tool_call_parser", tool_call_parser,
          "form of tool calls in the model's texts; auto = as its chat template teaches, none = "
          "they stay in the text")
        .one_of({"auto", "hermes", "llama3_json", "none"});
  }
};

}  // namespace convoy::settings

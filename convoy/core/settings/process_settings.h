// SPDX-License-Identifier: Apache-2.0
//
// Every setting of `convoy process`, listed once: YAML, flags (process_flags.h), help, record and
// docs read the lists. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/base/usable_cpus.h"
#include "convoy/core/config/field.h"
#include "convoy/core/settings/activation_words.h"
#include "convoy/core/settings/remote_settings.h"
#include "convoy/core/settings/solution_fields.h"
#include "convoy/core/settings/template_kwargs.h"
#include "convoy/core/settings/usual_sampling.h"

namespace convoy::settings {

struct ProcessModelSettings {
  std::string name;
  std::string adapter;
  std::string revision = "main";
  std::string dtype = "auto";
  std::string quantization = "auto";
  bool double_quant = false;
  std::string template_path;
  config::JsonMap template_kwargs;

  // True when the weights are quantised while they are loaded.
  bool encodes() const { return quantization != "auto" && quantization != "none"; }

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("name", name,
          "model folder in Hugging Face layout, GGUF file, or hub id found in the local hub cache");
    visit("adapter", adapter, "folder of a PEFT adapter, or a LoRA file in GGUF");
    visit("revision", revision, "hub revision looked up in the cache");
    visit("dtype", dtype,
          "compute type; auto = bf16 on GPUs that have it and CPUs with AVX2, else fp32")
        .one_of({"auto", "fp32", "bf16"});
    visit("quantization", quantization,
          "quantise linear layers while loading, in bitsandbytes' format; auto = as stored in the "
          "folder")
        .one_of({"auto", "none", "nf4", "fp4", "int8"});
    visit("double_quant", double_quant, "nf4 and fp4: also store the block scales in 8 bits");
    visit("template_path", template_path, "chat template file that replaces the model's own");
    visit("template_kwargs", template_kwargs, "variables for the chat template");
  }
};

struct ProcessDataSettings {
  std::string dataset;
  std::string dataset_name;
  std::string config;
  std::string split;
  int64_t num_examples = -1;
  int64_t start_from = 0;
  std::string problem_field;
  std::string solution_field;
  std::string answer_field;
  std::string bad_rows = "keep";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dataset", dataset,
          "input: a key (`--list-datasets`), a hub id in the local cache, a file or a "
          "folder");
    visit("dataset_name", dataset_name, "hub id that replaces the one of the key");
    visit("config", config, "configuration of the data set; empty = the key's own, or the default");
    visit("split", split, "split of the data set; empty = train, or the only one");
    visit("num_examples", num_examples, "rows to process; -1 = all").at_least(-1);
    visit("start_from", start_from, "first row, counted over the whole data set").at_least(0);
    visit_problem_columns(*this, visit);
    visit("bad_rows", bad_rows,
          "rows that cannot be read or have no problem: keep them as bad_input, or stop")
        .one_of({"keep", "error"});
  }
};

struct PromptSettings {
  std::string chat = "auto";
  std::string system;
  std::string opens_think = "auto";
  std::string generate;
  std::string evaluate;
  std::string improve;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("chat", chat,
          "on: prompts are user turns in the model's own chat template; off: plain text; auto = on "
          "where the model has a template")
        .one_of({"auto", "on", "off"});
    visit("system", system, "system turn of chat prompts; empty = none");
    visit("opens_think", opens_think,
          "end chat prompts inside <think>; auto = as in the model's template")
        .one_of({"auto", "yes", "no"});
    visit("generate", generate,
          "file of the first prompt; empty = the shipped one (`convoy config prompts`)");
    visit("evaluate", evaluate, "file of the judge's prompt");
    visit("improve", improve, "file of the prompt for a better solution");
  }
};

struct DrawSettings {
  int64_t n = 1;
  double temperature = kUsualTemperature;
  int64_t top_k = 0;
  double top_p = kUsualTopP;
  double min_p = 0;
  double repetition_penalty = 1;
  int64_t max_tokens = kUsualMaxNewTokens;
  config::NameList stop;
  std::string schema;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("n", n, "solutions of each problem").at_least(1).at_most(4096);
    visit_draw_fields(
        *this, visit,
        "where this, top_k, top_p, min_p, repetition_penalty or max_tokens is not given, the "
        "model's generation_config.json decides, and its default only where that says nothing");
    visit("schema", schema, "file with a JSON Schema that every solution must match; empty = none");
  }
};

struct EvaluateSettings {
  double temperature = 0.3;
  double top_p = 0.95;
  int64_t max_tokens = 1024;
  double threshold = 0.8;
  config::OrderedMap<double> weights = {{"correctness", 0.4},
                                        {"step_by_step_clarity", 0.2},
                                        {"logical_coherence", 0.2},
                                        {"mathematical_precision", 0.2}};
  std::string schema;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("temperature", temperature, "temperature of the judge; 0 = always the most likely token")
        .at_least(0);
    visit("top_p", top_p, "nucleus share of the judge").above(0).at_most(1);
    visit("max_tokens", max_tokens, "longest judgement in tokens").at_least(1);
    visit("threshold", threshold, "solutions below this score are improved").at_least(0).at_most(1);
    visit("weights", weights, "criteria that the judge scores, with weights that sum to 1")
        .at_least(0)
        .at_most(1);
    visit("schema", schema,
          "file with a JSON Schema that every judgement must match; scores = an object with a "
          "number from 0 to 1 for each of the weights; empty = none");
  }
};

struct ImproveSettings {
  int64_t max_iterations = 2;
  double feedback_below = 0.7;
  double temperature = kUsualTemperature;
  double top_p = kUsualTopP;
  config::AutoOr<int64_t> max_tokens;
  std::string schema;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("max_iterations", max_iterations, "maximum improvements per solution; 0 = none")
        .at_least(0)
        .at_most(1000);
    visit("feedback_below", feedback_below, "criteria below this score are named in the feedback")
        .at_least(0)
        .at_most(1);
    visit("temperature", temperature, "of improved solutions").at_least(0);
    visit("top_p", top_p, "nucleus share of improved solutions").above(0).at_most(1);
    visit("max_tokens", max_tokens, "longest improved solution; auto = as generate.max_tokens")
        .at_least(1);
    visit("schema", schema,
          "file with a JSON Schema that every improved solution must match; empty = as "
          "generate.schema");
  }
};

struct FilterSettings {
  config::NameList keep;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("keep", keep,
          "condition of rows that are kept, such as `score >= 0.8`, `verified == yes`, "
          "`finish == stop`; may be given more than once, all must hold");
  }
};

// The orders in which solutions of one problem are taken.
inline const std::vector<std::string>& solution_orders() {
  static const std::vector<std::string> words = {"first", "shortest", "longest", "highest_score",
                                                 "lowest_score"};
  return words;
}

struct PairSettings {
  std::string path;
  std::string by = "verified";
  int64_t per_problem = 1;
  std::string chosen = "first";
  std::string rejected = "first";
  double margin = 0;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit(
        "path", path,
        "file of preference pairs to write beside the output, for `convoy train` with task dpo or "
        "orpo; it may be asked for after the run, which then computes nothing");
    visit("by", by,
          "verified: a right solution is chosen and a wrong one rejected; score: the one that the "
          "judge scores higher is chosen")
        .one_of({"verified", "score"});
    visit("per_problem", per_problem, "most pairs of a problem").at_least(1);
    visit("chosen", chosen, "which of several chosen solutions comes first")
        .one_of(solution_orders());
    visit("rejected", rejected, "which of several rejected solutions comes first")
        .one_of(solution_orders());
    visit("margin", margin, "by score: both scores differ by more than this")
        .at_least(0)
        .at_most(1);
  }
};

struct AnswerRowSettings {
  std::string path;
  std::string by = "verified";
  int64_t per_problem = 1;
  std::string order = "first";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("path", path,
          "file of good solutions to write beside the output, as rows of prompt and completion for "
          "`convoy train`; it may be asked for after the run, which then computes nothing");
    visit("by", by,
          "verified: solutions whose answer is right; score: those that the judge scores at least "
          "evaluate.threshold")
        .one_of({"verified", "score"});
    visit("per_problem", per_problem, "most solutions of a problem").at_least(1);
    visit("order", order, "which of several good solutions comes first").one_of(solution_orders());
  }
};

struct ProblemRowSettings {
  std::string path;
  double min_difficulty = 0;
  double max_difficulty = 1;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("path", path,
          "file of problems to write beside the output, with answer and difficulty, for `convoy "
          "train` with task grpo; it may be asked for after the run, which then computes nothing");
    visit("min_difficulty", min_difficulty,
          "only problems of which at least this share of the samples is wrong")
        .at_least(0)
        .at_most(1);
    visit("max_difficulty", max_difficulty,
          "only problems of which at most this share of the samples is wrong")
        .at_least(0)
        .at_most(1);
  }
};

struct ProcessOutputSettings {
  std::string path = "./data/final_data.json";
  bool csv = true;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("path", path, "file to write, such as .json, .jsonl.gz or .parquet");
    visit("csv", csv, "a .json output gets a CSV file of the same name beside it");
  }
};

struct WorkerSettings {
  int64_t world_size = -1;
  int64_t num_nodes = 1;
  int64_t node_rank = 0;
  std::string master_addr = "localhost";
  int64_t master_port = 12355;
  std::string store;
  bool texts_in_store = false;
  std::string devices = "auto";
  int64_t threads = 0;
  config::AutoOr<int64_t> batch_size;
  int64_t lease_s = 60;
  int64_t max_tries = 3;
  double telemetry_interval_s = 1;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("world_size", world_size,
          "workers of this node; -1 = one for each GPU, one where there is none")
        .at_least(-1);
    visit("num_nodes", num_nodes, "nodes that share the run").at_least(1);
    visit("node_rank", node_rank, "number of this node: 0 plans and publishes, the others join")
        .at_least(0);
    visit("master_addr", master_addr, "host of the shared store, where num_nodes is above 1");
    visit("master_port", master_port, "port of the shared store").at_least(1).at_most(65535);
    visit("store", store,
          "ledger of rows: a SQLite file or postgresql://...; empty = in the run folder");
    visit("texts_in_store", texts_in_store,
          "rows and texts travel through the store: the nodes need no common folder");
    visit("devices", devices, "devices of the workers").one_of({"auto", "cpu", "cuda"});
    visit("threads", threads,
          "CPU threads of each worker; 0 = OMP_NUM_THREADS, else the host's cores divided by its "
          "workers")
        .at_least(0)
        .at_most(kMostThreads);
    visit("batch_size", batch_size,
          "rows in flight in each worker; auto = 64 on CPUs, 256 on GPUs, "
          "512 for each server")
        .at_least(1)
        .at_most(65536);
    visit("lease_s", lease_s, "seconds after which a silent worker's rows go to another")
        .at_least(1);
    visit("max_tries", max_tries,
          "attempts for a text on which the engine fails, and for a row that crashes its worker")
        .at_least(1);
    visit("telemetry_interval_s", telemetry_interval_s, "seconds between lines of devices.csv")
        .above(0);
  }
};

struct ProcessEngineSettings {
  bool deterministic = false;
  bool low_memory = false;
  double memory_gib = 12;
  config::AutoOr<int64_t> kv_blocks;
  config::AutoOr<int64_t> prefill_chunk;
  config::AutoOr<int64_t> max_requests;
  std::string kv_dtype = "model";
  std::string weights = "model";
  std::string activations = "model";
  std::string cuda_graphs = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("deterministic", deterministic,
          "a row's output does not depend on other rows; the output has no times");
    visit("low_memory", low_memory,
          "keep each worker within memory_gib: the first that fits of fewer rows at a time, "
          "recomputed rows, int8 KV, int8 and int4 weights");
    visit("memory_gib", memory_gib, "memory limit of a low_memory worker, in GiB").above(0);
    visit("kv_blocks", kv_blocks,
          "KV-cache blocks of 32 tokens; auto = as many as the texts may need, in at most half of "
          "the free memory of a CPU and 90 % of a GPU's")
        .at_least(1);
    visit("prefill_chunk", prefill_chunk,
          "maximum tokens of a step: longer prompts are processed in chunks, together with other "
          "texts; auto = 512 on CPUs, 2048 to 8192 on GPUs by their memory")
        .at_least(1);
    visit("max_requests", max_requests,
          "texts generated together; auto = batch_size times generate.n, on GPUs 256 where "
          "batch_size is auto, too")
        .at_least(1);
    visit("kv_dtype", kv_dtype, "KV cache in the model's type, or in 8 bits")
        .one_of({"model", "int8"});
    visit("weights", weights,
          "linear layers in the model's type, or in 8 or 4 bits: less memory, different rounding")
        .one_of({"model", "int8", "int4"});
    visit("activations", activations, kActivationsHelp).one_of({"model", "int8"});
    visit("cuda_graphs", cuda_graphs,
          "start the decode steps of a GPU as a whole, not launch by launch; auto = on where "
          "LibTorch "
          "has CUDA graphs")
        .one_of({"auto", "on", "off"});
  }
};

struct ProcessSettings {
  std::string task = "process";
  int64_t seed = 42;
  std::string run_name;
  std::string run_dir;
  std::vector<std::string> stages = {"generate", "verify", "evaluate", "improve", "vote", "filter"};
  ProcessModelSettings model;
  RemoteSettings remote;
  ProcessDataSettings data;
  PromptSettings prompts;
  DrawSettings generate;
  EvaluateSettings evaluate;
  ImproveSettings improve;
  FilterSettings filter;
  ProcessOutputSettings output;
  PairSettings pairs;
  AnswerRowSettings answers;
  ProblemRowSettings problems;
  WorkerSettings workers;
  ProcessEngineSettings engine;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("task", task, "process: rows of a data set through a model").one_of({"process"});
    visit("seed", seed, "fixes every draw").at_least(0);
    visit("run_name", run_name, "name of the run; empty = that of the output file");
    visit("run_dir", run_dir,
          "run folder; empty = runs/NAME of the output; an existing run in it is resumed");
    visit("stages", stages, "stages for each row, in this order");
    visit("model", model, "the model that writes, judges and improves");
    visit("remote", remote, "servers that have the model, in place of workers that load it");
    visit("data", data, "which rows");
    visit("prompts", prompts, "prompts of the model");
    visit("generate", generate, "sampling of solutions");
    visit("evaluate", evaluate, "how solutions are judged");
    visit("improve", improve, "when and how solutions are improved");
    visit("filter", filter, "which rows are kept");
    visit("output", output, "what is written");
    visit("pairs", pairs, "preferences that the solutions of a problem make");
    visit("answers", answers, "good solutions as rows for training");
    visit("problems", problems, "problems as rows for training from rewards");
    visit("workers", workers, "who computes");
    visit("engine", engine, "how it is computed");
  }
};

}  // namespace convoy::settings

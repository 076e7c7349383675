// SPDX-License-Identifier: Apache-2.0
//
// Flags of the commands that run in convoy-worker. The front shows them in its help; the worker
// parses them. Plain data.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "convoy/core/base/log.h"
#include "convoy/core/config/field.h"
#include "convoy/core/settings/activation_words.h"
#include "convoy/core/settings/quantization_settings.h"
#include "convoy/core/settings/strategies.h"

namespace convoy::settings {

// The flags that every command has, in the front and in the worker.
struct CommonFlags {
  bool quiet = false;
  bool verbose = false;
  bool json = false;
  bool no_input = false;
  std::string color = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("quiet", quiet, "no messages but warnings and errors").alias("q");
    visit("verbose", verbose, "more messages").alias("v");
    visit("json", json, "machine-readable data on stdout, errors as JSON on stderr");
    visit("no_input", no_input, "never ask");
    visit("color", color, "colour on terminals").one_of({"auto", "always", "never"});
  }

  Log log() const {
    return Log(quiet ? LogLevel::Quiet : verbose ? LogLevel::Verbose : LogLevel::Normal);
  }
};

// The model that a command reads.
struct ModelSourceFlags {
  std::string model;
  std::string adapter;
  std::string revision = "main";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("model", model,
          "model folder in Hugging Face layout, GGUF file, or hub id found in the local hub cache");
    visit("adapter", adapter, "folder of a PEFT adapter, or a LoRA file in GGUF");
    visit("revision", revision, "hub revision looked up in the cache");
  }
};

// The model that a command computes with.
struct ModelFlags : ModelSourceFlags {
  std::string dtype = "auto";
  QuantizationFlags held;

  template <class Visitor>
  void fields(Visitor& visit) {
    ModelSourceFlags::fields(visit);
    compute_fields(visit);
  }
  template <class Visitor>
  void compute_fields(Visitor& visit) {
    visit("dtype", dtype,
          "compute type; auto = bf16 on GPUs that have it and CPUs with AVX2, else fp32")
        .one_of({"auto", "fp32", "bf16"});
    held.fields(visit);
  }
};

// Values that the front passes to the ranks that it starts; hidden from users.
struct RankFlags {
  std::string ranks_folder;
  std::string devices = "cpu";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("ranks_folder", ranks_folder, "folder that the ranks of this command share");
    visit("devices", devices, "cpu or cuda");
  }
};

inline constexpr const char* kTemplateKwargsHelp =
    "variables for the chat template, such as '{\"enable_thinking\": false}'; a row's "
    "chat_template_kwargs override them";
inline constexpr const char* kBadRowsHelp =
    "unreadable rows: stop, count and list them, or replace damaged characters";

struct ScoreFlags {
  std::string data;
  std::string output;
  std::string supervise = "auto";
  std::string schema = "auto";
  std::string text_field = "text";
  std::string template_path;
  config::JsonMap template_kwargs;
  std::string bad_rows = "error";
  int64_t max_seq_len = 0;
  int64_t limit = 0;
  int64_t batch_size = 8;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("data", data,
          "rows: a file such as .jsonl, .csv or .parquet, a folder or pattern of them, a data set "
          "of the local hub cache")
        .alias("dataset");
    visit("output", output, "file for one JSON row per input row; empty = stdout").alias("o");
    visit("supervise", supervise, "chat rows: every assistant turn, only the last, or all tokens")
        .one_of({"auto", "assistant", "last", "all"});
    visit("schema", schema, "row schema; auto = by the row's keys")
        .one_of({"auto", "messages", "sharegpt", "alpaca", "prompt_completion", "triple",
                 "rendered", "text", "loose"});
    visit("text_field", text_field, "column of plain-text rows");
    visit("template_path", template_path, "chat template file that replaces the model's own");
    visit("template_kwargs", template_kwargs, kTemplateKwargsHelp);
    visit("bad_rows", bad_rows, kBadRowsHelp).one_of({"error", "skip", "replace"});
    visit("max_seq_len", max_seq_len,
          "cut rows to this many tokens; 0 = refuse rows beyond the model's positions")
        .at_least(0);
    visit("limit", limit, "score only the first rows; 0 = all").at_least(0).alias("num_examples");
    visit("batch_size", batch_size, "rows per forward pass").at_least(1);
  }
};

// How tokens are drawn; `auto`: sampling_choice.h decides.
struct SamplingValues {
  config::AutoOr<int64_t> max_new_tokens;
  config::AutoOr<double> temperature;
  config::AutoOr<double> top_p;
  config::AutoOr<int64_t> top_k;
  config::AutoOr<double> min_p;
  config::AutoOr<double> repetition_penalty;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("max_new_tokens", max_new_tokens,
          "longest answer in tokens; auto = as the model's generation_config.json says, else "
          "4096, within the model's positions")
        .at_least(1)
        .alias("max_tokens");
    visit("temperature", temperature, "0 = greedy; auto = as the model's file says, else 0.2")
        .at_least(0);
    visit("top_p", top_p, "nucleus share; auto = as the model's file says, else 0.9")
        .above(0)
        .at_most(1);
    visit("top_k", top_k,
          "most likely tokens kept; 0 = all; auto = as the model's file says, else 0")
        .at_least(0);
    visit("min_p", min_p,
          "drop tokens below this share of the likeliest token's probability; 0 = none; auto = as "
          "the model's file says, else 0")
        .at_least(0)
        .at_most(1);
    visit("repetition_penalty", repetition_penalty,
          "divisor of the logits of tokens already in prompt or answer; 1 = none; auto = as the "
          "model's file says, else 1")
        .above(0);
  }
};

// Sampling parameters of text generation.
struct SamplingFlags : SamplingValues {
  int64_t n = 1;
  int64_t seed = 42;
  bool greedy = false;
  config::NameList stop;
  bool logprobs = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    SamplingValues::fields(visit);
    visit("n", n, "answers per prompt").at_least(1);
    visit("seed", seed, "fixes every draw").at_least(0);
    visit("greedy", greedy, "always the most likely token");
    visit("stop", stop, "string that ends an answer; may be given more than once");
    visit("logprobs", logprobs, "writes the log-probability of every token of an answer");
  }
};

// Parameters of the generation engine.
struct EngineFlags {
  config::AutoOr<int64_t> batch_size;
  config::AutoOr<int64_t> kv_blocks;
  config::AutoOr<int64_t> prefill_chunk;
  bool deterministic = false;
  std::string weights = "model";
  std::string activations = "model";
  std::string kv_dtype = "model";
  std::string cuda_graphs = "auto";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("batch_size", batch_size, "answers generated together; auto = 16 on CPUs, 256 on GPUs")
        .at_least(1);
    visit("kv_blocks", kv_blocks,
          "KV-cache blocks of 32 tokens; auto = as many as the answers may need, in at most half "
          "of the free memory of a CPU and 90 % of a GPU's")
        .at_least(1);
    visit("prefill_chunk", prefill_chunk,
          "maximum tokens of a step: longer prompts are processed in chunks, together with other "
          "answers; auto = 512 on CPUs, 2048 to 8192 on GPUs by their memory")
        .at_least(1);
    visit("deterministic", deterministic,
          "on GPUs, use LibTorch's deterministic algorithms, for answers without a temperature; on "
          "CPUs an answer never depends on the others in its batch");
    visit("weights", weights,
          "linear layers in the model's type, or in 8 or 4 bits: less memory, different rounding")
        .one_of({"model", "int8", "int4"});
    visit("activations", activations, kActivationsHelp).one_of({"model", "int8"});
    visit("kv_dtype", kv_dtype, "KV cache in the model's type, or in 8 bits")
        .one_of({"model", "int8"});
    visit("cuda_graphs", cuda_graphs,
          "start the decode steps of a GPU as a whole, not launch by launch; auto = on where "
          "LibTorch "
          "has CUDA graphs")
        .one_of({"auto", "on", "off"});
  }
};

struct GenerateFlags {
  std::string prompts;
  config::NameList prompt;
  std::string chat = "auto";
  bool interactive = false;
  std::string output;
  std::string system_prompt;
  std::string template_path;
  config::JsonMap template_kwargs;
  std::string schema;
  std::string bad_rows = "error";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("prompts", prompts,
          "file of rows, or a .txt file with one prompt per line; `messages` rows use the chat "
          "template, --chat decides for others")
        .alias("data")
        .alias("dataset");
    visit("prompt", prompt, "a prompt; may be given more than once");
    visit("chat", chat,
          "on: prompts are user turns in the model's chat template; off: plain text; auto = on for "
          "--prompt and the lines of a .txt file where the model has a template, off for rows")
        .one_of({"auto", "on", "off"});
    visit("interactive", interactive, "chat on the terminal");
    visit("output", output, "file for one JSON row per answer; empty = stdout").alias("o");
    visit("system_prompt", system_prompt, "system turn of conversations that have none");
    visit("template_path", template_path, "chat template file that replaces the model's own");
    visit("template_kwargs", template_kwargs, kTemplateKwargsHelp);
    visit("schema", schema, "file with a JSON Schema that every answer must match; empty = none");
    visit("bad_rows", bad_rows, kBadRowsHelp).one_of({"error", "skip", "replace"});
  }
};

struct EvalFlags {
  std::string data;
  std::string split = "test";
  int64_t limit = 0;
  bool generate = false;
  std::string samples;
  std::string output_dir;
  config::JsonMap template_kwargs;
  std::string bad_rows;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("data", data, "rows to evaluate; without it the split of the config").alias("dataset");
    visit("split", split, "split of the config").one_of({"test", "val"});
    visit("limit", limit, "evaluate only the first rows, 200 for a quick look; 0 = all")
        .at_least(0)
        .alias("num_examples");
    visit("generate", generate, "answer every row and measure the answers");
    visit("samples", samples,
          "measure saved predictions, without a model: rows of \"input\", \"pred\" and \"ref\"; "
          "\"ref\" is a text or a list of correct texts");
    visit("output_dir", output_dir, "folder for metrics.json and samples.jsonl; empty = print only")
        .flag("output")
        .alias("o");
    visit("template_kwargs", template_kwargs, kTemplateKwargsHelp);
    visit(
        "bad_rows", bad_rows,
        "unreadable rows: stop, count and list them, or replace damaged characters; empty = as in "
        "the config")
        .one_of({"error", "skip", "replace"});
  }
};

struct MergeFlags {
  std::string output;
  std::string dtype = "auto";
  std::string base = "auto";
  std::string base_model;
  std::string data;
  bool text_only = false;
  QuantizationFlags held;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("output", output, "folder to write").alias("output_dir").alias("o");
    visit("dtype", dtype, "stored type; auto = each weight's type in the base")
        .one_of({"auto", "fp32", "bf16", "fp16"})
        .alias("save_dtype");
    visit("base", base,
          "required for a quantised model: add the adapter to the dequantised weights, or to the "
          "original ones")
        .one_of({"auto", "dequantized", "full"});
    visit("base_model", base_model,
          "with --base full: the original model, from which --model was quantised");
    visit("data", data, "rows to report the loss on, before and after; empty = a built-in text")
        .alias("dataset");
    visit("text_only", text_only,
          "of a checkpoint that also sees: write the text model alone, as a model of its own");
    held.fields(visit);
  }
};

// Flags of every benchmark that compares with another program.
struct BenchFlags {
  std::string dtype = "bf16";
  std::string geometry = "small";
  int64_t rounds = 1;
  bool no_peer = false;
  std::string peer_python;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("dtype", dtype, "compute type").one_of({"fp32", "bf16"});
    visit("geometry", geometry, "model size")
        .one_of({"tiny", "small", "smollm2-135m", "qwen05b", "llama-3.2-1b", "qwen15b", "qwen7b",
                 "qwen2.5-7b", "llama-3.1-8b"});
    visit("rounds", rounds, "number of rounds in which both run in turn").at_least(1);
    visit("no_peer", no_peer, "no peer (transformers, PEFT) beside it; it runs with one rank only");
    visit("peer_python", peer_python,
          "python with the peer's packages; empty = CONVOY_PEER_PYTHON or python3");
  }
};

struct BenchTrainFlags {
  std::string mode = "lora";
  int64_t seq = 512;
  int64_t batch = 2;
  int64_t steps = 5;
  bool recompute = false;
  std::string strategy = "auto";
  int64_t global_batch = 0;
  std::string output_dir;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("mode", mode, "what is trained").one_of({"lora", "qlora", "dora", "full"});
    visit("seq", seq, "tokens per row").at_least(2);
    visit("batch", batch, "rows per micro-batch and rank").at_least(1);
    visit("global_batch", global_batch,
          "rows per step, over accumulation and ranks; 0 = batch x ranks")
        .at_least(0);
    visit("strategy", strategy, "how ranks share the work").one_of(rank_strategy_words());
    visit("steps", steps, "timed steps, after one warm-up step").at_least(1);
    visit("recompute", recompute, "recompute each block in backward, keep only its input");
    visit("output_dir", output_dir, "folder for train_convoy_GEOMETRY.json; empty = none")
        .flag("output")
        .alias("o");
  }
};

struct BenchGenerateFlags {
  std::vector<int64_t> batches = {1, 8, 32};
  int64_t prompts = 32;
  int64_t prompt_tokens = 64;
  int64_t new_tokens = 64;
  double temperature = 0.6;
  double top_p = 0.95;
  int64_t repeats = 3;
  std::string weights = "model";
  std::string activations = "model";
  std::string quantization = "none";
  bool double_quant = false;
  std::string kv_dtype = "model";
  std::string peer = "transformers";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("batches", batches, "batch sizes; each is timed with greedy decoding and with sampling")
        .at_least(1);
    visit("prompts", prompts, "prompts, at most four times the batch size").at_least(1);
    visit("prompt_tokens", prompt_tokens, "tokens of a prompt").at_least(1);
    visit("new_tokens", new_tokens,
          "maximum new tokens of a row; rows generate from a quarter of it up")
        .at_least(4);
    visit("temperature", temperature, "temperature of the sampled runs").above(0.0);
    visit("top_p", top_p, "nucleus share of the sampled runs").above(0.0).at_most(1.0);
    visit("repeats", repeats, "timed runs of each kind, after one warm-up run").at_least(1);
    visit("weights", weights, "format of Convoy's linear layers, as for convoy generate")
        .one_of({"model", "int8", "int4"});
    visit("activations", activations, kActivationsHelp).one_of({"model", "int8"});
    visit("quantization", quantization, "Convoy's linear layers in bitsandbytes' format")
        .one_of({"none", "nf4", "fp4", "int8"});
    visit("double_quant", double_quant, "nf4 and fp4: also store the block scales in 8 bits");
    visit("kv_dtype", kv_dtype, "format of Convoy's KV cache").one_of({"model", "int8"});
    visit("peer", peer, "library beside it; llama.cpp takes q8_0 for int8 weights, q4_0 for int4")
        .one_of({"transformers", "llama.cpp"});
  }
};

struct BenchPredictFlags {
  std::string device = "h200";
  std::string model;
  std::string config;
  bool decode = false;
  bool prefill = false;
  bool train = false;
  std::string mode = "lora";
  int64_t rows = 0;
  int64_t context = 1024;
  int64_t tokens = 2048;
  bool recompute = false;
  bool selective = false;
  std::string attention = "flash";
  std::string optimizer_state_dtype = "fp32";
  std::string master_weights = "fp32";
  int64_t ranks = 1;
  std::string strategy = "auto";
  std::string dtype = "bf16";
  std::string weights = "model";
  std::string quantization = "none";
  bool double_quant = false;
  std::string kv_dtype = "model";
  double temperature = 0;
  double top_p = 1;
  bool measure = true;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("device", device, "GPU whose speed is assumed")
        .one_of({"h100", "h200", "h100-pcie", "a100", "l40s", "rtx4090"});
    visit("model", model,
          "folder or hub id whose config.json says the sizes; weights are not read");
    visit("config", config, "config.json itself, in place of --model");
    visit("decode", decode, "a step that draws one token more for each row");
    visit("prefill", prefill, "a step that reads whole prompts");
    visit("train", train, "a step of a training, as of convoy bench train");
    visit("mode", mode, "of --train: what is trained").one_of({"lora", "qlora", "full"});
    visit("rows", rows, "rows of the step; 0 = 16 of --decode, else 1").at_least(0);
    visit("context", context, "of --decode: tokens of each row, with the one that is read")
        .at_least(2);
    visit("tokens", tokens, "of --prefill and --train: tokens of each row").at_least(1);
    visit("recompute", recompute, "of --train: recompute each block in backward");
    visit("selective", selective, "of --train: recompute norms and activations in backward");
    visit("attention", attention, "of --train: whose kernel of attention")
        .one_of({"flash", "cudnn"});
    visit("optimizer_state_dtype", optimizer_state_dtype, "of --train: moments of AdamW")
        .one_of({"fp32", "bf16", "int8"});
    visit("master_weights", master_weights, "of --train: master copies of trained bf16 weights")
        .one_of({"fp32", "none"});
    visit("ranks", ranks, "of --train: GPUs of one host, each with --rows rows").at_least(1);
    visit("strategy", strategy, "of --train: how ranks share the work")
        .one_of(rank_strategy_words());
    visit("dtype", dtype, "compute type").one_of({"fp32", "bf16"});
    visit("weights", weights, "linear maps, as for convoy generate")
        .one_of({"model", "int8", "int4"});
    visit("quantization", quantization, "linear maps in bitsandbytes' format")
        .one_of({"none", "nf4", "fp4", "int8"});
    visit("double_quant", double_quant, "scales of blocks of nf4 and fp4 in 8 bits, too");
    visit("kv_dtype", kv_dtype, "keys and values").one_of({"model", "int8"});
    visit("temperature", temperature, "of the draw; 0 = the likeliest token").at_least(0.0);
    visit("top_p", top_p, "share of the nucleus of the draw").above(0.0).at_most(1.0);
    visit("measure", measure, "where there is a GPU, time the same step on it");
  }
};

}  // namespace convoy::settings

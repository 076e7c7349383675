// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "convoy/apps/recipes/model_files/model_check.h"
#include "convoy/core/base/counted.h"
#include "convoy/core/telemetry/progress.h"

namespace convoy::recipes {
namespace {

using nlohmann::ordered_json;

std::string count_of(const ordered_json& facts, const char* name) {
  return telemetry::count_text(facts.value(name, 0.0));
}

std::string line(const char* name, const std::string& text) {
  return text.empty() ? "" : fmt::format("{:<14} {}\n", name, text);
}

std::string model_line(const ordered_json& facts) {
  if (!facts.contains("family")) {
    const std::string type = facts.value("model_type", "");
    return type.empty() ? "" : type + ", refused: see below";
  }
  std::string text = fmt::format(
      "{} ({}), {} parameters, {} layers, {}", facts.value("family", ""),
      facts.value("architecture", ""), count_of(facts, "parameters"), facts.value("layers", 0),
      facts.value("tied_head", false) ? "head tied to the embedding" : "own head");
  return text;
}

std::string forms_line(const ordered_json& facts) {
  if (!facts.contains("forms")) return "";
  const auto forms = facts.at("forms").get<std::vector<std::string>>();
  return forms.empty() ? "those of a plain decoder" : fmt::format("{}", fmt::join(forms, "; "));
}

std::string missing_line(const ordered_json& facts) {
  if (!facts.contains("missing")) return "";
  const ordered_json& missing = facts.at("missing");
  const std::string nearest = missing.value("nearest", "");
  return missing.value("needs", "") +
         (nearest.empty() ? "" : "; the nearest family that runs: " + nearest);
}

std::string fit_text(const ordered_json& fits) {
  if (fits.is_null()) return "not compared with config.json";
  return fits.get<bool>() ? "they fit config.json" : "they do not fit config.json";
}

std::string context_line(const ordered_json& facts) {
  if (!facts.contains("family")) return "";
  std::string text = fmt::format("{} tokens", facts.value("context_tokens", int64_t{0}));
  for (const ordered_json& window : facts.at("sliding_windows"))
    text += fmt::format(", window of {} in some or all layers", window.get<int64_t>());
  return text;
}

std::string weights_line(const ordered_json& facts) {
  if (!facts.contains("weights")) return "";
  const ordered_json& weights = facts.at("weights");
  std::vector<std::string> dtypes;
  for (const auto& [dtype, count] : weights.at("tensors_by_dtype").items())
    dtypes.push_back(fmt::format("{} {}", count.get<int64_t>(), dtype));
  return fmt::format("{} values in {} ({} tensors); {}", count_of(weights, "elements"),
                     telemetry::bytes_text(weights.value("bytes", int64_t{0})),
                     fmt::join(dtypes, ", "), fit_text(weights.at("fit_config")));
}

std::string token_text(const ordered_json& token) {
  if (token.is_null()) return "none";
  return fmt::format("`{}` ({})", token.value("token", ""), token.value("id", 0));
}

std::string tokenizer_line(const ordered_json& facts) {
  const ordered_json& found = facts.at("tokenizer");
  if (found.is_null()) return "none that can be read";
  return fmt::format("{}, {} ids; BOS {}{}; EOS {}; PAD {}", found.value("kind", ""),
                     found.value("vocab_size", 0), token_text(found.at("bos")),
                     found.value("adds_bos", false) ? ", added" : "", token_text(found.at("eos")),
                     token_text(found.at("pad")));
}

std::string template_line(const ordered_json& facts) {
  const ordered_json& found = facts.at("chat_template");
  if (found.is_null()) return "none";
  if (!found.value("renders", false)) return "does not render";
  const ordered_json& training = found.at("training");
  return fmt::format("{} generation tags{}",
                     found.value("generation_tags", false) ? "has" : "has no",
                     training.is_null() ? "" : "; " + training.get<std::string>());
}

std::string quantization_line(const ordered_json& facts) {
  const ordered_json& found = facts.at("quantization");
  if (found.is_null()) return "";
  return found.is_object() ? found.value("quant_method", "of no known method") : found.dump();
}

std::string file_lines(const ordered_json& facts) {
  std::string text;
  for (const ordered_json& file : facts.at("files")) {
    const ordered_json& bytes = file.at("bytes");
    text += fmt::format("  {:<36} {:>14}  {}\n", file.value("name", ""),
                        bytes.is_null() ? "" : fmt::format("{}", bytes.get<int64_t>()),
                        file.value("state", ""));
  }
  return text;
}

std::string mode_text(const ordered_json& row) {
  const std::string mode = row.value("mode", "");
  const char* const details = mode == "lora" ? " rank 16" : mode == "qlora" ? " nf4" : "";
  return fmt::format("{}{}, {}", mode, details, row.value("dtype", ""));
}

// " does not fit: 22.40 GiB here", or the number of ranks that would fit.
std::string misfit_text(const ordered_json& memory, const ordered_json& row) {
  std::vector<int> misfits;
  for (size_t place = 0; place < row.at("fits_here").size(); ++place)
    if (row.at("fits_here")[place] == false)
      misfits.push_back(memory.at("ranks")[place].get<int>());
  if (misfits.empty()) return "";
  const std::string here = telemetry::bytes_text(memory.at("here_bytes").get<int64_t>()) + " here";
  if (misfits.size() == memory.at("ranks").size()) return "  does not fit: " + here;
  return fmt::format("  {} {} not fit: {}",
                     misfits.size() == 1 ? counted(misfits[0], "rank")
                                         : fmt::format("{} ranks", fmt::join(misfits, ", ")),
                     misfits == std::vector<int>{1} ? "does" : "do", here);
}

std::string memory_lines(const ordered_json& facts) {
  if (!facts.contains("memory")) return "";
  const ordered_json& memory = facts.at("memory");
  std::string text = fmt::format(
      "memory of each rank of a training ({}; {} x {} tokens a micro-batch; several ranks share by "
      "zero3)\n  {:<22}",
      memory.value("hardware", ""), memory.value("batch", int64_t{0}),
      memory.value("seq", int64_t{0}), "");
  for (const ordered_json& ranks : memory.at("ranks"))
    text += fmt::format("{:>12}", counted(ranks.get<int>(), "rank"));
  text += "\n";
  for (const ordered_json& row : memory.at("rows")) {
    text += fmt::format("  {:<22}", mode_text(row));
    for (const ordered_json& bytes : row.at("bytes_per_rank"))
      text += fmt::format("{:>12}", telemetry::bytes_text(bytes.get<int64_t>()));
    text += misfit_text(memory, row) + "\n";
  }
  return text;
}

}  // namespace

std::string model_check_text(const ModelCheck& check) {
  const ordered_json& facts = check.facts;
  std::string text = line("folder", facts.value("folder", ""));
  if (!facts.at("commit").is_null()) text += line("commit", facts.at("commit").get<std::string>());
  text += line("model", model_line(facts));
  text += line("missing", missing_line(facts));
  text += line("forms", forms_line(facts));
  text += line("context", context_line(facts));
  if (facts.contains("vocab_size"))
    text += line("vocabulary", fmt::format("{} rows", facts.value("vocab_size", int64_t{0})));
  text += line("weights", weights_line(facts));
  text += line("quantised", quantization_line(facts));
  text += line("tokenizer", tokenizer_line(facts));
  text += line("chat template", template_line(facts));
  const std::vector<int> ends = facts.at("end_token_ids").get<std::vector<int>>();
  text += line("texts end at", ends.empty() ? "no id of config.json or generation_config.json"
                                            : fmt::format("{}", fmt::join(ends, ", ")));
  text += "files\n" + file_lines(facts);
  const auto unread = facts.at("files_not_read").get<std::vector<std::string>>();
  if (!unread.empty()) text += fmt::format("  not read: {}\n", fmt::join(unread, ", "));
  text += memory_lines(facts);
  for (const std::string& notice : check.notices) text += "note: " + notice + "\n";
  for (const std::string& refusal : check.refusals) text += "refused: " + refusal + "\n";
  if (check.refusals.empty()) text += "it can be trained and used\n";
  return text;
}

}  // namespace convoy::recipes

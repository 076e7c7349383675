// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/process/ledger/ledger_record.h"

#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"

namespace convoy::process {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// An engine's text is UTF-8, but its error messages may hold any bytes.
std::string text_of(const ordered_json& value) {
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

template <class Read>
auto decoded(std::string_view bytes, const char* what, Read&& read) {
  try {
    return read(ordered_json::parse(bytes));
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{} cannot be read: {}", what, error.what()),
                    {.hint = "the store of this run is damaged: start anew with another --run-dir, "
                             "or restore a copy"});
  }
}

}  // namespace

std::string row_hash(const ordered_json& value) { return sha256_hex(json(value).dump()); }

std::string encode_input(const InputRow& row) {
  ordered_json record = {{"index", row.index},
                         {"source_index", row.source_index},
                         {"hash", row.hash},
                         {"value", row.value}};
  if (!row.unreadable.empty()) record["unreadable"] = row.unreadable;
  return record.dump();
}

InputRow decode_input(std::string_view bytes) {
  return decoded(bytes, "an input row", [](ordered_json record) {
    InputRow row{.index = record.at("index"),
                 .source_index = record.at("source_index"),
                 .hash = record.at("hash")};
    row.value = std::move(record.at("value"));
    row.unreadable = record.value("unreadable", std::string());
    return row;
  });
}

std::string encode_text(int64_t row_index, const KeptStep& step) {
  const TextResult& result = step.result;
  ordered_json record = {{"index", row_index},
                         {"key", step.key},
                         {"finish", text_finish_name(result.finish)},
                         {"text", result.text},
                         {"prompt_tokens", result.prompt_tokens},
                         {"new_tokens", result.new_tokens}};
  if (!result.other_finish.empty()) record["other_finish"] = result.other_finish;
  if (result.finish == TextFinish::Error) {
    record["error"] = result.error;
    record["error_may_pass"] = result.error_may_pass;
    record["tries"] = step.tries;
  }
  return text_of(record);
}

KeptStep decode_text(int64_t row_index, std::string_view bytes) {
  return decoded(bytes, "a text", [&](ordered_json record) {
    if (record.at("index") != row_index)
      throw DataError(fmt::format("found a text of row {} in the place of row {}",
                                  record.at("index").dump(), row_index),
                      {.hint = "the store of this run is damaged: start anew with another "
                               "--run-dir, or restore a copy"});
    KeptStep step{.key = record.at("key"), .result = {}};
    step.tries = record.value("tries", 1);
    step.result.finish = text_finish_named(record.at("finish").get<std::string>());
    step.result.other_finish = record.value("other_finish", std::string());
    step.result.text = std::move(record.at("text").get_ref<std::string&>());
    step.result.error = record.value("error", std::string());
    step.result.error_may_pass = record.value("error_may_pass", false);
    step.result.prompt_tokens = record.at("prompt_tokens");
    step.result.new_tokens = record.at("new_tokens");
    return step;
  });
}

std::string encode_row(const StoredRow& row) {
  return text_of({{"index", row.index},
                  {"source_index", row.source_index},
                  {"hash", row.hash},
                  {"state", row.row.state},
                  {"texts", row.cost.texts},
                  {"prompt_tokens", row.cost.prompt_tokens},
                  {"new_tokens", row.cost.new_tokens},
                  {"value", row.row.value}});
}

StoredRow decode_row(std::string_view bytes) {
  return decoded(bytes, "a finished row", [](ordered_json record) {
    StoredRow row{.index = record.at("index"),
                  .source_index = record.at("source_index"),
                  .hash = record.at("hash")};
    row.row.state = record.at("state");
    row.row.value = std::move(record.at("value"));
    row.cost = {record.at("texts"), record.at("prompt_tokens"), record.at("new_tokens")};
    return row;
  });
}

json encode_place(const RecordPlace& place) {
  if (const auto* const record = std::get_if<std::string>(&place)) return *record;
  const auto& segment = std::get<SegmentOffset>(place);
  return json::array({segment.file, segment.offset, segment.length});
}

RecordPlace decode_place(const json& place) {
  try {
    if (place.is_string()) return place.get<std::string>();
    return SegmentOffset{place.at(0), place.at(1), place.at(2)};
  } catch (const json::exception& error) {
    throw DataError(fmt::format("the place of a record cannot be read: {}", error.what()),
                    {.hint = "the store of this run is damaged: start anew with another --run-dir, "
                             "or restore a copy"});
  }
}

RecordPlace parse_place(std::string_view text) {
  return decode_place(json::parse(text, nullptr, false));
}

}  // namespace convoy::process

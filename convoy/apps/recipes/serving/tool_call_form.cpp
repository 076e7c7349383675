// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/recipes/serving/tool_call_form.h"

#include <fmt/format.h>

namespace convoy::recipes {
namespace {

using text::GrammarKind;

// A text of the grammar. Lark's texts are written as JSON's are.
std::string literal(std::string_view text) { return Json(text).dump(); }

std::string tag(std::string_view name, bool is_special) {
  return is_special ? std::string(name) : literal(name);
}

// The schema of a function's arguments; they are an object in every format.
Json schema_of(const CallableFunction& function, bool are_required) {
  if (!function.strict.value_or(are_required)) return {{"type", "object"}};
  if (function.parameters.is_null()) return {{"type", "object"}, {"additionalProperties", false}};
  Json schema = function.parameters;
  if (schema.value("type", Json("object")) != "object")
    FieldReader::refuse(function.field + ".parameters.type", "\"object\"", schema["type"]);
  schema["type"] = "object";
  return schema;
}

// The rules `call` and `call_0`, `call_1`, ...: a call behind its opening tag.
std::string rules_of_calls(const CallRules& rules, std::string_view begin, std::string_view key,
                           const std::string& end) {
  std::string any = "call: ", each;
  for (size_t at = 0; at < rules.functions.size(); ++at) {
    any += fmt::format("{}call_{}", at == 0 ? "" : " | ", at);
    const std::string head = fmt::format("{}{{\"name\": {}, \"{}\": ", begin,
                                         Json(rules.functions[at].name).dump(), key);
    each += fmt::format("call_{}: {} json_{} {}\n", at, literal(head), at, end);
  }
  return any + "\n" + each;
}

// "one", or "one (between one)*" where an answer may have several.
std::string several(const CallRules& rules, const std::string& one, std::string_view between) {
  return rules.is_single ? one : fmt::format("{} ({} {})*", one, literal(between), one);
}

// The calls alone. A model that has thought begins a new line before them.
std::string lark_of_calls_alone(const std::string& list) {
  return fmt::format("start: BLANK? {}\nBLANK: /[ \\n]{{1,4}}/\n", list);
}

// Calls among text, which does not hold their tag elsewhere.
std::string lark_of_hermes(const CallRules& rules, const CallTags& tags) {
  const std::string calls = rules_of_calls(
      rules, "\n", "arguments", literal("}\n") + " " + tag(kCloseCall, tags.close_is_special));
  const std::string open = tag(kOpenCall, tags.open_is_special);
  if (rules.are_required) return lark_of_calls_alone(several(rules, open + " call", "\n")) + calls;
  const std::string begin = tags.open_is_special
                                ? fmt::format("begin: TEXT? {}\n", open)
                                : fmt::format("begin[lazy]: /(.|\\n)*{}/\n", kOpenCall);
  return fmt::format(
             "start: (begin call){} TEXT?\n"
             "TEXT: /(.|\\n)+/ & ~/(.|\\n)*{}(.|\\n)*/\n",
             rules.is_single ? "?" : "*", kOpenCall) +
         begin + calls;
}

// Calls in the place of text, which does not begin as they do.
std::string lark_of_llama(const CallRules& rules) {
  const std::string calls = rules_of_calls(rules, "", "parameters", literal("}"));
  const std::string list = several(rules, "call", "; ");
  if (rules.are_required) return lark_of_calls_alone(list) + calls;
  return fmt::format(
             "start: TEXT? | {}\n"
             "TEXT: /[ \\t\\r\\n]*[^ \\t\\r\\n{{](.|\\n)*/ & "
             "~/[ \\t\\r\\n]*<\\|python_tag\\|>(.|\\n)*/\n",
             list) +
         calls;
}

// The field that asks for a form, for errors.
std::string asking_field(const CallRules& rules) {
  if (rules.are_required) return "tool_choice";
  if (rules.is_single) return "parallel_tool_calls";
  for (const CallableFunction& function : rules.functions)
    if (function.strict.value_or(false)) return function.field + ".strict";
  return "tools";
}

}  // namespace

AskedForm form_of_calls(const CallRules& rules, ToolFormat format, const CallTags& tags) {
  AskedForm form{.source = {GrammarKind::LarkWithSchemas, ""}, .field = asking_field(rules)};
  if (format == ToolFormat::None)
    throw ApiError(
        400,
        fmt::format("`{}` needs to know how the model writes tool calls, and this server "
                    "leaves them in the text: start convoy serve with another "
                    "--tool-call-parser",
                    form.field),
        form.field, "unsupported_parameter");
  Json schemas = Json::array();
  for (const CallableFunction& function : rules.functions) {
    schemas.push_back(schema_of(function, rules.are_required));
    form.parts.push_back(
        {{GrammarKind::JsonSchema, schemas.back().dump()}, function.field + ".parameters"});
  }
  const std::string lark =
      format == ToolFormat::Hermes ? lark_of_hermes(rules, tags) : lark_of_llama(rules);
  form.source.text = Json({{"lark", lark}, {"schemas", schemas}}).dump();
  return form;
}

}  // namespace convoy::recipes

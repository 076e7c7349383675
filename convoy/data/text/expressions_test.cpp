// SPDX-License-Identifier: Apache-2.0
//
// Templates write what Jinja2 writes, or are refused: the rows of
// tests/golden/text/make_expressions.py, and shapes that chat templates use.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "convoy/core/base/files.h"
#include "convoy/data/text/rust_handles.h"

namespace convoy::text {
namespace {

using nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Outcome {
  std::optional<std::string> text;
  std::string error;
};

Outcome render(const std::string& source, const std::string& context) {
  ConvoyTemplate* handle = nullptr;
  ConvoyText error{};
  int64_t line = 0;
  if (convoy_template_create(bytes_of(source), source.size(), &handle, &line, &error) != 0)
    return {std::nullopt, take_text(error)};
  const RustTemplate owner(handle);
  ConvoyConversation* read = nullptr;
  if (convoy_conversation_read(bytes_of(context), context.size(), &read, &error) != 0)
    return {std::nullopt, take_text(error)};
  const RustConversation conversation(read);
  ConvoyRender rendered{};
  if (convoy_template_render(handle, read, SIZE_MAX, 0, &rendered, &line, &error) != 0)
    return {std::nullopt, take_text(error)};
  std::string text(reinterpret_cast<const char*>(rendered.text.data), rendered.text.size);
  convoy_render_free(rendered);
  return {std::move(text), ""};
}

// A reader that is fast but not exact is one unit in the last place beside them.
TEST(NumbersOfRows, AreTheDoublesThatPythonReads) {
  for (const char* number :
       {"914.4251823299733", "961.9132383299313", "3.588754913e-28", "-0.1", "1e+22",
        "2.2250738585072014e-308", "1.7976931348623157e+308", "123456789.12345679", "5e-324"}) {
    const Outcome outcome = render("{{ x }}|{{ x|tojson }}", std::string("{\"x\":") + number + "}");
    ASSERT_TRUE(outcome.text.has_value()) << outcome.error;
    EXPECT_EQ(*outcome.text, std::string(number) + "|" + number);
  }
}

TEST(ExpressionsGolden, RenderAsJinja2OrAreRefused) {
  const char* folder = std::getenv("CONVOY_SOURCE_DIR");
  const fs::path file =
      fs::path(folder != nullptr ? folder : ".") / "tests/golden/text/expressions.json";
  const auto golden = ordered_json::parse(read_file(file));
  const std::string context = golden["context"].dump();
  size_t refused = 0;
  size_t errors = 0;
  for (const auto& row : golden["rows"]) {
    const std::string source = row[0].get<std::string>();
    const Outcome outcome = render(source, context);
    if (row[1].is_null()) {
      ++errors;
      EXPECT_FALSE(outcome.text.has_value()) << source << "\nwrites " << *outcome.text;
    } else if (outcome.text.has_value()) {
      EXPECT_EQ(*outcome.text, row[1].get<std::string>()) << source;
    } else {
      EXPECT_NE(outcome.error, "") << source;
      ++refused;
    }
  }
  EXPECT_GE(golden["rows"].size(), 3000u);
  EXPECT_GE(errors, 50u);
  EXPECT_LE(refused, golden["rows"].size() / 50);
}

struct Shape {
  const char* source;
  const char* text;
};

// For each of these the output differed from Jinja2's, or it was refused.
TEST(Expressions, ShapesOfChatTemplates) {
  const std::string context =
      R"({"messages": [{"role": "user", "content": "a"},
                       {"role": "assistant", "content": [{"type": "text", "text": "it's"}]}]})";
  for (const Shape& shape : std::initializer_list<Shape>{
           // Namespaces are assigned to from within functions, whether these read them or not.
           {"{% set ns = namespace(x=0) %}{% for m in messages %}{% generation %}{{ m.role }}"
            "{% set ns.x = 1 %}{% endgeneration %}{% endfor %}{{ ns.x }}",
            "userassistant1"},
           {"{% set ns = namespace(x=0) %}{% macro f() %}{% set ns.x = 2 %}{% endmacro %}"
            "{{ f() }}{{ ns.x }}",
            "2"},
           {"{% set ns = namespace(x=0) %}{% macro f() %}{{ caller() }}{% endmacro %}"
            "{% call f() %}{% set ns.x = 3 %}{% endcall %}{{ ns.x }}",
            "3"},
           // Whatever turns a list into text writes Python's repr.
           {"{{ messages[1].content | trim }}", "[{'type': 'text', 'text': \"it's\"}]"},
           {"{{ messages[1].content | upper }}", "[{'TYPE': 'TEXT', 'TEXT': \"IT'S\"}]"},
           {"{{ '' ~ messages[1].content }}", "[{'type': 'text', 'text': \"it's\"}]"},
           {"{{ messages[1].content | replace('text', 't') }}", "[{'type': 't', 't': \"it's\"}]"},
           {"{{ (1, 'a') }}{{ (1,) }}", "(1, 'a')(1,)"},
           {"{{ true is number }}{{ 2.5 | round }}{{ 0.5 | round }}", "True2.00.0"},
           {"{{ ['B', 'a'] | min }}{{ ['B', 'a'] | max }}", "aB"},
           {"{{ '\"<\\'' | e }}", "&#34;&lt;&#39;"},
           {"{{ 1e16 ~ '' }}{{ true ~ none }}", "1e+16TrueNone"},
           {"{{ '%s is %d' % ('x', 3) }}{{ 'aaa' | replace('a', 'b', 2) }}", "x is 3bba"},
           {"{{ 'x' | int }}{{ 5 | int }}{{ '0x1f' | int(0, 16) }}", "0531"},
           {"{{ messages | join(',', attribute='role') }}", "user,assistant"},
           {"{{ [{'n': 1}, {'n': 2}] | sum(attribute='n') }}{{ -[{'n': 1}][0].n }}", "3-1"},
           {"{{ 7 // -2 }}{{ -7 % 3 }}{{ 1 / 2 }}{{ 2 ** 3 ** 2 }}", "-420.564"},
       }) {
    const Outcome outcome = render(shape.source, context);
    EXPECT_EQ(outcome.text.value_or("refused: " + outcome.error), shape.text) << shape.source;
  }
}

TEST(Expressions, WhatJinja2RaisesIsRefused) {
  for (const char* source : {"{{ 1 / 0 }}", "{{ missing.x }}", "{{ missing + 1 }}", "{{ 1 < 'a' }}",
                             "{{ [1].append(2) }}", "{{ 'a' + 1 }}", "{{ {}.update({}) }}",
                             "{{ ''.join([1]) }}", "{{ 1 | nope }}", "{{ range(100001) }}",
                             "{{ [3, 'a'] | sort }}", "{% set messages.x = 1 %}"})
    EXPECT_FALSE(render(source, "{}").text.has_value()) << source;
}

}  // namespace
}  // namespace convoy::text

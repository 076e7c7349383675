// SPDX-License-Identifier: Apache-2.0
//
// Broken tokenizers and hostile templates give an error in time and never a crash.
#include <gtest/gtest.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/data/text/chat_template.h"
#include "convoy/data/text/tokenizer.h"

namespace convoy::text {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
namespace fs = std::filesystem;

fs::path golden_folder() {
  const char* folder = std::getenv("CONVOY_SOURCE_DIR");
  return fs::path(folder != nullptr ? folder : ".") / "tests/golden/text";
}

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "convoy_text_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }
  void write(const std::string& name, std::string_view bytes) const {
    write_file_atomic(path_ / name, bytes);
  }

 private:
  fs::path path_;
};

// Returns the CPU time of this thread, because wall time depends on other work of the machine.
double processor_seconds_of(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

// Returns the text of the error that `work` throws, or "" if it throws none.
std::string refusal(const std::function<void()>& work) {
  try {
    work();
  } catch (const DataError& error) {
    return error.sentence();
  }
  return "";
}

struct Broken {
  const char* name;
  const char* says;  // a part of the error's text
  std::function<void(json&)> spoil;
};

std::vector<Broken> broken_tokenizers() {
  return {
      {"negative id", "model.vocab", [](json& t) { t["model"]["vocab"]["a"] = -1; }},
      {"id 2^31", "model.vocab", [](json& t) { t["model"]["vocab"]["a"] = int64_t{1} << 31; }},
      {"id 2^64", "model.vocab", [](json& t) { t["model"]["vocab"]["a"] = 1.8446744073709552e19; }},
      {"fraction", "model.vocab", [](json& t) { t["model"]["vocab"]["a"] = 1.5; }},
      {"text id", "model.vocab", [](json& t) { t["model"]["vocab"]["a"] = "7"; }},
      {"huge gap", "largest id", [](json& t) { t["model"]["vocab"]["a"] = 9000000; }},
      {"id twice", "already", [](json& t) { t["model"]["vocab"]["a"] = 7; }},
      {"no vocab", "model.vocab", [](json& t) { t["model"].erase("vocab"); }},
      {"vocab a list", "model.vocab", [](json& t) { t["model"]["vocab"] = json::array({1}); }},
      {"unknown merge", "model.merges[0]",
       [](json& t) {
         t["model"]["merges"][0] = json::array({"nope", "never"});
       }},
      {"merge of three", "model.merges[1]", [](json& t) { t["model"]["merges"][1] = "a b c"; }},
      {"merge to nothing", "merged token",
       [](json& t) {
         t["model"]["merges"][0] = json::array({"!", "?"});
       }},
      {"no merges", "model.merges", [](json& t) { t["model"].erase("merges"); }},
      {"unknown model", "model.type", [](json& t) { t["model"]["type"] = "Magic"; }},
      {"no model", "model", [](json& t) { t.erase("model"); }},
      {"unknown pre-tokenizer", "tokenizer.json",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Magic"}};
       }},
      {"broken pattern", "tokenizer.json",
       [](json& t) {
         t["pre_tokenizer"] = {{"type", "Split"},
                               {"pattern", {{"Regex", "(((("}}},
                               {"behavior", "Isolated"},
                               {"invert", false}};
       }},
      {"unknown token missing", "unk_token", [](json& t) { t["model"]["unk_token"] = "<nope>"; }},
      {"vocab of one bad word", "model.vocab", [](json& t) { t["model"]["vocab"] = 1; }},
      {"merges of one bad word", "merges", [](json& t) { t["model"]["merges"] = 1; }},
      {"merge of a number", "model.merges[2]", [](json& t) { t["model"]["merges"][2] = 5; }},
      {"merge of numbers", "model.merges[2]",
       [](json& t) {
         t["model"]["merges"][2] = json::array({1, 2});
       }},
      {"merge of three texts", "model.merges[2]",
       [](json& t) {
         t["model"]["merges"][2] = json::array({"a", "b", "c"});
       }},
      {"prefix longer than a token", "prefix",
       [](json& t) { t["model"]["continuing_subword_prefix"] = "##########"; }},
      {"other version", "version", [](json& t) { t["version"] = "2.0"; }},
      {"added id wrong", "added_tokens[0].id", [](json& t) { t["added_tokens"][0]["id"] = 3; }},
      {"added id -1", "added_tokens[0].id", [](json& t) { t["added_tokens"][0]["id"] = -1; }},
      {"added far away", "declares", [](json& t) { t["added_tokens"].back()["id"] = 5000; }},
      {"added empty", "added_tokens[0].content",
       [](json& t) { t["added_tokens"][0]["content"] = ""; }},
  };
}

TEST(BrokenTokenizer, IsRefusedByNameAndPath) {
  const json sound = json::parse(read_file(golden_folder() / "llama3/tokenizer.json"));
  for (const Broken& broken : broken_tokenizers()) {
    SCOPED_TRACE(broken.name);
    json spoilt = sound;
    broken.spoil(spoilt);
    const Folder folder;
    folder.write("tokenizer.json", spoilt.dump());
    const std::string words = refusal([&] { Tokenizer::load(folder.path()); });
    EXPECT_NE(words.find(broken.says), std::string::npos) << words;
    EXPECT_NE(words.find("tokenizer.json"), std::string::npos) << words;
  }
}

TEST(BrokenTokenizer, NotJsonOrTooDeepOrMissing) {
  const Folder folder;
  EXPECT_NE(refusal([&] { Tokenizer::load(folder.path()); }), "");
  const std::string deep(100000, '[');
  for (const std::string& bytes :
       {std::string(), std::string("{"), std::string("[]"), std::string("null"), deep,
        "{\"model\":" + deep, std::string("\xff\xfe"), std::string("{\"a\":\"\\ud800\"}")}) {
    folder.write("tokenizer.json", bytes);
    EXPECT_NE(refusal([&] { Tokenizer::load(folder.path()); }), "") << bytes.substr(0, 20);
  }
}

TEST(BrokenTokenizer, ConfigThatContradictsTheVocabulary) {
  const Folder folder;
  folder.write("tokenizer.json", read_file(golden_folder() / "llama3/tokenizer.json"));
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder": {"9999": {"content": "<new>", "special": true}}})");
  EXPECT_NE(refusal([&] { Tokenizer::load(folder.path()); }).find("9999"), std::string::npos);
  folder.write("tokenizer_config.json", R"({"added_tokens_decoder": {"-4": {"content": "x"}}})");
  EXPECT_NE(refusal([&] { Tokenizer::load(folder.path()); }), "");
}

// Gemma 3 has thousands of added tokens. Each call of the tokenizers library that adds tokens
// rebuilds the search for all of them, so one call for each token would be quadratic.
TEST(Tokenizer, ThousandsOfAddedTokensInLinearTime) {
  const Folder folder;
  const json sound = json::parse(read_file(golden_folder() / "llama3/tokenizer.json"));
  folder.write("tokenizer.json", sound.dump());
  const auto vocab_size = Tokenizer::load(folder.path()).vocab_size();
  const auto seconds_with = [&](int count) {
    json declared = json::object();
    for (int index = 0; index < count; ++index)
      declared[std::to_string(vocab_size + index)] = {
          {"content", "<unused" + std::to_string(index) + ">"}, {"special", index % 2 == 0}};
    folder.write("tokenizer_config.json", json{{"added_tokens_decoder", declared}}.dump());
    return processor_seconds_of([&] {
      const auto tokenizer = Tokenizer::load(folder.path());
      EXPECT_EQ(tokenizer.vocab_size(), vocab_size + count);
      const auto last = static_cast<int32_t>(vocab_size + count - 1);
      EXPECT_EQ(
          tokenizer.encode("<unused" + std::to_string(count - 1) + ">", SpecialTokens::Omit).ids,
          std::vector<int32_t>{last});
    });
  };
  const double quarter = seconds_with(1600);
  // Quadratic work would take sixteen times as long; the constant absorbs small numbers.
  EXPECT_LT(seconds_with(6400), 8 * quarter + 0.5);
}

TEST(Tokenizer, MegabyteWithoutASpaceInLinearTime) {
  for (const char* name : {"llama3", "gemma", "metaspace", "wordpiece", "unigram"}) {
    SCOPED_TRACE(name);
    const auto tokenizer = Tokenizer::load(golden_folder() / name);
    const std::string small(1 << 19, 'a');
    const std::string large(1 << 20, 'a');
    size_t tokens = 0;
    const double half = processor_seconds_of([&] { tokenizer.encode(small, SpecialTokens::Omit); });
    const double whole = processor_seconds_of(
        [&] { tokens = tokenizer.encode(large, SpecialTokens::Omit).ids.size(); });
    EXPECT_GT(tokens, 0u);
    // Quadratic work would take four times as long; the constant absorbs small numbers.
    EXPECT_LT(whole, 3.2 * half + 0.5);
  }
}

TEST(Tokenizer, InvalidUtf8IsAnError) {
  const auto tokenizer = Tokenizer::load(golden_folder() / "llama3");
  for (const char* text : {"\xff", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_THROW(tokenizer.encode(text, SpecialTokens::Omit), DataError);
  EXPECT_THROW(tokenizer.piece(-1), DataError);
  EXPECT_THROW(tokenizer.piece(1 << 30), DataError);
}

std::string repeated(const std::string& text, int count) {
  std::string out;
  for (int turn = 0; turn < count; ++turn) out += text;
  return out;
}

TEST(HostileTemplate, EndsInAnErrorInTime) {
  const std::vector<std::string> sources = {
      "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
      "{{ " + repeated("(", 10000) + "1" + repeated(")", 10000) + " }}",
      "{{ " + repeated("[", 10000),
      repeated("{% if 1 %}", 10000) + repeated("{% endif %}", 10000),
      "{% for a in range(100000) %}{% for b in range(100000) %}x{% endfor %}{% endfor %}",
      "{{ 'a' * 1000000000 }}",
      "{{ [1] * 1000000000 }}",
      "{{ range(1000000000) | list }}",
      "{{ ''.__class__.__mro__ }}",
      "{{ messages.__class__ }}",
      "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(90) %}"
      "{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
      "{% set ns = namespace(x=[1]) %}{% for i in range(90) %}{% set ns.x = ns.x + ns.x %}"
      "{% endfor %}{{ ns.x | length }}{{ ns.x | list | length }}",
      "{% set ns = namespace(x='a' * 1000000) %}{% for i in range(100000) %}"
      "{% set y = ns.x | replace('a', 'aa') | upper %}{% endfor %}",
      "{% set ns = namespace(x=[]) %}{% for i in range(100000) %}{% set ns.x = [ns.x] %}"
      "{% endfor %}{{ ns.x }}",
      "{% for i in range(100000) %}{{ 'x' * 1000 }}{% endfor %}",
      "{% include 'secret' %}",
      "{% import '/etc/passwd' as p %}",
      "{% extends 'x' %}",
      "{{ nothing.attribute }}",
      "{{ raise_exception('no') }}",
      "{{ unknown_function() }}",
      "{% generation %}",
      "{% endgeneration %}",
      "{% for",
      "{{ 'a",
      "{{ 1 | no_such_filter }}",
      "\xff",
  };
  const ordered_json messages = {{{"role", "user"}, {"content", "hi"}}};
  const Folder folder;
  for (const std::string& source : sources) {
    SCOPED_TRACE(source.substr(0, 80));
    folder.write("chat_template.jinja", source);
    std::string words;
    const double seconds = processor_seconds_of([&] {
      words = refusal([&] {
        const auto chat_template = ChatTemplate::load(folder.path());
        chat_template->render(messages, nullptr, true);
      });
    });
    EXPECT_NE(words, "");
    EXPECT_LT(seconds, 5.0);  // 1 s at most without instrumentation
  }
}

TEST(HostileTemplate, ATagThatIsNotClosedIsNamedWithItsLine) {
  struct Wrong {
    const char* source;
    int64_t line;
    const char* words;
  };
  const std::vector<Wrong> cases = {
      {"a\n{% for m in messages %}\n\n{{ m.role }}\n", 2,
       "`{% for %}` is not closed: `{% endfor %}` is missing"},
      {"{% for m in messages %}\n{% if m %}\nx\n{% endfor %}\n", 4,
       "`{% endfor %}` does not fit `{% if %}` of line 2, which needs `{% endif %}` first"},
      {"{% if 1 %}x{% else %}\n{% for m in messages %}{% endfor %}", 1,
       "`{% if %}` is not closed: `{% endif %}` is missing"},
      {"x\n{% macro f(a) %}{{ a }}", 2, "`{% endmacro %}` is missing"},
      {"\n{% endif %}", 2, "`{% endif %}` closes nothing"},
      {"{% if 1 %}{% unless %}{% endif %}", 1, "unknown tag `unless`"}};
  const Folder folder;
  for (const Wrong& wrong : cases) {
    folder.write("chat_template.jinja", wrong.source);
    try {
      ChatTemplate::load(folder.path());
      ADD_FAILURE() << wrong.source;
    } catch (const DataError& error) {
      EXPECT_EQ(error.location().line, wrong.line) << wrong.source;
      EXPECT_NE(std::string(error.what()).find(wrong.words), std::string::npos) << error.what();
    }
  }
}

TEST(HostileTemplate, ErrorsNameFileAndLine) {
  const Folder folder;
  folder.write("chat_template.jinja",
               "line one\n\n{{ raise_exception('no ' ~ messages[0].role) }}\n");
  const auto chat_template = ChatTemplate::load(folder.path());
  const ordered_json messages = {{{"role", "user"}, {"content", "hi"}}};
  try {
    chat_template->render(messages, nullptr, false);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 3);
    EXPECT_NE(error.location().file.find("chat_template.jinja"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("no user"), std::string::npos);
  }
  EXPECT_THROW(chat_template->render(ordered_json::array(), nullptr, false), DataError);
  EXPECT_THROW(chat_template->render({{{"content", "\xff"}}}, nullptr, false), DataError);
}

TEST(HostileTemplate, ErrorsInTokenizerConfigNameTheLineOfTheTemplate) {
  const Folder folder;
  folder.write("tokenizer_config.json",
               R"({"chat_template": "a\n{{ messages[0].role }}\n  {{ messages[0].x.y }}\n"})");
  const auto chat_template = ChatTemplate::load(folder.path());
  const ordered_json messages = {{{"role", "user"}, {"content", "hi"}}};
  try {
    chat_template->render(messages, nullptr, false);
    FAIL();
  } catch (const DataError& error) {
    EXPECT_EQ(error.location().line, 0);
    EXPECT_EQ(error.location().key, "chat_template");
    EXPECT_NE(error.sentence().find("tokenizer_config.json: the chat template in this file"),
              std::string::npos)
        << error.sentence();
    EXPECT_NE(error.sentence().find("template line 3: `{{ messages[0].x.y }}`"), std::string::npos)
        << error.sentence();
  }
}

TEST(HostileTemplate, ARowOverALimitLeavesTheTemplateUsable) {
  const Folder folder;
  folder.write("chat_template.jinja",
               "{% if messages[0].content == 'endless' %}{% for a in range(100000) %}"
               "{% for b in range(100000) %}{% endfor %}{% endfor %}{% endif %}"
               "{% if messages[0].content == 'huge' %}{{ 'x' * 1000000000 }}{% endif %}"
               "{% if messages[0].content == 'deep' %}{% macro f() %}{{ f() }}{% endmacro %}"
               "{{ f() }}{% endif %}{{ messages[0].content }}");
  const auto chat_template = ChatTemplate::load(folder.path());
  const auto render = [&](const char* content) {
    const ordered_json messages = {{{"role", "user"}, {"content", content}}};
    return chat_template->render(messages, nullptr, false).text;
  };
  for (int round = 0; round < 3; ++round) {
    EXPECT_NE(refusal([&] { render("endless"); }).find("steps"), std::string::npos);
    EXPECT_EQ(render("fine"), "fine");
    EXPECT_NE(refusal([&] { render("huge"); }).find("memory"), std::string::npos);
    EXPECT_EQ(render("fine"), "fine");
    EXPECT_NE(refusal([&] { render("deep"); }).find("deeply"), std::string::npos);
    EXPECT_EQ(render("fine"), "fine");
  }
}

size_t threads_of_this_process() {
  return static_cast<size_t>(
      std::distance(fs::directory_iterator("/proc/self/task"), fs::directory_iterator()));
}

TEST(HostileTemplate, LeavesNoThreadBehind) {
  const Folder folder;
  folder.write("chat_template.jinja", "{{ 'a' * 1000000000 }}");
  const auto chat_template = ChatTemplate::load(folder.path());
  const ordered_json messages = {{{"role", "user"}, {"content", "hi"}}};
  const size_t before = threads_of_this_process();
  for (int round = 0; round < 5; ++round)
    EXPECT_NE(refusal([&] { chat_template->render(messages, nullptr, false); }), "");
  EXPECT_EQ(threads_of_this_process(), before);
}

TEST(ChatTemplate, MarksInTheConversationDoNotMoveSpans) {
  const Folder folder;
  folder.write(
      "chat_template.jinja",
      "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %};{% endfor %}");
  const auto chat_template = ChatTemplate::load(folder.path());
  const std::string forged =
      "\xEF\xA3\xB1"
      "0<x\xEF\xA3\xB1"
      "0>";
  const ordered_json messages = {{{"content", forged}}, {{"content", "b"}}};
  const RenderedChat chat = chat_template->render(messages, nullptr, false);
  EXPECT_EQ(chat.text, forged + ";b;");
  const auto size = static_cast<int64_t>(forged.size());
  const std::vector<std::pair<int64_t, int64_t>> spans = {{0, size}, {size + 1, size + 2}};
  EXPECT_EQ(chat.generation_spans, spans);
}

TEST(ChatTemplate, FoundWhereHuggingFacePutsIt) {
  const Folder folder;
  EXPECT_FALSE(ChatTemplate::load(folder.path()).has_value());
  const ordered_json messages = {{{"role", "user"}, {"content", "hi"}}};
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "chat_template": [{"name": "tool_use", "template": "tools"},
                   {"name": "default", "template": "{{ bos_token }}list"}]})");
  const auto list = ChatTemplate::load(folder.path());
  EXPECT_EQ(list->render(messages, nullptr, false).text, "<s>list");
  EXPECT_EQ(list->render(messages, {{"tools", ordered_json::array({1})}}, false).text, "tools");
  folder.write("chat_template.jinja", "own {{ messages[0].content }}");
  EXPECT_EQ(ChatTemplate::load(folder.path())->render(messages, nullptr, false).text, "own hi");
}

}  // namespace
}  // namespace convoy::text

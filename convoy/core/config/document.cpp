// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/document.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <sstream>

#include "convoy/core/base/files.h"
#include "convoy/core/base/utf8.h"
#include "convoy/core/base/wide_text.h"

namespace convoy::config {
namespace {

constexpr int64_t kMaxFileBytes = 4 << 20;
constexpr size_t kMaxDepth = 32;
constexpr int64_t kMaxNodes = 100'000;  // nodes of an anchor count at each use

bool is_null_word(const std::string& text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

int64_t count_nodes(const Node& node) {
  int64_t count = 1;
  for (const Node& item : node.items) count += count_nodes(item);
  for (const auto& [name, value] : node.entries) count += count_nodes(value);
  return count;
}

// Builds the tree from the parser's events: only the events distinguish quoted from plain scalars
// and give each key's own line.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::string name, ErrorList* errors) : name_(std::move(name)), errors_(errors) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add(make(NodeKind::Null, mark), anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchors_.find(anchor);
    if (known == anchors_.end())
      fail(mark, "this anchor contains itself", "write the value out instead of *NAME");
    Node node = known->second;
    node.line = mark.line + 1;
    num_nodes_ += count_nodes(node);
    add(std::move(node), 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    Node node = make(NodeKind::Scalar, mark);
    node.quoted = tag == "!";
    node.text = value;
    if (!node.quoted && is_null_word(value)) node.kind = NodeKind::Null;
    add(std::move(node), anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(NodeKind::List, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(NodeKind::Map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

  Node take() { return std::move(root_); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor = 0;
    std::string key;
    int64_t key_line = 0;
    bool has_key = false;
    bool drops_value = false;  // true while the value of a refused key is skipped
  };

  [[noreturn]] void fail(const YAML::Mark& mark, const std::string& message,
                         const std::string& hint) const {
    throw ConfigError(message, {.file = name_, .line = mark.line + 1, .hint = hint});
  }

  // The error concerns one key only, so reading goes on.
  void report(const ConfigError& error) const {
    if (errors_ == nullptr) throw ConfigError(error);
    errors_->add(error);
  }

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag != "?" && tag != "!" && !tag.empty())
      report(ConfigError(fmt::format("the YAML tag {} has no meaning here", tag),
                         {.file = name_, .line = mark.line + 1, .hint = "leave it out"}));
  }

  Node make(NodeKind kind, const YAML::Mark& mark) {
    if (++num_nodes_ > kMaxNodes)
      fail(mark, fmt::format("more than {} values in one file", kMaxNodes),
           "rows belong into a data file; settings alone stand here");
    Node node;
    node.kind = kind;
    node.file = name_;
    node.line = mark.line + 1;
    return node;
  }

  void open(NodeKind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_tag(mark, tag);
    if (stack_.size() >= kMaxDepth)
      fail(mark, fmt::format("nested deeper than {} levels", kMaxDepth),
           "no setting lies that deep: close the brackets, or indent less");
    if (!stack_.empty() && stack_.back().node.kind == NodeKind::Map && !stack_.back().has_key)
      fail(mark, "a key must be a word", "write KEY: VALUE, without a list or a map as the key");
    stack_.push_back({.node = make(kind, mark), .anchor = anchor, .key = {}});
  }

  void close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(done.node), done.anchor);
  }

  void add(Node node, YAML::anchor_t anchor) {
    if (num_nodes_ > kMaxNodes)
      throw node.error(fmt::format("more than {} values in one file", kMaxNodes), "",
                       "rows belong into a data file; settings alone stand here");
    if (anchor != 0) anchors_[anchor] = node;
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == NodeKind::List) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.has_key) {
      take_key(parent, node);
    } else {
      // The error points to the key's line, even when the value starts on the next one.
      node.line = parent.key_line;
      if (!parent.drops_value)
        parent.node.entries.emplace_back(std::move(parent.key), std::move(node));
      parent.has_key = false;
    }
  }

  void take_key(Open& parent, const Node& node) const {
    if (node.kind != NodeKind::Scalar)
      throw node.error("a key must be a word", "",
                       "write KEY: VALUE, without a list or a map as the key");
    const Node* const first = parent.node.find(node.text);
    if (node.text == "<<")
      report(node.error("merge keys (<<) are not supported", "<<",
                        "write the keys out, or use include:"));
    else if (first != nullptr)
      report(
          node.error(fmt::format("`{}` is given twice, first on line {}", node.text, first->line),
                     node.text, "keep one of them"));
    parent.drops_value = node.text == "<<" || first != nullptr;
    parent.key = node.text;
    parent.key_line = node.line;
    parent.has_key = true;
  }

  std::string name_;
  ErrorList* errors_;  // null: errors are thrown
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  Node root_;
  int64_t num_nodes_ = 0;
};

void check_text(const std::string& text, const std::string& name) {
  int64_t line = 1;
  char before = '\n';
  for (const char letter : text) {
    if (letter == '\t' && before == '\n')
      throw ConfigError("a tab indents this line",
                        {.file = name, .line = line, .hint = "YAML needs spaces"});
    if (letter == '\0')
      throw ConfigError("a zero byte: this is not a text file",
                        {.file = name, .line = line, .hint = "name the YAML file of the settings"});
    line += letter == '\n' ? 1 : 0;
    before = letter;
  }
  if (find_invalid_utf8(text))
    throw ConfigError("this file is not UTF-8 text",
                      {.file = name, .hint = "save it as UTF-8: iconv -f latin1 -t utf-8 FILE"});
}

}  // namespace

const Node* Node::find(std::string_view key) const {
  for (const auto& [name, value] : entries)
    if (name == key) return &value;
  return nullptr;
}

std::string Node::where() const {
  return origin.empty() ? fmt::format("{}:{}", file, line) : origin;
}

ConfigError Node::error(const std::string& message, std::string key, std::string hint) const {
  return ConfigError(origin.empty() ? message : origin + ": " + message,
                     {.file = file, .line = line, .key = std::move(key), .hint = std::move(hint)});
}

Node parse_yaml(const std::string& text, const std::string& name, ErrorList* errors) {
  check_text(text, name);
  std::istringstream stream(text);
  TreeBuilder builder(name, errors);
  try {
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) {
      Node empty;
      empty.file = name;
      return empty;
    }
    TreeBuilder second(name, errors);
    if (parser.HandleNextDocument(second))
      throw ConfigError(
          "a second document after ---",
          {.file = name,
           .line = second.take().line,
           .hint = "write all settings into one document; files are merged by include:"});
  } catch (const YAML::Exception& error) {
    throw ConfigError(
        "not valid YAML: " + error.msg,
        {.file = name,
         .line = error.mark.line + 1,
         .hint = "a value with : or # needs quotes, and the keys of one section the same indent"});
  }
  return builder.take();
}

std::string read_config_text(const std::filesystem::path& path) {
  try {
    std::string text = read_file(path, kMaxFileBytes);
    refuse_wide_text(text, path);
    return text;
  } catch (const DataError& error) {
    throw ConfigError(error.what(), error.location());
  }
}

Node load_yaml(const std::filesystem::path& path, ErrorList* errors) {
  return parse_yaml(read_config_text(path), path.string(), errors);
}

Node parse_inline(const std::string& text, const std::string& origin) {
  Node node;
  node.kind = NodeKind::Scalar;
  if (text.starts_with('[') || text.starts_with('{')) {
    try {
      node = parse_yaml(text, origin);
    } catch (const ConfigError&) {
      // Text may begin with a bracket; a field of list type rejects it as text later.
      node = {};
      node.kind = NodeKind::Scalar;
    }
  }
  const auto mark = [&origin](auto& self, Node& part) -> void {
    part.origin = origin;
    part.file.clear();
    part.line = 0;
    for (Node& item : part.items) self(self, item);
    for (auto& [name, value] : part.entries) self(self, value);
  };
  mark(mark, node);
  node.text = text;
  return node;
}

}  // namespace convoy::config

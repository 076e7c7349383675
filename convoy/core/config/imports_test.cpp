// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/config/imports.h"

#include <gtest/gtest.h>

#include "convoy/core/config/example_settings_test.h"
#include "convoy/core/config/resolve.h"

namespace convoy::config {
namespace {

ImportedValue value(const std::string& path, const std::string& text, bool is_default = false) {
  Node node;
  node.kind = NodeKind::Scalar;
  node.text = text;
  node.file = "peer.json";
  node.line = 7;
  return {.path = path, .node = node, .spelling = "their." + path, .is_default = is_default};
}

class Imports : public ::testing::Test {
 protected:
  // Reads `text` as run.yaml with run.peer=x; the import of that key gives `values`. Returns the
  // error.
  std::string error_of(const std::string& text, const std::vector<ImportedValue>& values) {
    Sources sources{.file = folder_.write("run.yaml", text), .overrides = {"run.peer=x"}};
    sources.presets = {{"p", "run: {batch_size: 9}"}};
    sources.imports = {
        {.keys = {"run.peer"},
         .read = [&](const std::map<std::string, Node>& found, Imported& imported, ErrorList&) {
           EXPECT_EQ(found.at("run.peer").text, "x");
           imported.values = values;
           imported.notices.push_back("read");
         }}};
    settings_ = {};
    try {
      const Resolved resolved = resolve(settings_, sources);
      EXPECT_EQ(resolved.notices(), std::vector<std::string>{"read"});
      origin_ = resolved.value("run.batch_size").origin;
      return "";
    } catch (const ConfigError& error) {
      return error.sentence();
    }
  }

  TemporaryFolder folder_;
  RootSettings settings_;
  std::string origin_;
};

TEST_F(Imports, GiveValuesWithTheirPlace) {
  EXPECT_EQ(error_of("seed: 1", {value("run.batch_size", "8")}), "");
  EXPECT_EQ(settings_.run.batch_size, 8);
  EXPECT_EQ(origin_, "peer.json:7");
}

TEST_F(Imports, BeatAPreset) {
  EXPECT_EQ(error_of("preset: p", {value("run.batch_size", "8")}), "");
  EXPECT_EQ(settings_.run.batch_size, 8);
  EXPECT_EQ(error_of("preset: p", {value("run.batch_size", "8", true)}), "");
  EXPECT_EQ(settings_.run.batch_size, 8);
}

TEST_F(Imports, MustNotContradict) {
  const std::string error = error_of("run: {batch_size: 4}", {value("run.batch_size", "8")});
  EXPECT_NE(error.find("their.run.batch_size is 8, but run.batch_size is 4"), std::string::npos)
      << error;
  EXPECT_EQ(error_of("run: {batch_size: 8}", {value("run.batch_size", "8.0")}), "");
  EXPECT_NE(error_of("seed: 1", {value("run.batch_size", "8"), value("run.batch_size", "9")}), "");
  EXPECT_EQ(error_of("run: {width: auto}", {value("run.width", "8")}), "");
  EXPECT_EQ(settings_.run.width.value, 8);
}

TEST_F(Imports, DefaultsOfTheOtherProgramGiveWay) {
  EXPECT_EQ(error_of("run: {batch_size: 4}", {value("run.batch_size", "8", true)}), "");
  EXPECT_EQ(settings_.run.batch_size, 4);
  EXPECT_EQ(error_of("seed: 1", {value("run.batch_size", "8", true)}), "");
  EXPECT_EQ(settings_.run.batch_size, 8);
}

TEST_F(Imports, ValuesKeepTheirBounds) {
  EXPECT_NE(error_of("seed: 1", {value("run.batch_size", "0")}).find("peer.json:7"),
            std::string::npos);
}

TEST_F(Imports, AMisspeltKeyIsNamed) {
  EXPECT_NE(error_of("run: {pear: 1}", {}).find("did you mean `run.peer`"), std::string::npos);
}

TEST(FindNamedFile, NamesBothPlaces) {
  Node node;
  node.kind = NodeKind::Scalar;
  node.text = "absent.json";
  node.file = "/nowhere/run.yaml";
  node.line = 3;
  try {
    find_named_file(node, "run.peer");
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_NE(error.sentence().find("/nowhere/run.yaml:3: run.peer: there is no file "
                                    "/nowhere/absent.json (nor "),
              std::string::npos)
        << error.sentence();
  }
}

}  // namespace
}  // namespace convoy::config

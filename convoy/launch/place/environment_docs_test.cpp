// SPDX-License-Identifier: Apache-2.0
//
// docs/reference/environment.md names every variable that the resolver or another part of the
// programs reads, and no variable that nothing reads.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "convoy/core/base/files.h"
#include "convoy/launch/place/environment_resolver.h"

namespace convoy::launch {
namespace {

// Returns all texts in backquotes that have the form of a variable's name.
std::set<std::string> variables_in(const std::string& text) {
  std::set<std::string> names;
  std::string name;
  for (size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    const bool part = (letter >= 'A' && letter <= 'Z') || (letter >= 'a' && letter <= 'z') ||
                      (letter >= '0' && letter <= '9') || letter == '_';
    if (part) {
      name += letter;
      continue;
    }
    if (name.size() > 3 && (name.find('_') != std::string::npos || name == "RANK") &&
        name[0] >= 'A' && name[0] <= 'Z')
      names.insert(name);
    name.clear();
  }
  return names;
}

std::filesystem::path source_folder() {
  const char* const source = std::getenv("CONVOY_SOURCE_DIR");
  return source == nullptr ? std::filesystem::current_path() : std::filesystem::path(source);
}

std::string page() { return read_file(source_folder() / "docs/reference/environment.md"); }

// Returns the sources of the programs, joined to one text.
std::string all_sources() {
  std::string text;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_folder() / "convoy")) {
    const std::string path = entry.path().string();
    if ((path.ends_with(".cpp") || path.ends_with(".h")) && !path.ends_with("_test.cpp"))
      text += read_file(entry.path());
  }
  return text;
}

TEST(EnvironmentPage, NamesWhatTheResolverReads) {
  const std::set<std::string> named = variables_in(page());
  for (const std::string& name : resolver_variables())
    EXPECT_TRUE(named.contains(name)) << name << " is read but not in environment.md";
}

TEST(EnvironmentPage, NamesWhatIsReadByName) {
  const std::string text = page(), sources = all_sources();
  int found = 0;
  for (const std::string_view call : {"environment_text(\"", "environment_variable(\""})
    for (size_t at = sources.find(call); at != std::string::npos; at = sources.find(call, at)) {
      at += call.size();
      const std::string name = sources.substr(at, sources.find('"', at) - at);
      EXPECT_NE(text.find("`" + name + "`"), std::string::npos)
          << name << " is read but not in docs/reference/environment.md";
      ++found;
    }
  EXPECT_GT(found, 20);
}

TEST(EnvironmentPage, NamesNothingElse) {
  std::set<std::string> named = variables_in(page());
  for (const std::string& name : resolver_variables()) named.erase(name);
  named.erase("SLURM_LAUNCH_NODE_IPADDR");  // the page says that it is not read
  const std::string sources = all_sources();
  for (const std::string& name : named)
    EXPECT_NE(sources.find(name.ends_with('_') ? "\"" + name : "\"" + name + "\""),
              std::string::npos)
        << name << " is in docs/reference/environment.md but nothing reads it";
}

}  // namespace
}  // namespace convoy::launch

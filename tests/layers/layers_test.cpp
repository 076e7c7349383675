// SPDX-License-Identifier: Apache-2.0
//
// Checks the sources against layers.toml: every include is allowed, LibTorch is used only in the
// layers that may use it, neither layers nor districts form a cycle, and every file has its licence
// line.
#include <gtest/gtest.h>

#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "convoy/core/base/files.h"

namespace convoy {
namespace {

struct Layer {
  std::set<std::string> includes;
  bool libtorch = false;
  std::string district;  // empty: the folder is directly in convoy/
};

using Table = std::map<std::string, Layer>;

std::vector<std::string> split_lines(const std::string& text) {
  std::vector<std::string> lines;
  size_t begin = 0;
  while (begin < text.size()) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

Table parse_table(const std::string& text) {
  Table table;
  Layer* layer = nullptr;
  for (const std::string& line : split_lines(text)) {
    if (line.starts_with('[')) {
      layer = &table[line.substr(1, line.find(']') - 1)];
    } else if (layer != nullptr && line.starts_with("libtorch = true")) {
      layer->libtorch = true;
    } else if (layer != nullptr && line.starts_with("district")) {
      const size_t begin = line.find('"') + 1;
      layer->district = line.substr(begin, line.find('"', begin) - begin);
    } else if (layer != nullptr && line.starts_with("includes")) {
      for (size_t quote = line.find('"'); quote != std::string::npos;) {
        const size_t end = line.find('"', quote + 1);
        layer->includes.insert(line.substr(quote + 1, end - quote - 1));
        quote = line.find('"', end + 1);
      }
    }
  }
  return table;
}

// Returns the name between the delimiters of an #include line, or "" for another line.
std::string included(const std::string& line) {
  const size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return "";
  const size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return "";
  const size_t begin = line.find_first_of("<\"", word);
  const size_t end = line.find_first_of(">\"", begin + 1);
  return begin == std::string::npos || end == std::string::npos
             ? ""
             : line.substr(begin + 1, end - begin - 1);
}

bool is_libtorch_header(const std::string& header) {
  for (const char* prefix : {"ATen/", "torch/", "c10/", "caffe2/"})
    if (header.starts_with(prefix)) return true;
  return false;
}

// Returns convoy/DISTRICT/LAYER, or convoy/LAYER for the only layer of a district.
std::string folder_of(const std::string& name, const Layer& layer) {
  const bool alone = layer.district.empty() || layer.district == name;
  return "convoy/" + (alone ? name : layer.district + "/" + name) + "/";
}

// Returns the layer of a path such as "convoy/core/base/error.h", "" for a path outside of convoy/,
// or the folder of a path that is in no layer.
std::string layer_of(const Table& table, const std::string& path) {
  if (!path.starts_with("convoy/")) return "";
  for (const auto& [name, layer] : table)
    if (path.starts_with(folder_of(name, layer))) return name;
  return path.substr(0, path.rfind('/'));
}

// Returns the fault of an include line of `file`, or "".
std::string complaint(const Table& table, const std::string& file, const std::string& line) {
  const std::string header = included(line);
  if (header.empty()) return "";
  const std::string from = layer_of(table, file);
  const Layer& layer = table.at(from);
  const std::string to = layer_of(table, header);
  if (is_libtorch_header(header) && !layer.libtorch) return file + " sees LibTorch: " + header;
  if (is_libtorch_header(header) && file.ends_with(".h") &&
      (header == "torch/torch.h" || header == "ATen/ATen.h"))
    return file + " is a header and includes all of LibTorch: " + header;
  if (to.empty()) {
    const bool relative = header.starts_with("../") || header.starts_with("./");
    return relative ? file + " includes by a relative path: " + header : "";
  }
  if (!table.contains(to)) return file + " includes a folder that is no layer: " + header;
  if (to != from && !layer.includes.contains(to))
    return file + " may not include layer " + to + ": " + header;
  return "";
}

std::filesystem::path source_dir() {
  const char* folder = std::getenv("CONVOY_SOURCE_DIR");
  return folder == nullptr ? std::filesystem::current_path() : std::filesystem::path(folder);
}

Table repository_table() { return parse_table(read_file(source_dir() / "layers.toml")); }

// Calls visit(path relative to the root, text) for every C++ source below `folder`.
void for_each_source(const std::string& folder,
                     const std::function<void(const std::string&, const std::string&)>& visit) {
  const std::filesystem::path root = source_dir();
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh")
      continue;
    visit(std::filesystem::relative(entry.path(), root).string(), read_file(entry.path()));
  }
}

TEST(Layers, EveryIncludeIsAllowed) {
  const Table table = repository_table();
  int num_includes = 0;
  for_each_source("convoy", [&](const std::string& file, const std::string& text) {
    ASSERT_TRUE(table.contains(layer_of(table, file)))
        << file << ": its folder is not in layers.toml";
    for (const std::string& line : split_lines(text)) {
      EXPECT_EQ(complaint(table, file, line), "");
      num_includes += included(line).starts_with("convoy/") ? 1 : 0;
    }
  });
  EXPECT_GT(num_includes, 50);
}

TEST(Layers, TableHasNoCycleAndNamesOnlyLayers) {
  const Table table = repository_table();
  std::set<std::string> done;
  std::set<std::string> open;
  const std::function<void(const std::string&)> visit = [&](const std::string& name) {
    if (done.contains(name)) return;
    ASSERT_TRUE(open.insert(name).second) << "cycle through " << name;
    for (const std::string& to : table.at(name).includes) {
      ASSERT_TRUE(table.contains(to)) << name << " lists " << to;
      visit(to);
    }
    open.erase(name);
    done.insert(name);
  };
  for (const auto& [name, layer] : table) visit(name);
  EXPECT_EQ(done.size(), table.size());
}

// Returns the districts in the order of layers.toml. Each district may include only itself and
// earlier ones.
std::vector<std::string> ordered_districts() {
  std::vector<std::string> districts;
  for (const std::string& line : split_lines(read_file(source_dir() / "layers.toml")))
    if (line.starts_with("district = ")) {
      const std::string district = line.substr(12, line.size() - 13);
      if (districts.empty() || districts.back() != district) districts.push_back(district);
    }
  return districts;
}

std::string district_complaint(const Table& table, const std::vector<std::string>& districts) {
  std::map<std::string, size_t> place;
  for (const std::string& district : districts)
    if (!place.emplace(district, place.size()).second)
      return "the layers of district " + district + " do not stand together";
  for (const auto& [name, layer] : table)
    for (const std::string& to : layer.includes)
      if (place[table.at(to).district] > place[layer.district])
        return name + " (" + layer.district + ") includes " + to + " of a later district, " +
               table.at(to).district;
  return "";
}

TEST(Layers, DistrictsIncludeOnlyThoseBeforeThem) {
  EXPECT_EQ(district_complaint(repository_table(), ordered_districts()), "");
}

TEST(Layers, DistrictsAreFoldersThatSayWhatLivesThere) {
  for (const std::string& district : ordered_districts()) {
    const std::filesystem::path page = source_dir() / "convoy" / district / "README.md";
    ASSERT_TRUE(std::filesystem::exists(page)) << page;
    const std::string text = read_file(page);
    for (const auto& [name, layer] : repository_table())
      if (layer.district == district && name != district) {
        EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << page << " leaves out " << name;
      }
  }
}

TEST(Layers, LayersWithoutLibTorchIncludeNone) {
  const Table table = repository_table();
  for (const auto& [name, layer] : table)
    for (const std::string& to : layer.includes)
      EXPECT_TRUE(layer.libtorch || !table.at(to).libtorch) << name << " includes " << to;
}

TEST(Layers, EverySourceCarriesTheLicenceLine) {
  for (const char* folder : {"convoy", "tests"})
    for_each_source(folder, [](const std::string& file, const std::string& text) {
      EXPECT_TRUE(text.starts_with("// SPDX-License-Identifier: Apache-2.0\n")) << file;
    });
}

TEST(Layers, EveryHeaderIsGuarded) {
  for_each_source("convoy", [](const std::string& file, const std::string& text) {
    if (file.ends_with(".h") || file.ends_with(".cuh")) {
      EXPECT_NE(text.find("\n#pragma once\n"), std::string::npos) << file;
    }
  });
}

bool is_in_a_name(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// True if `text` contains `words` outside of comments, and not as the end of a longer name.
bool says(const std::string& text, const std::string& words) {
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) {
    const size_t line = at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
    const bool whole_name = at == 0 || !is_in_a_name(text[at - 1]);
    if (whole_name && text.substr(line, at - line).find("//") == std::string::npos) return true;
  }
  return false;
}

// Returns the fault of a source that starts, replaces or awaits a process by itself, or "".
std::string process_complaint(const std::string& file, const std::string& text) {
  if (file.starts_with("convoy/machine/processes/") || file.ends_with("_test.cpp") ||
      file.ends_with("_test.h"))
    return "";
  for (const char* function : {"fork", "vfork", "execl", "execlp", "execle", "execv", "execve",
                               "execvp", "execvpe", "fexecve", "posix_spawn", "posix_spawnp",
                               "popen", "system", "waitpid", "waitid", "wait3", "wait4"})
    if (says(text, std::string(function) + "("))
      return file + " calls " + function + "(), as only convoy/machine/processes may";
  return "";
}

TEST(Layers, ProcessesAreMadeInOnePlace) {
  for_each_source("convoy", [](const std::string& file, const std::string& text) {
    EXPECT_EQ(process_complaint(file, text), "");
  });
}

TEST(Layers, ScanFindsPlantedProcesses) {
  const std::string file = "convoy/launch/submit/engine_tool.cpp";
  for (const char* planted :
       {"const pid_t child = ::fork();", "  if (fork() == 0) return;", "::execvp(words[0], words);",
        "FILE* pipe = ::popen(command.c_str(), \"r\");", "int x;\n::waitpid(pid, nullptr, 0);",
        "std::system(command.c_str());"}) {
    EXPECT_NE(process_complaint(file, planted), "") << planted;
    EXPECT_EQ(process_complaint("convoy/machine/processes/guard.cpp", planted), "");
    EXPECT_EQ(process_complaint("convoy/launch/submit/engine_tool_test.cpp", planted), "");
  }
  for (const char* allowed : {"processes::fork_process();", "sqlite3_exec(db)", "int forks(1);",
                              "// after fork(), from one thread", "unfork();"})
    EXPECT_EQ(process_complaint(file, allowed), "") << allowed;
}

// Returns the fault of a source that reads the environment by itself, or "".
std::string environment_complaint(const std::string& file, const std::string& text) {
  if (file == "convoy/core/base/environment_variable.cpp" || file.ends_with("_test.cpp") ||
      file.ends_with("_test.h"))
    return "";
  for (const char* reader : {"getenv(", "secure_getenv(", "environ;", "environ,", "environ["})
    if (says(text, reader))
      return file + " reads the environment: base/environment_variable.h does";
  return "";
}

TEST(Layers, TheEnvironmentIsReadInOnePlace) {
  for_each_source("convoy", [](const std::string& file, const std::string& text) {
    EXPECT_EQ(environment_complaint(file, text), "");
  });
}

TEST(Layers, ScanFindsPlantedReadersOfTheEnvironment) {
  const std::string file = "convoy/model/kernels/ops/op_table.cpp";
  for (const char* planted :
       {"const char* kernels = std::getenv(\"CONVOY_CUDA_KERNELS\");", "if (getenv(name)) return;",
        "for (char** entry = environ; *entry;)"}) {
    EXPECT_NE(environment_complaint(file, planted), "") << planted;
    EXPECT_EQ(environment_complaint("convoy/core/base/environment_variable.cpp", planted), "");
  }
  EXPECT_EQ(environment_complaint(file, "environment_text(name); my_getenv(name);"), "");
}

// Cgroup quotas limit the processors as affinity does, so code that counts processors must call
// base/usable_cpus.h.
TEST(Layers, ProcessorsAreCountedInOnePlace) {
  // This file shows how many processors the machine has, beside the number that may be used.
  const std::string shown = "convoy/farm/sweep/runner/cell_outcome.cpp";
  for_each_source("convoy", [&](const std::string& file, const std::string& text) {
    if (file.starts_with("convoy/core/base/usable_cpus") || file == shown) return;
    for (const char* counter : {"hardware_concurrency(", "sched_getaffinity(", "CPU_COUNT(",
                                "_SC_NPROCESSORS", "get_nprocs(", "omp_get_num_procs("})
      EXPECT_EQ(text.find(counter), std::string::npos)
          << file << " counts processors with " << counter;
  });
}

// The library and the sweep's functions run inside other programs, whose locale may have a decimal
// comma: the functions below would then end "0.5" at the point. std::from_chars (base/text_as.h)
// and fmt do not depend on a locale.
TEST(Layers, NumbersAreReadWithoutALocale) {
  for_each_source("convoy", [](const std::string& file, const std::string& text) {
    if (file.ends_with("_test.cpp")) return;
    for (const char* reader : {"strtod(", "strtof(", "strtold(", "stod(", "stof(", "stold(",
                               "atof(", "%lf", "%lg", "setlocale("})
      EXPECT_EQ(text.find(reader), std::string::npos) << file << " reads numbers with " << reader;
  });
}

// Tests the scan itself: each rule finds its fault on a planted line.
TEST(Layers, ScanFindsPlantedFaults) {
  const Table table = parse_table(
      "[base]\nincludes = []\n[nn]\nincludes = [\"base\"]\nlibtorch = true\n"
      "[front]\ndistrict = \"apps\"\nincludes = [\"base\"]\n"
      "[worker]\ndistrict = \"apps\"\nincludes = [\"base\", \"nn\"]\nlibtorch = true\n");
  EXPECT_EQ(complaint(table, "convoy/nn/a.h", "#include \"convoy/base/error.h\""), "");
  EXPECT_EQ(complaint(table, "convoy/nn/a.cpp", "#include <ATen/ATen.h>"), "");
  EXPECT_EQ(complaint(table, "convoy/nn/a.h", "// #include \"convoy/apps/b.h\""), "");
  EXPECT_NE(complaint(table, "convoy/nn/a.h", "#include <ATen/ATen.h>"), "");
  EXPECT_NE(complaint(table, "convoy/base/a.h", "#include \"convoy/nn/linear.h\""), "");
  EXPECT_NE(complaint(table, "convoy/base/a.cpp", "  #  include <c10/core/Device.h>"), "");
  EXPECT_NE(complaint(table, "convoy/nn/a.h", "#include \"convoy/unknown/b.h\""), "");
  EXPECT_NE(complaint(table, "convoy/nn/a.h", "#include \"../base/error.h\""), "");
  EXPECT_NE(complaint(table, "convoy/apps/front/a.cpp", "#include \"convoy/nn/linear.h\""), "");
  EXPECT_NE(complaint(table, "convoy/apps/front/a.cpp", "#include <torch/torch.h>"), "");
  EXPECT_NE(complaint(table, "convoy/apps/front/a.cpp", "#include \"convoy/apps/worker/b.h\""), "");
  EXPECT_EQ(complaint(table, "convoy/apps/worker/a.cpp", "#include \"convoy/nn/linear.h\""), "");
  const Table city = parse_table(
      "[base]\nincludes = []\ndistrict = \"core\"\n[jobs]\nincludes = [\"base\", "
      "\"sweep\"]\ndistrict = \"core\"\n"
      "[sweep]\nincludes = [\"base\"]\ndistrict = \"farm\"\n");
  EXPECT_EQ(complaint(city, "convoy/farm/sweep/a.h", "#include \"convoy/core/base/b.h\""), "");
  EXPECT_NE(complaint(city, "convoy/farm/sweep/a.h", "#include \"convoy/core/jobs/b.h\""), "");
  EXPECT_NE(complaint(city, "convoy/farm/sweep/a.h", "#include \"convoy/base/b.h\""), "");
  EXPECT_NE(district_complaint(city, {"core", "farm"}), "");
  EXPECT_NE(district_complaint(city, {"core", "farm", "core"}), "");
  const Table ordered = parse_table(
      "[base]\nincludes = []\ndistrict = \"core\"\n[sweep]\nincludes = [\"base\"]\ndistrict = "
      "\"farm\"\n");
  EXPECT_EQ(district_complaint(ordered, {"core", "farm"}), "");
  EXPECT_NE(district_complaint(ordered, {"farm", "core"}), "");
}

}  // namespace
}  // namespace convoy

// SPDX-License-Identifier: Apache-2.0
//
// A small settings tree with one field of every kind, for the tests of this layer.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "convoy/core/config/field.h"

namespace convoy::config {

struct InnerSettings {
  int64_t r = 8;
  double alpha = 16;
  NameList targets{{"auto"}};
  OrderedMap<int64_t> ranks;
  OrderedMap<double> alphas;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("r", r, "rank").at_least(1).alias("rank");
    visit("alpha", alpha, "scale").above(0);
    visit("targets", targets, "names");
    visit("ranks", ranks, "rank by name").at_least(1);
    visit("alphas", alphas, "alpha by name");
  }
};

struct FlatSettings {
  std::string schedule = "cosine";

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("schedule", schedule, "shape").one_of({"linear", "cosine", "no"}).alias("scheduler");
  }
};

struct RunSettings {
  double learning_rate = 2e-4;
  int64_t batch_size = 4;
  bool packing = false;
  AutoOr<int64_t> width;
  AutoOr<double> scale;
  std::vector<int64_t> steps;
  std::vector<double> weights;
  std::vector<std::string> files;
  std::vector<std::string> figures = {"loss"};
  std::string path;
  FlatSettings flat;
  InnerSettings inner;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("learning_rate", learning_rate, "peak").above(0).at_most(1).alias("lr");
    visit("batch_size", batch_size, "rows").at_least(1);
    visit("packing", packing, "fill | blocks");
    visit("width", width, "columns").at_least(2);
    visit("scale", scale, "factor");
    visit("steps", steps, "a list");
    visit("weights", weights, "a list");
    visit("files", files, "a list");
    visit("figures", figures, "a list of these").one_of({"loss", "sari", "rougeL"});
    visit("path", path, "a file").winning_alias("local_path");
    visit("flat", flat, "members of the parent").flat();
    visit("inner", inner, "a section in a section");
  }
};

struct RootSettings {
  int64_t seed = 42;
  std::string name;
  RunSettings run;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("seed", seed, "randomness").at_least(0);
    visit("name", name, "what it is called").alias_at_root("run.name");
    visit("run", run, "the run").alias("r");
  }
};

// A folder that is removed with its files.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "convoy-config-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::filesystem::path write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name) << text;
    return path_ / name;
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace convoy::config

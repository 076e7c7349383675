// SPDX-License-Identifier: Apache-2.0
#include "convoy/farm/sweep/command/program_record.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/hash.h"
#include "convoy/farm/sweep/command/command_workload.h"
#include "convoy/machine/processes/program_check.h"

namespace convoy::sweep {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 16;
// Hashing this many bytes takes about a fifth of a second. Larger files are compared by size and
// time.
constexpr int64_t kHashedBytes = 64 << 20;

constexpr std::array<std::string_view, 17> kEndings = {
    ".py", ".sh", ".bash", ".zsh", ".pl",  ".rb",  ".r",   ".R",  ".jl",
    ".js", ".ts", ".lua",  ".m",   ".awk", ".tcl", ".php", ".ps1"};
constexpr std::array<std::string_view, 15> kInterpreters = {
    "sh",   "bash", "dash",    "zsh",   "ksh", "python", "pypy", "perl",
    "ruby", "node", "Rscript", "julia", "lua", "octave", "php"};

template <size_t kCount>
bool contains(const std::array<std::string_view, kCount>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// True for an interpreter, such as "/usr/bin/python3.11".
bool is_interpreter(const std::string& program) {
  const std::string name = fs::path(program).filename().string();
  return contains(kInterpreters,
                  std::string_view(name).substr(0, name.find_first_of("0123456789.")));
}

bool begins_as_script(const std::string& file) {
  std::ifstream stream(file, std::ios::binary);
  std::array<char, 2> first{};
  return stream.read(first.data(), first.size()) && first[0] == '#' && first[1] == '!';
}

bool looks_like_script(const std::string& file, mode_t mode) {
  return (mode & 0111) != 0 || contains(kEndings, fs::path(file).extension().string()) ||
         begins_as_script(file);
}

// The word itself, and the words that a shell would find in it.
std::vector<std::string> names_in(const std::string& word) {
  std::vector<std::string> names = {word};
  constexpr std::string_view kBetween = " \t\n'\"`;|&()<>=,";
  for (size_t begin = 0; begin < word.size();) {
    const size_t end = std::min(word.find_first_of(kBetween, begin), word.size());
    if (end > begin && end - begin < word.size()) names.push_back(word.substr(begin, end - begin));
    begin = end + 1;
  }
  return names;
}

// The files that argv[at] names: the word itself, the words in it, and after Python's -m the files
// of that module in this folder.
std::vector<std::string> files_named(const std::vector<std::string>& argv, size_t at) {
  std::vector<std::string> names = names_in(argv[at]);
  if (argv[at - 1] == "-m") {
    std::string module = argv[at];
    std::replace(module.begin(), module.end(), '.', '/');
    names.push_back(module + ".py");
    names.push_back(module + "/__main__.py");
  }
  return names;
}

// Only these variables are recorded, because others may hold secrets.
constexpr std::array<const char*, 12> kVariables = {"CONDA_PREFIX",
                                                    "CUDA_VISIBLE_DEVICES",
                                                    "LD_LIBRARY_PATH",
                                                    "MKL_NUM_THREADS",
                                                    "OMP_NUM_THREADS",
                                                    "PATH",
                                                    "PYTHONHASHSEED",
                                                    "PYTHONPATH",
                                                    "TZ",
                                                    "VIRTUAL_ENV",
                                                    "LANG",
                                                    "HOSTNAME"};

nlohmann::json environment_of_process() {
  nlohmann::json environment = nlohmann::json::object();
  for (const char* const name : kVariables)
    if (const auto value = environment_variable(name)) environment[name] = *value;
  return environment;
}

// Records of earlier versions hold only the files.
nlohmann::json files_of_record(const nlohmann::json& record) {
  return record.contains("files") && record["files"].is_object() ? record["files"] : record;
}

int64_t nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000 + time.tv_nsec; }

}  // namespace

const ProgramRecord::Known* ProgramRecord::known(const std::string& file) {
  struct stat facts {};
  if (::stat(file.c_str(), &facts) != 0 || !S_ISREG(facts.st_mode)) return nullptr;
  const Version version{.device = facts.st_dev,
                        .inode = facts.st_ino,
                        .size_bytes = facts.st_size,
                        .modified_ns = nanoseconds(facts.st_mtim),
                        .changed_ns = nanoseconds(facts.st_ctim)};
  Known& one = known_[file];
  if (one.version == version && !one.hash.empty()) return &one;
  one.version = version;
  one.is_script = looks_like_script(file, facts.st_mode);
  try {
    one.hash = facts.st_size <= kHashedBytes
                   ? sha256_hex_of_file(file).substr(0, kHashDigits)
                   : fmt::format("{}@{}", version.size_bytes, version.modified_ns);
  } catch (const DataError&) {
    known_.erase(file);
    return nullptr;
  }
  return &one;
}

std::string ProgramRecord::of(const std::vector<std::string>& argv) {
  nlohmann::json record = nlohmann::json::object();
  if (!processes::program_problem(argv.front()).any())
    if (const Known* const file = known(processes::program_file(argv.front()).string()))
      record[argv.front()] = file->hash;
  bool takes_any = is_interpreter(argv.front());
  for (size_t at = 1; at < argv.size(); ++at)
    for (const std::string& name : files_named(argv, at)) {
      const Known* const file = known(name);
      if (file == nullptr || (!file->is_script && !takes_any)) continue;
      record[name] = file->hash;
      takes_any = false;
    }
  std::error_code ignored;
  const nlohmann::json all = {{"environment", environment_of_process()},
                              {"files", record},
                              {"folder", fs::current_path(ignored).string()}};
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

ChangedPrograms changed_programs(const SweepResults& results) {
  ProgramRecord now;
  ChangedPrograms changed;
  std::error_code ignored;
  const std::string here = fs::current_path(ignored).string();
  struct Seen {
    std::vector<std::string> files;
    std::string folder;  // empty: this folder, or unknown
  };
  // Most cells have the same files as the cell before.
  std::unordered_map<std::string, Seen> seen;  // by parameters and record
  for (const CellResult& cell : results.cells) {
    if (cell.state != CellState::Value || cell.program.str().empty()) continue;
    const auto [place, added] =
        seen.try_emplace(cell.cell.parameters.str() + '\n' + cell.program.str());
    Seen& one = place->second;
    if (added) {
      const auto record = nlohmann::json::parse(cell.program.str(), nullptr, false);
      const auto before = files_of_record(record);
      const auto today = files_of_record(nlohmann::json::parse(now.of(program_of(cell.cell))));
      for (const auto& [name, hash] : before.items())
        if (!today.contains(name) || today[name] != hash) one.files.push_back(name);
      if (record.contains("folder") && record["folder"] != here)
        one.folder = record["folder"].get<std::string>();
    }
    changed.files.insert(one.files.begin(), one.files.end());
    changed.values += one.files.empty() ? 0 : 1;
    if (one.folder.empty()) continue;
    changed.folders.insert(one.folder);
    ++changed.values_of_folders;
  }
  return changed;
}

}  // namespace convoy::sweep

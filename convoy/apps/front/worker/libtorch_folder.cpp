// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/worker/libtorch_folder.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "convoy/apps/front/build_facts.h"
#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/machine/nvidia/driver.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kWantedVersion = "2.11.";
constexpr const char* kDriver = "libcuda.so.1";

// The version in a folder with include/ and lib/: from build-version of the C++ archive, or
// version.py of the wheel.
std::string version_in(const fs::path& folder) {
  constexpr int64_t kMaxBytes = 1 << 16;
  std::error_code ignored;
  try {
    if (fs::exists(folder / "build-version", ignored)) {
      const std::string text = read_file(folder / "build-version", kMaxBytes);
      return text.substr(0, text.find_first_of("\r\n"));
    }
    if (!fs::exists(folder / "version.py", ignored)) return {};
    const std::string text = read_file(folder / "version.py", kMaxBytes);
    const size_t begin = text.find('\'', text.find("__version__ ="));
    const size_t end = begin == std::string::npos ? begin : text.find('\'', begin + 1);
    return end == std::string::npos ? "" : text.substr(begin + 1, end - begin - 1);
  } catch (const Error&) {
    return {};  // an unreadable version file is no version
  }
}

// PREFIX/lib/python3.*/{site,dist}-packages/torch, newest Python first.
void add_site_packages(const fs::path& prefix, std::vector<fs::path>& folders) {
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(prefix / "lib", ignored)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      found.push_back(entry.path() / packages / "torch");
  }
  std::sort(found.rbegin(), found.rend());
  folders.insert(folders.end(), found.begin(), found.end());
}

std::vector<fs::path> python_folders() {
  std::vector<fs::path> prefixes;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (const std::string prefix = environment_text(name); !prefix.empty())
      prefixes.emplace_back(prefix);
  std::error_code ignored;
  std::istringstream path(environment_text("PATH"));
  for (std::string folder; std::getline(path, folder, ':');)
    if (fs::exists(fs::path(folder) / "python3", ignored))
      prefixes.push_back(fs::path(folder).parent_path());
  if (const std::string home = environment_text("HOME"); !home.empty())
    prefixes.push_back(fs::path(home) / ".local");
  prefixes.emplace_back("/usr/local");
  std::vector<fs::path> folders;
  for (const fs::path& prefix : prefixes) add_site_packages(prefix, folders);
  return folders;
}

// Returns true when the folder is usable. Records a reason for a rejection that a user would wonder
// about.
bool accept(const fs::path& folder, LibtorchFolder& found) {
  std::error_code ignored;
  if (!fs::exists(folder / "lib/libtorch_cpu.so", ignored)) {
    found.looked_at.push_back(fmt::format("{}: no lib/libtorch_cpu.so", folder.string()));
    return false;
  }
  const std::string version = version_in(folder);
  if (!version.starts_with(kWantedVersion)) {
    found.looked_at.push_back(
        fmt::format("{}: version {}", folder.string(), version.empty() ? "unknown" : version));
    return false;
  }
  found.folder = folder;
  found.version = version;
  return true;
}

// In search order: the program's own environment, the build folder, the user's Pythons. Most
// Pythons have no torch, so that is not reported.
std::vector<fs::path> candidates(const fs::path& program) {
  const fs::path prefix = program.parent_path().parent_path();
  std::vector<fs::path> own_environment;
  add_site_packages(prefix, own_environment);
  std::vector<fs::path> folders = {prefix / ".deps/site/torch"};
  const auto add_existing = [&](const std::vector<fs::path>& found) {
    std::error_code ignored;
    std::copy_if(found.begin(), found.end(), std::back_inserter(folders),
                 [&](const fs::path& folder) { return fs::exists(folder, ignored); });
  };
  add_existing(own_environment);
  folders.emplace_back(kTorchFolder);
  add_existing(python_folders());
  return folders;
}

bool has_cuda(const fs::path& folder) {
  std::error_code ignored;
  return fs::exists(folder / "lib/libtorch_cuda.so", ignored);
}

}  // namespace

std::string LibtorchFolder::text() const {
  if (folder.empty()) return "not found";
  const size_t plus = version.find('+');
  const std::string build = plus == std::string::npos ? "" : version.substr(plus + 1);
  std::string devices = "CPU only";
  if (has_cuda(folder)) {
    devices = "CUDA";
    // The wheel's build name: cu130.
    if (build.starts_with("cu") && build.size() > 3)
      devices += fmt::format(" {}.{}", build.substr(2, build.size() - 3), build.back());
  }
  return fmt::format("{}, {} ({})", version.substr(0, plus), devices, folder.string());
}

LibtorchFolder find_libtorch(const fs::path& program) {
  LibtorchFolder found;
  if (const std::string chosen = environment_text("CONVOY_TORCH"); !chosen.empty()) {
    accept(chosen, found);
    return found;
  }
  LibtorchFolder on_cpus;
  for (const fs::path& folder : candidates(program)) {
    if (!accept(folder, found)) continue;
    if (has_cuda(folder)) return found;
    if (!on_cpus.folder.empty()) continue;
    on_cpus = found;
    if (!nvidia::driver_version(kDriver)) break;
  }
  return on_cpus.folder.empty() ? found : on_cpus;
}

namespace {

// Returns why the driver cannot run LibTorch's CUDA; empty when it can. NVML may list GPUs on which
// this driver cannot compute, and LibTorch would only notice by failing.
std::string why_no_driver() {
  constexpr int kCuda13 = 13'000;
  const std::optional<int> version = nvidia::driver_version(kDriver);
  if (!version) return "the driver's library libcuda.so.1 cannot be opened";
  if (*version == 0 || *version >= kCuda13) return {};
  return fmt::format("the driver is for {}, LibTorch 2.11 needs CUDA 13.0 (driver 580 or newer)",
                     nvidia::version_text(*version));
}

// The command that installs a LibTorch with CUDA. Only the source folder can fetch the CUDA half.
std::string how_to_get_cuda() {
  const fs::path source = fs::path(kTorchFolder).parent_path().parent_path().parent_path();
  std::error_code ignored;
  return fs::exists(source / "tools/setup.sh", ignored)
             ? fmt::format("run: CONVOY_CUDA=1 {}/run build", source.string())
             : "run: pip install torch==2.11.0";
}

}  // namespace

std::string why_no_cuda(const fs::path& program) {
  const fs::path folder = find_libtorch(program).folder;
  if (folder.empty()) return {};  // find_libtorch()'s callers report that
  if (has_cuda(folder)) return why_no_driver();
  return fmt::format("the LibTorch in {} is CPU only; {}", folder.string(), how_to_get_cuda());
}

namespace {

// Returns "2.28.9" for 22809 and "2.8.4" for 2804: the encoding changed at version 2.9.
std::string nccl_version_text(int code) {
  const int major = code < 10'000 ? 1000 : 10'000;
  return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

// Returns "9.19.0" for 91900 and "8.9.7" for 8907: the encoding changed at version 9.
std::string cudnn_version_text(size_t code) {
  const size_t major = code < 10'000 ? 1000 : 10'000;
  return fmt::format("{}.{}.{}", code / major, code % major / 100, code % 100);
}

// The version that an opened library reports; empty when it is another library.
std::string nccl_version_of(void* library) {
  int code = 0;
  const auto get_version = reinterpret_cast<int (*)(int*)>(::dlsym(library, "ncclGetVersion"));
  return get_version != nullptr && get_version(&code) == 0 ? nccl_version_text(code) : "";
}

std::string cudnn_version_of(void* library) {
  const auto get_version = reinterpret_cast<size_t (*)()>(::dlsym(library, "cudnnGetVersion"));
  return get_version != nullptr ? cudnn_version_text(get_version()) : "";
}

// A library that LibTorch's CUDA half loads. It is searched beside LibTorch, in the library's own
// wheel, and on the system.
struct CudaLibrary {
  const char* file_name;
  const char* wheel;  // name of its folder in nvidia/
  std::string (*version_of)(void* library);
  const char* used_for;
};

CudaLibraryFacts find_cuda_library(const fs::path& libtorch, const CudaLibrary& wanted) {
  std::error_code ignored;
  if (libtorch.empty()) return {.version = {}, .file = {}, .why_none = "there is no LibTorch"};
  if (!fs::exists(libtorch / "lib/libtorch_cuda.so", ignored))
    return {.version = {}, .file = {}, .why_none = "LibTorch is without CUDA"};
  for (const fs::path& file :
       {libtorch / "lib" / wanted.file_name,
        libtorch.parent_path() / "nvidia" / wanted.wheel / "lib" / wanted.file_name,
        fs::path(wanted.file_name)}) {
    void* const opened = ::dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (opened == nullptr) continue;
    std::string version = wanted.version_of(opened);
    ::dlclose(opened);
    if (!version.empty()) return {.version = std::move(version), .file = file, .why_none = {}};
  }
  return {.version = {},
          .file = {},
          .why_none =
              fmt::format("no {} with LibTorch, and {} one", wanted.file_name, wanted.used_for)};
}

}  // namespace

std::string CudaLibraryFacts::text() const {
  return version.empty() ? fmt::format("none ({})", why_none)
                         : fmt::format("{} ({})", version, file.string());
}

CudaLibraryFacts find_nccl(const fs::path& libtorch) {
  return find_cuda_library(libtorch,
                           {"libnccl.so.2", "nccl", nccl_version_of, "ranks on several GPUs need"});
}

CudaLibraryFacts find_cudnn(const fs::path& libtorch) {
  return find_cuda_library(libtorch, {"libcudnn.so.9", "cudnn", cudnn_version_of,
                                      "its CUDA half does not load without"});
}

std::string libtorch_library_path(const fs::path& program) {
  const LibtorchFolder found = find_libtorch(program);
  if (found.folder.empty())
    throw ConfigError(
        fmt::format("LibTorch 2.11 was not found; looked at {} and the installed Pythons",
                    fmt::join(found.looked_at, ", ")),
        {.key = "CONVOY_TORCH",
         .hint =
             "set CONVOY_TORCH to the folder of a Python torch 2.11 (pip install torch==2.11.0)"});
  const std::string before = environment_text("LD_LIBRARY_PATH");
  const std::string ours = (found.folder / "lib").string();
  if (before == ours || before.starts_with(ours + ":")) return before;
  return before.empty() ? ours : ours + ":" + before;
}

}  // namespace convoy::apps

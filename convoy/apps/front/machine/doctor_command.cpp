// SPDX-License-Identifier: Apache-2.0
//
// `convoy doctor`: finds problems that stop jobs or slow them down. Prints one line each with one
// action.
#include <fmt/format.h>
#include <unistd.h>

#include <sstream>

#include "convoy/apps/front/command.h"
#include "convoy/apps/front/machine/doctor_ranks.h"
#include "convoy/apps/front/machine/visible_gpus.h"
#include "convoy/apps/front/worker/libtorch_folder.h"
#include "convoy/core/base/error.h"
#include "convoy/core/config/resolve.h"
#include "convoy/core/telemetry/runs/run_folder.h"
#include "convoy/core/telemetry/runs/run_history.h"
#include "convoy/launch/place/visible_devices.h"
#include "convoy/machine/monitor/doctor/doctor.h"
#include "convoy/machine/monitor/gpus/topology.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using Environment = std::map<std::string, std::string>;
using monitor::Finding;
using monitor::FindingLevel;

struct DoctorFlags {
  std::string during;
  std::string dir = "runs";
  std::string disk = ".";
  int64_t port = 29'500;
  bool all = false;
  bool try_ranks = true;
  bool no_ranks = false;
  bool strict = false;

  template <class Visitor>
  void fields(Visitor& visit) {
    visit("during", during, "also check this running job: folder, name, prefix of a name, or last");
    visit("dir", dir, "folder that holds the runs");
    visit("disk", disk, "folder whose disk is tested: writes 64 MiB there and leaves no file");
    visit("port", port, "port of the rendezvous of several hosts").at_least(1).at_most(65'535);
    visit("all", all, kAllGpusHelp);
    visit("try_ranks", try_ranks,
          "test a sum over ranks: two on this host, or one on each of --nnodes hosts, which all "
          "run this command");
    visit("no_ranks", no_ranks, "the same as --no-try-ranks").hidden();
    visit("strict", strict, "warnings fail too");
  }
};

void add(std::vector<Finding>& all, std::vector<Finding> more) {
  for (Finding& finding : more) all.push_back(std::move(finding));
}

std::vector<Finding> judge_libtorch(const LibtorchFolder& found, const fs::path& program,
                                    bool has_nvidia_gpus) {
  if (found.folder.empty())
    return {{FindingLevel::Blocking, "libtorch",
             fmt::format("no LibTorch 2.11; looked at {} and the installed Pythons",
                         fmt::join(found.looked_at, ", ")),
             "pip install torch==2.11.0, or name its folder in CONVOY_TORCH", ExitCode::Usage}};
  std::vector<Finding> findings = {{FindingLevel::Fine, "libtorch", "LibTorch " + found.text()}};
  const auto judge = [&](const char* check, const char* name, const CudaLibraryFacts& library,
                         const char* package) {
    std::string text = fmt::format("{}: {}", name, library.text());
    if (library.version.empty() && has_nvidia_gpus)
      findings.push_back({FindingLevel::Warning, check, std::move(text),
                          fmt::format("a torch 2.11 with CUDA and {} in CONVOY_TORCH", package),
                          ExitCode::Device});
    else
      findings.push_back({FindingLevel::Fine, check, std::move(text)});
  };
  judge("libcudnn", "cuDNN", find_cudnn(found.folder), "nvidia-cudnn-cu13");
  judge("libnccl", "NCCL", find_nccl(found.folder), "nvidia-nccl-cu13");
  if (!has_nvidia_gpus) return findings;
  const std::string why = why_no_cuda(program);
  if (why.empty())
    findings.push_back({FindingLevel::Fine, "cuda", "LibTorch's CUDA half and the driver fit"});
  else
    findings.push_back({FindingLevel::Warning, "cuda", "ranks compute on CPUs: " + why,
                        "a driver of 580 or newer, and a torch 2.11 with CUDA in CONVOY_TORCH",
                        ExitCode::Device});
  return findings;
}

// Only looks for the program: asking its version would start Python, which takes seconds.
std::vector<Finding> judge_tensorboard(const Environment& environment) {
  const auto path = environment.find("PATH");
  std::istringstream folders(path == environment.end() ? "" : path->second);
  for (std::string folder; std::getline(folders, folder, ':');)
    if (::access((fs::path(folder) / "tensorboard").c_str(), X_OK) == 0)
      return {{FindingLevel::Fine, "tensorboard", (fs::path(folder) / "tensorboard").string()}};
  return {{FindingLevel::Note, "tensorboard",
           "there is no tensorboard; `convoy runs plot` draws curves without",
           "pip install tensorboard"}};
}

monitor::DeviceFacts device_facts(const monitor::DeviceSources& sources,
                                  const Environment& environment, bool all) {
  const VisibleGpus visible = visible_gpus(sources, environment, all);
  monitor::DeviceReader reader(sources, visible.uuids);
  monitor::DeviceFacts facts{.problem = reader.problem(),
                             .mismatch = reader.is_mismatched(),
                             .versions = reader.versions(),
                             .broken = reader.broken(),
                             .devices = reader.devices(),
                             .readings = reader.read(),
                             .num_hidden = visible.num_hidden};
  facts.gaps = reader.gaps();
  if (facts.devices.empty() && visible.num_hidden > 0)
    facts.problem = fmt::format("{} hides all", visible.hidden_by);
  if (!facts.devices.empty()) facts.peers = monitor::read_topology(sources, visible.uuids).peers;
  if (visible.uuids)
    facts.selection_notes = launch::select_devices(monitor::list_gpus_of_any_vendor(sources).gpus,
                                                   launch::selection_request(environment, ""))
                                .notes;
  return facts;
}

// The number of GPUs on which ranks can compute.
int num_usable_gpus(const Context& context, const monitor::DeviceFacts& devices) {
  const auto whole = std::count_if(devices.devices.begin(), devices.devices.end(),
                                   [](const monitor::Device& device) {
                                     return device.vendor == monitor::Vendor::Nvidia && !device.mig;
                                   });
  return whole > 0 && why_no_cuda(context.program).empty() ? static_cast<int>(whole) : 0;
}

// `--ranks` without a number requests the default, so it is removed.
Words without_bare_ranks(Words words) {
  for (size_t at = words.size(); at-- > 0;)
    if (words[at] == "--ranks" && (at + 1 == words.size() || words[at + 1].starts_with('-')))
      words.erase(words.begin() + static_cast<std::ptrdiff_t>(at));
  return words;
}

int run_doctor(Context& context, const std::vector<std::string>& arguments) {
  DoctorFlags flags;
  launch::MemberFlags members;
  const std::vector<std::string> rest =
      config::parse_flags({config::list_fields(flags), config::list_fields(members),
                           config::list_fields(context.common)},
                          without_bare_ranks(arguments));
  if (!rest.empty())
    throw ConfigError(fmt::format("doctor takes flags only, found `{}`", rest[0]),
                      {.hint = fmt::format("--during {} looks at a run", rest[0])});
  const Environment environment = config::process_environment();
  const monitor::DeviceSources sources = monitor::device_sources(environment);
  std::vector<Finding> findings;
  const monitor::DeviceFacts devices = device_facts(sources, environment, flags.all);
  const monitor::HostFacts host = monitor::read_host_facts(sources);
  if (!flags.during.empty()) {
    const fs::path run = telemetry::resolve_run(flags.during, flags.dir);
    monitor::RunFacts facts = monitor::read_run_facts(run);
    if (facts.held && facts.step >= 0) {
      std::string name = telemetry::host_name();
      name = name.substr(0, name.find('.'));
      facts.memory = monitor::check_memory({.run = monitor::read_run_memory(run),
                                            .devices = devices.readings,
                                            .facts = host,
                                            .host = name});
    }
    add(findings, monitor::judge_run(facts));
    flags.disk = flags.disk == "." ? run.string() : flags.disk;
  }
  const bool has_nvidia =
      !devices.devices.empty() && devices.devices[0].vendor == monitor::Vendor::Nvidia;
  add(findings, monitor::judge_devices(devices));
  const LibtorchFolder libtorch = find_libtorch(context.program);
  add(findings, judge_libtorch(libtorch, context.program, has_nvidia));
  add(findings, monitor::judge_host(host, monitor::HostReader(sources).read()));
  add(findings, monitor::judge_kernel(monitor::read_kernel()));
  add(findings, monitor::judge_limits(monitor::read_limits(sources)));
  add(findings, monitor::judge_shared_memory(monitor::read_shared_memory()));
  add(findings, monitor::judge_disk(monitor::read_disk(fs::weakly_canonical(flags.disk))));
  if (flags.during.empty())
    add(findings, monitor::judge_port(monitor::read_port(static_cast<int>(flags.port))));
  if (flags.during.empty() && flags.try_ranks && !flags.no_ranks)
    add(findings, try_ranks(context, {.members = members,
                                      .num_gpus = num_usable_gpus(context, devices),
                                      .has_gpus = !devices.devices.empty(),
                                      .has_libtorch = !libtorch.folder.empty()}));
  add(findings, monitor::judge_clock(monitor::read_clock()));
  add(findings, judge_tensorboard(environment));
  fmt::print("{}", context.common.json
                       ? monitor::findings_json(findings)
                       : monitor::findings_text(findings, context.use_color(STDOUT_FILENO)));
  return monitor::exit_code_of(findings, flags.strict);
}

}  // namespace

Command doctor_command() {
  return {.name = "doctor",
          .summary = "Find what keeps jobs from starting or makes them slow",
          .usage =
              "convoy doctor [--during RUN] [--strict] [--json]\n"
              "convoy doctor --nnodes N --node-rank R --master-addr HOST   (on every node)",
          .examples =
              "convoy doctor\n"
              "convoy doctor --strict --json\n"
              "convoy doctor --during last\n"
              "convoy doctor --nnodes 2 --node-rank 0 --master-addr 10.0.0.1",
          .flags = {flags_of<DoctorFlags>(), flags_of<launch::HostRankFlags>("Ranks"),
                    flags_of<launch::NodeFlags>("Nodes")},
          .first_flags = {"during", "strict", "all", "disk", "ranks", "nnodes", "node-rank",
                          "master-addr", "try-ranks"},
          .run = run_doctor,
          .group = HelpGroup::GetStarted};
}

}  // namespace convoy::apps

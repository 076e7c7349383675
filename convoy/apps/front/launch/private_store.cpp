// SPDX-License-Identifier: Apache-2.0
#include "convoy/apps/front/launch/private_store.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"
#include "convoy/core/base/files.h"
#include "convoy/core/http/host_header.h"
#include "convoy/core/jobs/job_store.h"
#include "convoy/launch/rendezvous/job_token.h"
#include "convoy/machine/processes/run_child.h"

namespace convoy::apps {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr const char* kUser = "convoy";  // user of the database, not of the system
constexpr std::chrono::seconds kStartLimit{60};
constexpr std::chrono::seconds kStopLimit{20};

bool is_executable(const fs::path& path) { return ::access(path.c_str(), X_OK) == 0; }

// The folder with initdb and postgres: searched in CONVOY_POSTGRES_PROGRAMS, PATH, and the folders
// of distributions.
fs::path find_programs() {
  const auto has_both = [](const fs::path& folder) {
    return is_executable(folder / "initdb") && is_executable(folder / "postgres");
  };
  std::vector<fs::path> folders;
  if (const auto named = environment_variable("CONVOY_POSTGRES_PROGRAMS"))
    folders.emplace_back(*named);
  if (auto path = environment_variable("PATH")) {
    std::string& rest = *path;
    for (size_t end = 0; end != std::string::npos;) {
      end = rest.find(':');
      folders.emplace_back(rest.substr(0, end));
      if (end != std::string::npos) rest.erase(0, end + 1);
    }
  }
  for (const char* parent : {"/usr/lib/postgresql", "/usr/pgsql", "/opt/postgresql"}) {
    std::error_code missing;
    std::vector<fs::path> versions;
    for (const auto& entry : fs::directory_iterator(parent, missing))
      versions.push_back(entry.path() / "bin");
    std::sort(versions.rbegin(), versions.rend());
    folders.insert(folders.end(), versions.begin(), versions.end());
  }
  for (const fs::path& folder : folders)
    if (has_both(folder)) return folder;
  throw ConfigError("the programs of PostgreSQL (initdb, postgres) are not on this machine",
                    {.hint = "install them (apt install postgresql), name their folder in "
                             "CONVOY_POSTGRES_PROGRAMS, or use a server that runs elsewhere"});
}

// A free port of `host`.
int64_t free_port(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found); error != 0)
    throw ConfigError(
        fmt::format("{} is no address: {}", host, ::gai_strerror(error)),
        {.key = "--host", .hint = "give an address or a name of this machine, such as 127.0.0.1"});
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  const Descriptor probe(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!probe.open() || ::bind(probe.get(), found->ai_addr, found->ai_addrlen) != 0)
    throw ConfigError(
        fmt::format("this machine cannot listen on {}: {}", host, std::strerror(errno)),
        {.key = "--host", .hint = "name an address of this machine"});
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  ::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&bound), &length);
  return ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                           : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
}

void write_secret(const fs::path& path, const std::string& text) {
  const mode_t before = ::umask(0077);
  write_file_atomic(path, text);
  ::umask(before);
}

std::string remembered(const fs::path& path) { return fs::exists(path) ? read_file(path) : ""; }

}  // namespace

std::string private_store_url(const std::string& host, int64_t port, const std::string& password) {
  return fmt::format("postgresql://{}:{}@{}:{}/postgres", kUser, password, http::in_brackets(host),
                     port);
}

PrivateStore::PrivateStore(PrivateStoreOptions options, const Log& log)
    : options_(std::move(options)), programs_(find_programs()) {
  options_.folder = fs::absolute(options_.folder);
  fs::create_directories(options_.folder);
  keep_password();
  if (options_.port == 0) options_.port = std::atoll(remembered(options_.folder / "port").c_str());
  if (options_.port == 0) options_.port = free_port(options_.host);
  write_file_atomic(options_.folder / "port", std::to_string(options_.port));
  if (!fs::exists(options_.folder / "data/PG_VERSION")) {
    log.detail(fmt::format("making a database in {}", (options_.folder / "data").string()));
    make_cluster();
  }
  url_ = private_store_url(options_.host, options_.port, options_.password);
  wait_for_previous_server();
  start();
  wait_until_it_answers();
  write_secret(options_.folder / "url", url_);
}

PrivateStore::~PrivateStore() { stop(); }

void PrivateStore::keep_password() {
  const fs::path file = options_.folder / "password";
  const std::string before = remembered(file);
  if (!before.empty() && !options_.password.empty() && before != options_.password)
    throw ConfigError("the store of this run was made with another password",
                      {.file = file.string(),
                       .hint = fmt::format("set {} as it was then, or name another --run-dir",
                                           rendezvous::JobToken::kVariable)});
  if (options_.password.empty())
    options_.password = before.empty() ? rendezvous::JobToken::new_secret() : before;
  if (before.empty()) write_secret(file, options_.password);
}

std::string PrivateStore::program(const std::string& name) const {
  return (programs_ / name).string();
}

std::vector<std::string> PrivateStore::as_user(std::vector<std::string> command) const {
  std::vector<std::string> whole{"setpriv", "--pdeathsig", "INT"};
  if (::geteuid() == 0) {
    for (const std::string& word :
         {"--reuid=" + options_.user, "--regid=" + options_.user, std::string("--init-groups")})
      whole.push_back(word);
  }
  whole.emplace_back("--");
  whole.insert(whole.end(), command.begin(), command.end());
  return whole;
}

// Root must not run the server, so the server's user gets its files.
void PrivateStore::give_to_server(const fs::path& path) const {
  if (::geteuid() != 0) return;
  const passwd* const user = ::getpwnam(options_.user.c_str());
  if (user == nullptr)
    throw ConfigError(fmt::format("there is no user {} on this machine", options_.user),
                      {.key = "--user",
                       .hint = "PostgreSQL does not run as root: name a user who may own the "
                               "store's folder, or start this command as one"});
  if (::chown(path.c_str(), user->pw_uid, user->pw_gid) != 0)
    throw IoError(fmt::format("{} cannot be given to {}: {}", path.string(), options_.user,
                              std::strerror(errno)),
                  {.hint = "start this command as that user, or name a folder on a local disk"});
}

void PrivateStore::make_cluster() {
  give_to_server(options_.folder);
  give_to_server(options_.folder / "password");
  // The cluster has another folder name until it is complete, so an interrupted start begins again.
  const fs::path data = options_.folder / "data.new";
  fs::remove_all(data);
  const processes::ChildResult made = processes::run_child(
      {.program = as_user({program("initdb"), "--pgdata=" + data.string(),
                           std::string("--username=") + kUser, "--auth=scram-sha-256",
                           "--pwfile=" + (options_.folder / "password").string(), "--encoding=UTF8",
                           "--locale=C"})});
  if (!made.end.success())
    throw IoError(
        fmt::format("initdb could not make a database in {}: {}", data.string(), made.errors),
        {.hint = "its folder and those above must be open to the server's user"});
  const std::string access = read_file(data / "pg_hba.conf") +
                             "host all all 0.0.0.0/0 scram-sha-256\n"
                             "host all all ::/0 scram-sha-256\n";
  write_file_atomic(data / "pg_hba.conf", access);
  give_to_server(data / "pg_hba.conf");
  fs::rename(data, options_.folder / "data");
}

// Waits for the server of a killed process. That server ends by itself, but not at once.
void PrivateStore::wait_for_previous_server() const {
  const fs::path file = options_.folder / "data/postmaster.pid";  // first line: process id
  const auto limit = steady_clock::now() + kStopLimit;
  while (steady_clock::now() < limit) {
    pid_t server = 0;
    std::ifstream(file) >> server;
    if (server <= 0 || (::kill(server, 0) != 0 && errno == ESRCH)) return;
    std::this_thread::sleep_for(milliseconds(50));
  }
}

void PrivateStore::start() {
  const std::string data = (options_.folder / "data").string();
  // A shell starts the server and redirects its log to a file: no process would read a pipe during
  // the work.
  server_ = processes::start_child(
      {.program = as_user({"sh", "-c", "log=$1; shift; exec \"$@\" >>\"$log\" 2>&1", "sh",
                           data + "/server.log", program("postgres"), "-D", data, "-p",
                           std::to_string(options_.port), "-c", "listen_addresses=" + options_.host,
                           "-c", "unix_socket_directories=", "-c", "max_connections=300"})});
}

void PrivateStore::wait_until_it_answers() {
  const auto limit = steady_clock::now() + kStartLimit;
  std::string error;
  while (steady_clock::now() < limit) {
    if (processes::ends_within(server_, milliseconds(0))) break;
    try {
      jobs::open_store(url_, {.server_limit = milliseconds(200)});
      return;
    } catch (const Error& failure) {
      error = failure.what();
    }
    std::this_thread::sleep_for(milliseconds(100));
  }
  throw IoError(fmt::format("the server does not answer on {}:{}: {}\n{}", options_.host,
                            options_.port, error, log_tail()),
                {.hint = "is the port taken? --port 0 in a new folder takes a free one"});
}

std::string PrivateStore::log_tail() const {
  constexpr size_t kTailBytes = 2000;
  const fs::path path = options_.folder / "data/server.log";
  const std::string text = fs::exists(path) ? read_file(path) : "";
  return text.size() <= kTailBytes ? text : text.substr(text.size() - kTailBytes);
}

void PrivateStore::stop() {
  if (server_.pid < 0) return;
  ::kill(server_.pid, SIGINT);  // "fast": clients are disconnected, nothing is lost
  if (!processes::ends_within(server_, kStopLimit)) processes::signal_group(server_.pid, SIGKILL);
  processes::wait_for_child(server_.pid);
  server_.pid = -1;
}

}  // namespace convoy::apps

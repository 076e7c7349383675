// SPDX-License-Identifier: Apache-2.0
//
// A private PostgreSQL server for a job store that several hosts share. It needs no administrator,
// has one folder and one password, and is stopped with its owner. The folder keeps the data; a
// server that is restarted on it has the same password and port.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "convoy/core/base/log.h"
#include "convoy/machine/processes/child_process.h"

namespace convoy::apps {

struct PrivateStoreOptions {
  std::filesystem::path folder;    // made when missing
  std::string host = "127.0.0.1";  // address of the server and in the URL
  int64_t port = 0;                // 0 = the previous port, else a free one
  // PostgreSQL does not run as root. When this process is root, this user runs the server.
  std::string user = "postgres";
  std::string password = {};  // empty = the previous one, else a new one
};

std::string private_store_url(const std::string& host, int64_t port, const std::string& password);

class PrivateStore {
 public:
  // Blocks until the server answers. Throws ConfigError when PostgreSQL's programs or the user are
  // missing, IoError with the server's output when it does not start.
  PrivateStore(PrivateStoreOptions options, const Log& log);
  ~PrivateStore();  // calls stop()
  PrivateStore(const PrivateStore&) = delete;
  PrivateStore& operator=(const PrivateStore&) = delete;

  // Contains the password, so it is secret. Also in `folder`/url, readable only by the owner.
  const std::string& url() const { return url_; }
  // A descriptor that is readable once the server has exited unexpectedly.
  int exited() const { return server_.exited.get(); }
  std::string log_tail() const;  // the server's last lines
  void stop();                   // ends all connections. Blocks until the server has ended

 private:
  void give_to_server(const std::filesystem::path& path) const;
  void keep_password();
  void make_cluster();
  void wait_for_previous_server() const;
  void start();
  void wait_until_it_answers();
  std::string program(const std::string& name) const;
  // `command`, changed so that the server's user runs it.
  std::vector<std::string> as_user(std::vector<std::string> command) const;

  PrivateStoreOptions options_;
  std::filesystem::path programs_;
  std::string url_;
  processes::ChildProcess server_;
};

}  // namespace convoy::apps

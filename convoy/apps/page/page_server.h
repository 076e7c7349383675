// SPDX-License-Identifier: Apache-2.0
//
// Serves the page of runs over HTTP, for browsers on this machine. Read-only: no request changes
// anything. With PageOptions::chat it passes questions to the models of runs.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "convoy/apps/page/chat_engine.h"
#include "convoy/core/base/log.h"

namespace convoy::page {

struct PageOptions {
  std::filesystem::path runs;      // folder with the runs
  std::string host = "127.0.0.1";  // an address of this machine
  int port = 6007;                 // 0 = any free port
  std::string token;               // required in every request; empty = none
  ChatOptions chat = {};
  Log log = Log();
};

// 128 random bits as hexadecimal digits.
std::string new_token();

// Answers requests on threads of its own, as long as the object exists.
class PageServer {
 public:
  // Throws IoError when the port is in use or the address is not this machine's.
  explicit PageServer(PageOptions options);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;
  // The address to open, with the token.
  std::string url() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace convoy::page

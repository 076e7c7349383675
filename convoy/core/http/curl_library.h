// SPDX-License-Identifier: Apache-2.0
//
// libcurl, loaded only when a request is sent: linking it and its dependencies would add
// milliseconds to every start of `convoy`.
#pragma once

#include <curl/curl.h>

#include <string>
#include <vector>

namespace convoy::http {

// The functions of libcurl that are used. libcurl stays loaded until the process ends, because its
// TLS library leaves handlers that run at that time.
class CurlLibrary {
 public:
  CurlLibrary();  // call it once, before threads start. Throws ConfigError
  CurlLibrary(const CurlLibrary&) = delete;
  CurlLibrary& operator=(const CurlLibrary&) = delete;

  decltype(&::curl_getdate) getdate = nullptr;
  decltype(&::curl_easy_init) easy_init = nullptr;
  decltype(&::curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&::curl_easy_reset) easy_reset = nullptr;
  decltype(&::curl_easy_setopt) easy_setopt = nullptr;
  decltype(&::curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&::curl_easy_perform) easy_perform = nullptr;
  decltype(&::curl_easy_strerror) easy_strerror = nullptr;
  decltype(&::curl_slist_append) slist_append = nullptr;
  decltype(&::curl_slist_free_all) slist_free_all = nullptr;
  decltype(&::curl_multi_init) multi_init = nullptr;
  decltype(&::curl_multi_cleanup) multi_cleanup = nullptr;
  decltype(&::curl_multi_setopt) multi_setopt = nullptr;
  decltype(&::curl_multi_add_handle) multi_add_handle = nullptr;
  decltype(&::curl_multi_remove_handle) multi_remove_handle = nullptr;
  decltype(&::curl_multi_perform) multi_perform = nullptr;
  decltype(&::curl_multi_info_read) multi_info_read = nullptr;
  decltype(&::curl_multi_poll) multi_poll = nullptr;
  decltype(&::curl_multi_wakeup) multi_wakeup = nullptr;

 private:
  template <class Function>
  void find(const char* symbol, Function& function);

  void* library_ = nullptr;
};

// Headers of a request, "Name: value", as libcurl takes them.
struct CurlHeaders {
  CurlHeaders(const CurlLibrary& library, const std::vector<std::string>& lines);
  ~CurlHeaders();
  CurlHeaders(const CurlHeaders&) = delete;
  CurlHeaders& operator=(const CurlHeaders&) = delete;

  const CurlLibrary& curl;
  curl_slist* list = nullptr;
};

// File of trusted certificates: REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or SSL_CERT_FILE. Empty: the
// system's.
std::string trusted_certificates();

}  // namespace convoy::http

// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/http/curl_library.h"

#include <dlfcn.h>

#include <new>

#include "convoy/core/base/environment_variable.h"
#include "convoy/core/base/error.h"

namespace convoy::http {

CurlLibrary::CurlLibrary() {
  for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
    library_ = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) break;
  }
  if (library_ == nullptr)
    throw ConfigError(
        "requests over HTTP need libcurl.so.4, which cannot be loaded",
        {.hint = "install the package libcurl4 (Debian, Ubuntu) or libcurl (others)"});
  decltype(&::curl_global_init) global_init = nullptr;
  find("curl_global_init", global_init);
  find("curl_getdate", getdate);
  find("curl_easy_init", easy_init);
  find("curl_easy_cleanup", easy_cleanup);
  find("curl_easy_reset", easy_reset);
  find("curl_easy_setopt", easy_setopt);
  find("curl_easy_getinfo", easy_getinfo);
  find("curl_easy_perform", easy_perform);
  find("curl_easy_strerror", easy_strerror);
  find("curl_slist_append", slist_append);
  find("curl_slist_free_all", slist_free_all);
  find("curl_multi_init", multi_init);
  find("curl_multi_cleanup", multi_cleanup);
  find("curl_multi_setopt", multi_setopt);
  find("curl_multi_add_handle", multi_add_handle);
  find("curl_multi_remove_handle", multi_remove_handle);
  find("curl_multi_perform", multi_perform);
  find("curl_multi_info_read", multi_info_read);
  find("curl_multi_poll", multi_poll);
  find("curl_multi_wakeup", multi_wakeup);
  if (global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    throw ConfigError("libcurl could not be set up", {.hint = "reinstall libcurl and OpenSSL"});
}

template <class Function>
void CurlLibrary::find(const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library_, symbol));
  if (function == nullptr)
    throw ConfigError(fmt::format("libcurl.so.4 has no {}", symbol),
                      {.hint = "install a newer libcurl"});
}

CurlHeaders::CurlHeaders(const CurlLibrary& library, const std::vector<std::string>& lines)
    : curl(library) {
  for (const std::string& line : lines) {
    curl_slist* const longer = curl.slist_append(list, line.c_str());
    if (longer == nullptr) {
      curl.slist_free_all(list);
      throw std::bad_alloc();
    }
    list = longer;
  }
}

CurlHeaders::~CurlHeaders() { curl.slist_free_all(list); }

std::string trusted_certificates() {
  for (const char* name : {"REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (std::string file = environment_text(name); !file.empty()) return file;
  return {};
}

}  // namespace convoy::http

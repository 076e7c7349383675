// SPDX-License-Identifier: Apache-2.0
#include "convoy/core/jobs/postgres/libpq.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "convoy/core/base/error.h"

namespace convoy::jobs {

Libpq::Libpq() {
  library_ = ::dlopen("libpq.so.5", RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr)
    throw ConfigError("a PostgreSQL job store needs libpq.so.5, which cannot be loaded",
                      {.hint = "install the package libpq5 (Debian, Ubuntu) or postgresql-libs"});
  try {
    find("PQconnectdbParams", connectdb_params);
    find("PQfinish", finish);
    find("PQstatus", status);
    find("PQtransactionStatus", transaction_status);
    find("PQerrorMessage", error_message);
    find("PQexec", exec);
    find("PQprepare", prepare);
    find("PQexecPrepared", exec_prepared);
    find("PQsendQueryPrepared", send_query_prepared);
    find("PQgetResult", get_result);
    find("PQenterPipelineMode", enter_pipeline_mode);
    find("PQexitPipelineMode", exit_pipeline_mode);
    find("PQpipelineSync", pipeline_sync);
    find("PQresultStatus", result_status);
    find("PQresultErrorField", result_error_field);
    find("PQclear", clear);
    find("PQntuples", num_tuples);
    find("PQnfields", num_fields);
    find("PQftype", field_type);
    find("PQgetvalue", get_value);
    find("PQgetlength", get_length);
    find("PQgetisnull", get_is_null);
    find("PQsetNoticeProcessor", set_notice_processor);
  } catch (...) {
    ::dlclose(library_);
    throw;
  }
}

// Never unloaded: libpq's OpenSSL leaves handlers that run when the process ends.
Libpq::~Libpq() = default;

template <class Function>
void Libpq::find(const char* symbol, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library_, symbol));
  if (function == nullptr)
    throw ConfigError(
        fmt::format("libpq.so.5 has no {}: wanted PostgreSQL's client library 14 or newer", symbol),
        {.hint = "install a newer libpq"});
}

}  // namespace convoy::jobs

// SPDX-License-Identifier: Apache-2.0
//
// The functions of libpq, loaded when the first PostgreSQL store is opened, so that other programs
// need no libpq.
#pragma once

#include <libpq-fe.h>

namespace convoy::jobs {

// Each session has one object. The names are libpq's without their "PQ".
class Libpq {
 public:
  // Throws ConfigError when libpq.so.5 is missing or too old (14 and later have pipelines).
  Libpq();
  ~Libpq();
  Libpq(const Libpq&) = delete;
  Libpq& operator=(const Libpq&) = delete;

  decltype(&::PQconnectdbParams) connectdb_params = nullptr;
  decltype(&::PQfinish) finish = nullptr;
  decltype(&::PQstatus) status = nullptr;
  decltype(&::PQtransactionStatus) transaction_status = nullptr;
  decltype(&::PQerrorMessage) error_message = nullptr;
  decltype(&::PQexec) exec = nullptr;
  decltype(&::PQprepare) prepare = nullptr;
  decltype(&::PQexecPrepared) exec_prepared = nullptr;
  decltype(&::PQsendQueryPrepared) send_query_prepared = nullptr;
  decltype(&::PQgetResult) get_result = nullptr;
  decltype(&::PQenterPipelineMode) enter_pipeline_mode = nullptr;
  decltype(&::PQexitPipelineMode) exit_pipeline_mode = nullptr;
  decltype(&::PQpipelineSync) pipeline_sync = nullptr;
  decltype(&::PQresultStatus) result_status = nullptr;
  decltype(&::PQresultErrorField) result_error_field = nullptr;
  decltype(&::PQclear) clear = nullptr;
  decltype(&::PQntuples) num_tuples = nullptr;
  decltype(&::PQnfields) num_fields = nullptr;
  decltype(&::PQftype) field_type = nullptr;
  decltype(&::PQgetvalue) get_value = nullptr;
  decltype(&::PQgetlength) get_length = nullptr;
  decltype(&::PQgetisnull) get_is_null = nullptr;
  decltype(&::PQsetNoticeProcessor) set_notice_processor = nullptr;

 private:
  template <class Function>
  void find(const char* symbol, Function& function);

  void* library_ = nullptr;
};

}  // namespace convoy::jobs

#!/usr/bin/env bash
# The tests of every job store against a real PostgreSQL server: postgres_test.sh SOURCE_DIR
# JOBS_TESTS
set -u
source "$1/tests/files/packages.sh"
source "$1/tests/jobs/private_postgres.sh"
start_private_postgres
CONVOY_TEST_POSTGRES=$POSTGRES_URL CONVOY_TEST_POSTGRES_RESTART=$POSTGRES_RESTART \
  "$2" --gtest_filter='*postgres*:Postgres*'

#!/usr/bin/env bash
# Kills runs that use a real PostgreSQL server: postgres_test.sh SOURCE_DIR ROW_LEDGER_TESTS
set -u
source "$1/tests/files/packages.sh"
source "$1/tests/jobs/private_postgres.sh"
start_private_postgres
CONVOY_TEST_POSTGRES=$POSTGRES_URL "$2" --gtest_filter='*postgres*'

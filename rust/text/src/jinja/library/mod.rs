// SPDX-License-Identifier: Apache-2.0
//! The filters, tests and functions that every chat template has.

pub mod filters;
pub mod functions;
pub mod tests;

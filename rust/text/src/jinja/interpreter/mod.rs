// SPDX-License-Identifier: Apache-2.0
//! Runs the tree of a template. What it may call by name comes in tables from outside.

pub mod expressions;
pub mod loops;
pub mod scopes;
pub mod state;
pub mod statements;

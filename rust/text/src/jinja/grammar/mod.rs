// SPDX-License-Identifier: Apache-2.0
//! From the text of a template to its tree.

pub mod cursor;
pub mod expressions;
pub mod lexer;
pub mod names;
pub mod statements;
pub mod syntax;

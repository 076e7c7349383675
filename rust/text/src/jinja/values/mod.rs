// SPDX-License-Identifier: Apache-2.0
//! Python's values: their text, order, arithmetic, attributes and methods.

pub mod arguments;
pub mod json;
pub mod members;
pub mod methods;
pub mod number;
pub mod operators;
pub mod order;
pub mod percent;
pub mod spec;
pub mod string_methods;
pub mod strings;
pub mod text;
pub mod value;

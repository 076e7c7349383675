// SPDX-License-Identifier: Apache-2.0
//! Jinja2's filters, with `tojson` as transformers sets it.

mod numbers;
mod sequences;
mod texts;

use crate::jinja::error::{fail, Result};
use crate::jinja::interpreter::state::{Filter, Renderer, Table};
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::json::to_json;
use crate::jinja::values::value::Value;

const NAMES: &[&str] = &["default", "d", "length", "count", "tojson", "random", "urlize"];

pub const FILTERS: Table<Filter> = &[
    (NAMES, call),
    (numbers::NAMES, numbers::call),
    (sequences::NAMES, sequences::call),
    (texts::NAMES, texts::call),
];

fn default(value: Value, arguments: Arguments) -> Result<Value> {
    let [default, boolean] = arguments.bind("default", ["default_value", "boolean"], 0)?;
    let replaces =
        value.is_undefined() || boolean.is_some_and(|boolean| boolean.is_true()) && !value.is_true();
    Ok(if replaces { default.unwrap_or_else(|| "".into()) } else { value })
}

fn length(value: &Value, renderer: &Renderer, arguments: Arguments) -> Result<Value> {
    arguments.bind_positional::<0>("length", 0)?;
    if let Some(length) = renderer.loop_length(value)? {
        return Ok(length.into());
    }
    match value.length() {
        Some(length) => Ok(length.into()),
        None => fail(format!("object of type '{}' has no len()", value.type_name())),
    }
}

fn call(renderer: &mut Renderer, name: &str, value: Value, arguments: Arguments) -> Result<Value> {
    match name {
        "default" | "d" => default(value, arguments),
        "length" | "count" => length(&value, renderer, arguments),
        "tojson" => to_json(&value, arguments),
        _ => fail(format!("the filter `{name}` is not supported")),
    }
}

// SPDX-License-Identifier: Apache-2.0
//! Jinja2's filters, with `tojson` as transformers sets it.

mod numbers;
mod sequences;
mod texts;

use super::arguments::Arguments;
use super::error::{fail, spend, Result};
use super::json::to_json;
use super::render::Renderer;
use super::value::Value;

pub use sequences::{make_dict, sort_by};
pub use texts::strip_tags;

const NAMES: &[&str] = &[
    "abs",
    "attr",
    "batch",
    "capitalize",
    "center",
    "count",
    "d",
    "default",
    "dictsort",
    "e",
    "escape",
    "filesizeformat",
    "first",
    "float",
    "forceescape",
    "format",
    "groupby",
    "indent",
    "int",
    "items",
    "join",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "pprint",
    "random",
    "reject",
    "rejectattr",
    "replace",
    "reverse",
    "round",
    "safe",
    "select",
    "selectattr",
    "slice",
    "sort",
    "string",
    "striptags",
    "sum",
    "title",
    "tojson",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
    "urlize",
    "wordcount",
    "wordwrap",
    "xmlattr",
];

pub fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

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

pub fn call(renderer: &mut Renderer, name: &str, value: Value, arguments: Arguments) -> Result<Value> {
    spend(1)?;
    match name {
        "default" | "d" => default(value, arguments),
        "length" | "count" => length(&value, renderer, arguments),
        "tojson" => to_json(&value, arguments),
        "abs" | "round" | "int" | "float" | "sum" | "filesizeformat" => {
            numbers::call(renderer, name, value, arguments)
        }
        "attr" | "batch" | "dictsort" | "first" | "groupby" | "items" | "last" | "list" | "map" | "max"
        | "min" | "reject" | "rejectattr" | "reverse" | "select" | "selectattr" | "slice" | "sort"
        | "unique" => sequences::call(renderer, name, value, arguments),
        "random" | "urlize" => fail(format!("the filter `{name}` is not supported")),
        _ if is_known(name) => texts::call(renderer, name, value, arguments),
        _ => fail(format!("no filter named '{name}'")),
    }
}

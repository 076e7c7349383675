// SPDX-License-Identifier: Apache-2.0
//! Jinja2's tests: `x is name(...)`.

use crate::jinja::error::{fail, Result};
use crate::jinja::interpreter::state::{Library, Table, Test};
use crate::jinja::values::arguments::Arguments;
use crate::jinja::values::number::Binary;
use crate::jinja::values::operators::{binary, contains};
use crate::jinja::values::order::{compare, equal};
use crate::jinja::values::strings::{is_lower, is_upper};
use crate::jinja::values::text::str_of;
use crate::jinja::values::value::{Object, Value};

const NAMES: &[&str] = &[
    "odd",
    "even",
    "divisibleby",
    "defined",
    "undefined",
    "filter",
    "test",
    "none",
    "boolean",
    "false",
    "true",
    "integer",
    "float",
    "lower",
    "upper",
    "string",
    "mapping",
    "number",
    "sequence",
    "iterable",
    "callable",
    "sameas",
    "escaped",
    "in",
    "==",
    "eq",
    "equalto",
    "!=",
    "ne",
    ">",
    "gt",
    "greaterthan",
    "ge",
    ">=",
    "<",
    "lt",
    "lessthan",
    "<=",
    "le",
];

pub const TESTS: Table<Test> = &[(NAMES, call)];

fn is_sequence(value: &Value) -> bool {
    value.length().is_some() && !matches!(value, Value::Undefined(_) | Value::View(..))
        || value.is_undefined()
}

fn remainder_is(value: &Value, by: &Value, wanted: i128) -> Result<bool> {
    equal(&binary(Binary::Modulo, value, by)?, &Value::Int(wanted))
}

/// Python's `is`, where it does not hang on how an object was made.
fn same(left: &Value, right: &Value) -> Result<bool> {
    const SMALL: std::ops::RangeInclusive<i128> = -5..=256;
    Ok(match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Int(left), Value::Int(right)) if left != right => false,
        (Value::Int(left), Value::Int(_)) if SMALL.contains(left) => true,
        (Value::Str(left), Value::Str(right)) if left.text != right.text => false,
        (Value::Object(left, one), Value::Object(right, other)) => left == right && one == other,
        (Value::Dict(left), Value::Dict(right)) => std::rc::Rc::ptr_eq(left, right),
        (Value::List(left), Value::List(right)) => std::rc::Rc::ptr_eq(left, right),
        _ if left.type_name() != right.type_name() => false,
        _ => return fail(format!("`is sameas` of two {} values is not supported", left.type_name())),
    })
}

fn ordered(name: &str, left: &Value, right: &Value) -> Result<bool> {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = compare(left, right)?;
    Ok(match name {
        ">" | "gt" | "greaterthan" => order == Some(Greater),
        ">=" | "ge" => matches!(order, Some(Greater | Equal)),
        "<" | "lt" | "lessthan" => order == Some(Less),
        _ => matches!(order, Some(Less | Equal)),
    })
}

fn with_argument(name: &str, value: &Value, arguments: Arguments) -> Result<bool> {
    let other = match name {
        "divisibleby" => arguments.bind::<1>(name, ["num"], 1)?,
        "sameas" => arguments.bind::<1>(name, ["other"], 1)?,
        "in" => arguments.bind::<1>(name, ["seq"], 1)?,
        _ => arguments.bind_positional::<1>(name, 1)?,
    };
    let other = &other[0].clone().unwrap_or(Value::None);
    match name {
        "divisibleby" => remainder_is(value, other, 0),
        "sameas" => same(value, other),
        "in" => contains(other, value),
        "==" | "eq" | "equalto" => equal(value, other),
        "!=" | "ne" => Ok(!equal(value, other)?),
        _ => ordered(name, value, other),
    }
}

fn call(library: &Library, name: &str, value: &Value, arguments: Arguments) -> Result<bool> {
    let takes_one = matches!(name, "divisibleby" | "sameas" | "in" | "eq" | "equalto" | "ne")
        || matches!(name, "gt" | "greaterthan" | "ge" | "lt" | "lessthan" | "le")
        || !name.starts_with(|letter: char| letter.is_alphabetic());
    if takes_one {
        return with_argument(name, value, arguments);
    }
    arguments.bind_positional::<0>(name, 0)?;
    Ok(match name {
        "odd" => remainder_is(value, &Value::Int(2), 1)?,
        "even" => remainder_is(value, &Value::Int(2), 0)?,
        "defined" => !value.is_undefined(),
        "undefined" => value.is_undefined(),
        "filter" => {
            value.key()?;
            value.as_str().is_some_and(|name| library.filter(name).is_some())
        }
        "test" => {
            value.key()?;
            value.as_str().is_some_and(|name| library.test(name).is_some())
        }
        "none" => matches!(value, Value::None),
        "boolean" => matches!(value, Value::Bool(_)),
        "false" => matches!(value, Value::Bool(false)),
        "true" => matches!(value, Value::Bool(true)),
        "integer" => matches!(value, Value::Int(_)),
        "float" => matches!(value, Value::Float(_)),
        "lower" => is_lower(&str_of(value)?),
        "upper" => is_upper(&str_of(value)?),
        "string" => matches!(value, Value::Str(_)),
        "mapping" => matches!(value, Value::Dict(_)),
        "number" => matches!(value, Value::Bool(_) | Value::Int(_) | Value::Float(_)),
        "sequence" => is_sequence(value),
        "iterable" => value.is_iterable(),
        "callable" => matches!(
            value,
            Value::Undefined(_)
                | Value::Function(_)
                | Value::Method(_)
                | Value::Object(Object::Macro | Object::Loop | Object::Joiner, _)
        ),
        _ => matches!(value, Value::Str(text) if text.markup),
    })
}

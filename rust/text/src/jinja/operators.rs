// SPDX-License-Identifier: Apache-2.0
//! Python's operators on values, and how Jinja2 reads attributes and items.

use std::rc::Rc;

use super::error::{fail, reserve, spend, spend_copy, spend_text, Result};
use super::methods;
use super::number::{arithmetic, Number};
use super::percent;
use super::syntax::Binary;
use super::text::{escape, repr};
use super::value::{equal, same_or_equal, Range, Text, Value, View};

fn symbol(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::FloorDivide => "//",
        Binary::Modulo => "%",
        Binary::Power => "** or pow()",
    }
}

fn add_texts(left: &Text, right: &Text) -> Result<Value> {
    spend_copy(left.text.len() + right.text.len())?;
    reserve(left.text.len() + right.text.len())?;
    let markup = left.markup || right.markup;
    let part = |text: &Text| {
        if markup && !text.markup {
            escape(&text.text).into()
        } else {
            text.text.clone()
        }
    };
    let joined = [part(left), part(right)].concat();
    Ok(Value::Str(Text { text: joined.into(), markup }))
}

fn repeat(value: &Value, count: i128) -> Result<Value> {
    let count = usize::try_from(count.max(0)).unwrap_or(usize::MAX);
    Ok(match value {
        Value::Str(text) => {
            let size = text.text.len().saturating_mul(count);
            reserve(size)?;
            spend_copy(size)?;
            Value::Str(Text { text: text.text.repeat(count).into(), markup: text.markup })
        }
        Value::List(items) | Value::Tuple(items) => {
            let size = items.values.len().saturating_mul(count);
            reserve(size.saturating_mul(std::mem::size_of::<Value>()))?;
            spend(size)?;
            let mut values = Vec::with_capacity(size);
            for _ in 0..if items.values.is_empty() { 0 } else { count } {
                values.extend_from_slice(&items.values);
            }
            match value {
                Value::List(_) => Value::list(values)?,
                _ => Value::tuple(values)?,
            }
        }
        _ => return fail("cannot be repeated"),
    })
}

fn chain(left: &[Value], right: &[Value]) -> Result<Vec<Value>> {
    spend(left.len() + right.len())?;
    reserve((left.len() + right.len()) * std::mem::size_of::<Value>())?;
    Ok([left, right].concat())
}

fn is_sequence(value: &Value) -> bool {
    matches!(value, Value::Str(_) | Value::List(_) | Value::Tuple(_))
}

pub fn binary(operator: Binary, left: &Value, right: &Value) -> Result<Value> {
    if let (Binary::Modulo, Value::Str(text)) = (operator, left) {
        return percent::format(text, right);
    }
    left.refuse_undefined()?;
    right.refuse_undefined()?;
    if let (Some(left), Some(right)) = (Number::of(left), Number::of(right)) {
        return Ok(arithmetic(operator, left, right)?.into());
    }
    match (operator, left, right) {
        (Binary::Add, Value::Str(left), Value::Str(right)) => add_texts(left, right),
        (Binary::Add, Value::List(left), Value::List(right)) => {
            Value::list(chain(&left.values, &right.values)?)
        }
        (Binary::Add, Value::Tuple(left), Value::Tuple(right)) => {
            Value::tuple(chain(&left.values, &right.values)?)
        }
        (Binary::Multiply, _, _) if is_sequence(left) && right.as_index().is_some() => {
            repeat(left, right.as_index().unwrap_or(0))
        }
        (Binary::Multiply, _, _) if is_sequence(right) && left.as_index().is_some() => {
            repeat(right, left.as_index().unwrap_or(0))
        }
        (Binary::Subtract, Value::View(..), _) | (Binary::Subtract, _, Value::View(..)) => {
            fail("sets are not supported")
        }
        _ => fail(format!(
            "unsupported operand type(s) for {}: '{}' and '{}'",
            symbol(operator),
            left.type_name(),
            right.type_name()
        )),
    }
}

pub fn negative(value: &Value) -> Result<Value> {
    value.refuse_undefined()?;
    match Number::of(value) {
        Some(Number::Int(value)) => match value.checked_neg() {
            Some(value) => Ok(Value::Int(value)),
            None => fail("whole numbers have at most 38 digits here"),
        },
        Some(Number::Float(value)) => Ok(Value::Float(-value)),
        None => fail(format!("bad operand type for unary -: '{}'", value.type_name())),
    }
}

pub fn positive(value: &Value) -> Result<Value> {
    value.refuse_undefined()?;
    match Number::of(value) {
        Some(number) => Ok(number.into()),
        None => fail(format!("bad operand type for unary +: '{}'", value.type_name())),
    }
}

/// `wanted in container`.
pub fn contains(container: &Value, wanted: &Value) -> Result<bool> {
    match container {
        Value::Str(text) => {
            spend_text(text.text.len())?;
            match wanted {
                Value::Str(part) => Ok(text.text.contains(&*part.text)),
                _ => {
                    fail(format!("'in <string>' requires string as left operand, not {}", wanted.type_name()))
                }
            }
        }
        Value::Dict(dict) | Value::View(View::Keys, dict) => Ok(dict.get(&wanted.key()?).is_some()),
        Value::Range(range) => match Number::of(wanted) {
            Some(Number::Int(wanted)) => Ok(range.position(wanted).is_some()),
            Some(Number::Float(wanted)) => {
                Ok(wanted.fract() == 0.0 && wanted.abs() < 1e37 && range.position(wanted as i128).is_some())
            }
            None => Ok(false),
        },
        Value::View(View::Pairs, dict) => match wanted {
            Value::Tuple(pair) if pair.values.len() == 2 => match dict.get(&pair.values[0].key()?) {
                Some(value) => same_or_equal(value, &pair.values[1]),
                None => Ok(false),
            },
            _ => Ok(false),
        },
        Value::Iterator(stream) => {
            let mut stream = stream.borrow_mut();
            while let Some(item) = stream.rest.next() {
                if equal(&item, wanted)? {
                    return Ok(true);
                }
            }
            stream.end.take().map_or(Ok(false), Err)
        }
        Value::List(items) | Value::Tuple(items) => {
            for item in &items.values {
                if same_or_equal(item, wanted)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ if container.is_iterable() => {
            for item in container.items()? {
                if same_or_equal(&item, wanted)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => fail(format!("argument of type '{}' is not iterable", container.type_name())),
    }
}

fn at<T>(items: &[T], index: i128) -> Option<&T> {
    let index = if index < 0 { index + items.len() as i128 } else { index };
    usize::try_from(index).ok().and_then(|index| items.get(index))
}

fn letter_at(text: &str, index: i128) -> Option<char> {
    let letter = |skipped: i128| usize::try_from(skipped).ok();
    if index < 0 {
        text.chars().rev().nth(letter(-1 - index)?)
    } else {
        text.chars().nth(letter(index)?)
    }
}

/// `value[index]`; None where Python raises TypeError or LookupError.
pub fn subscript(value: &Value, index: &Value) -> Result<Option<Value>> {
    value.refuse_undefined()?;
    Ok(match value {
        Value::Dict(dict) => match index.key() {
            Ok(key) => dict.get(&key).cloned(),
            Err(_) => None,
        },
        Value::List(items) | Value::Tuple(items) => {
            index.as_index().and_then(|index| at(&items.values, index).cloned())
        }
        Value::Str(text) => {
            spend_text(text.text.len())?;
            let letter = index.as_index().and_then(|index| letter_at(&text.text, index));
            letter.map(|letter| Value::letter(letter, text.markup))
        }
        Value::Range(range) => index.as_index().and_then(|index| {
            let index = if index < 0 { index.checked_add(range.size)? } else { index };
            (0..range.size).contains(&index).then(|| Value::Int(range.get(index)))
        }),
        _ => None,
    })
}

/// What an attribute of a value is, objects of the renderer aside.
pub fn attribute(value: &Value, name: &str) -> Option<Value> {
    if let Value::Tuple(items) = value {
        if let Some(index) = items.names.iter().position(|field| *field == name) {
            return Some(items.values[index].clone());
        }
    }
    if let (Value::Range(range), "start" | "stop" | "step") = (value, name) {
        return Some(Value::Int(match name {
            "start" => range.start,
            "stop" => range.stop,
            _ => range.step,
        }));
    }
    if let Some(field) = methods::number_field(value, name) {
        return Some(field);
    }
    methods::has(value, name).then(|| Value::method(value.clone(), name))
}

fn is_unsafe(value: &Value, name: &str) -> bool {
    let mutators: &[&str] = match value {
        Value::Dict(_) => &["clear", "pop", "popitem", "setdefault", "update"],
        Value::List(_) => &["append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"],
        _ => &[],
    };
    name.starts_with('_') || mutators.contains(&name)
}

fn unsafe_attribute(value: &Value, name: &str) -> Value {
    Value::undefined(format!("access to attribute '{name}' of '{}' object is unsafe", value.type_name()))
}

fn missing(value: &Value, name: &Value) -> Result<Value> {
    let kind = match value {
        Value::None => "None".into(),
        _ => format!("{} object", value.type_name()),
    };
    Ok(Value::undefined(match name.as_str() {
        Some(name) => format!("'{kind}' has no attribute '{name}'"),
        None => format!("{kind} has no element {}", repr(name)?),
    }))
}

/// `value.name`: the attribute, else the item.
pub fn get_attribute(value: &Value, name: &str) -> Result<Value> {
    value.refuse_undefined()?;
    // Every Python object has a few of these; they are never safe.
    if name.starts_with("__") {
        return fail(format!("`{name}`: names that begin with two underscores are not allowed"));
    }
    if is_unsafe(value, name) && !name.starts_with('_') {
        return Ok(unsafe_attribute(value, name));
    }
    if let Some(found) = attribute(value, name) {
        return Ok(found);
    }
    if let Value::Dict(dict) = value {
        if let Some(found) = dict.get_text(name) {
            return Ok(found.clone());
        }
    }
    missing(value, &Value::from(name))
}

/// `value[index]`: the item, else the attribute.
pub fn get_item(value: &Value, index: &Value) -> Result<Value> {
    if let Some(found) = subscript(value, index)? {
        return Ok(found);
    }
    if let Some(name) = index.as_str() {
        if name.starts_with("__") {
            return fail(format!("`{name}`: names that begin with two underscores are not allowed"));
        }
        if is_unsafe(value, name) && !name.starts_with('_') {
            return Ok(unsafe_attribute(value, name));
        }
        if let Some(found) = attribute(value, name) {
            return Ok(found);
        }
    }
    missing(value, index)
}

struct Bounds {
    start: i128,
    step: i128,
    size: i128,
}

fn bound(value: &Value) -> Result<Option<i128>> {
    match value {
        Value::None => Ok(None),
        Value::Undefined(_) => fail("slice indices must be integers or None"),
        _ => match value.as_index() {
            Some(index) => Ok(Some(index)),
            None => fail("slice indices must be integers or None"),
        },
    }
}

/// PySlice_AdjustIndices.
fn bounds(start: &Value, stop: &Value, step: &Value, length: usize) -> Result<Bounds> {
    let length = length as i128;
    let step = bound(step)?.unwrap_or(1);
    if step == 0 {
        return fail("slice step cannot be zero");
    }
    let clamp = |index: i128| {
        let index = if index < 0 { index.saturating_add(length) } else { index };
        if step > 0 {
            index.clamp(0, length)
        } else {
            index.clamp(-1, length - 1)
        }
    };
    let start = bound(start)?.map_or(if step > 0 { 0 } else { length - 1 }, clamp);
    let stop = bound(stop)?.map_or(if step > 0 { length } else { -1 }, clamp);
    let distance = if step > 0 { stop - start } else { start - stop };
    let size = if distance > 0 { (distance - 1) / step.abs() + 1 } else { 0 };
    Ok(Bounds { start, step, size })
}

fn pick<T: Clone>(items: &[T], bounds: &Bounds) -> Vec<T> {
    (0..bounds.size).map(|index| items[(bounds.start + index * bounds.step) as usize].clone()).collect()
}

pub fn slice(value: &Value, start: &Value, stop: &Value, step: &Value) -> Result<Value> {
    value.refuse_undefined()?;
    let size = match value {
        Value::Str(text) => text.text.len(),
        _ => value.length().unwrap_or(0),
    };
    spend(1 + size / 8)?;
    reserve(size * 4)?;
    match value {
        Value::Str(text) => {
            let letters: Vec<char> = text.text.chars().collect();
            let bounds = bounds(start, stop, step, letters.len())?;
            let picked: String = pick(&letters, &bounds).into_iter().collect();
            Ok(Value::Str(Text { text: picked.into(), markup: text.markup }))
        }
        Value::List(items) => {
            Value::list(pick(&items.values, &bounds(start, stop, step, items.values.len())?))
        }
        Value::Tuple(items) => {
            Value::tuple(pick(&items.values, &bounds(start, stop, step, items.values.len())?))
        }
        Value::Range(range) => {
            let bounds = bounds(start, stop, step, range.size as usize)?;
            let first = range.get(bounds.start);
            let step = range.step * bounds.step;
            // As Python computes it: the stop index is clamped before it is scaled.
            let stop_index = match bound(stop)? {
                None => {
                    if bounds.step > 0 {
                        range.size
                    } else {
                        -1
                    }
                }
                Some(index) => {
                    let index = if index < 0 { index.saturating_add(range.size) } else { index };
                    if bounds.step > 0 {
                        index.clamp(0, range.size)
                    } else {
                        index.clamp(-1, range.size - 1)
                    }
                }
            };
            Ok(Value::Range(Range { start: first, stop: range.get(stop_index), step, size: bounds.size }))
        }
        Value::Dict(_) => fail("unhashable type: 'slice'"),
        _ => fail(format!("'{}' object is not subscriptable", value.type_name())),
    }
}

/// A list of text as Python's str.join takes it.
pub fn join_texts(separator: &str, parts: &[Rc<str>]) -> Result<String> {
    let size = parts.iter().map(|part| part.len()).sum::<usize>()
        + separator.len().saturating_mul(parts.len().saturating_sub(1));
    reserve(size)?;
    spend_copy(size)?;
    let mut out = String::with_capacity(size);
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            out.push_str(separator);
        }
        out.push_str(part);
    }
    Ok(out)
}

// SPDX-License-Identifier: Apache-2.0
//! Python's operators on values.

use crate::jinja::error::{fail, reserve, spend, spend_copy, spend_text, Result};
use crate::jinja::values::number::{arithmetic, Binary, Number};
use crate::jinja::values::order::{equal, same_or_equal};
use crate::jinja::values::percent;
use crate::jinja::values::text::escape;
use crate::jinja::values::value::{Range, Text, Value, View};

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
